#include "students/policy/data/packed_position.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "games/chess/fen.h"
#include "students/policy/data/fen_pieces.h"
#include "students/policy/data/men.h"

namespace kibitz::policy {
namespace {

using chess::Color;
using chess::Piece;
using chess::PieceType;

constexpr size_t kPositionBytes = offsetof(PackedPosition, analyses);

// Bits in the order of a FEN.
constexpr std::array<uint64_t, 4> kRookOf = {1ULL << 63, 1ULL << 56, 1ULL << 7, 1ULL << 0};
constexpr std::array<uint64_t, 4> kKingOf = {1ULL << 60, 1ULL << 60, 1ULL << 4, 1ULL << 4};
constexpr std::array<unsigned, 4> kRookCode = {4, 4, 12, 12};
constexpr std::array<unsigned, 4> kKingCode = {6, 6, 14, 14};

// Whether king and rook stand where a right wants them.
bool Supports(const PackedPosition& position, size_t right) {
  const auto stands = [&](uint64_t bit, unsigned code) {
    return position.CodeAt(PackedPosition::SquareOf(std::countr_zero(bit))) == code;
  };
  return stands(kKingOf[right], kKingCode[right]) && stands(kRookOf[right], kRookCode[right]);
}

// Reads what nearly all FENs look like, quickly; gives up (false) on anything else, right or wrong.
class QuickReader {
 public:
  explicit QuickReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool Read(PackedPosition& position) {
    const size_t pieces = ReadPieces({at_, static_cast<size_t>(end_ - at_)}, position);
    at_ += pieces;
    if (pieces == 0 || !Side(position) || !Castling(position)) return false;
    if (end_ - at_ < 2 || at_[0] != ' ' || at_[1] != '-') return false;
    at_ += 2;
    return at_ == end_ || Counters();
  }

 private:
  bool Side(PackedPosition& position) {
    if (end_ - at_ < 3 || at_[0] != ' ' || at_[2] != ' ') return false;
    if (at_[1] != 'w' && at_[1] != 'b') return false;
    position.state = at_[1] == 'b' ? 1 : 0;
    at_ += 3;
    return true;
  }

  bool Castling(PackedPosition& position) {
    if (at_ != end_ && *at_ == '-') {
      ++at_;
      return true;
    }
    unsigned seen = 0;
    for (; at_ != end_ && *at_ != ' '; ++at_) {
      const size_t right = RightOf(*at_);
      if (right == 4 || (seen >> right & 1) != 0) return false;
      seen |= 1U << right;
      if (Supports(position, right))
        position.state = static_cast<uint8_t>(position.state | 2U << right);
    }
    return seen != 0;
  }

  // 4 for any other letter.
  static size_t RightOf(char letter) {
    switch (letter) {
      case 'K':
        return 0;
      case 'Q':
        return 1;
      case 'k':
        return 2;
      case 'q':
        return 3;
      default:
        return 4;
    }
  }

  // Two counters of max four digits, not used.
  bool Counters() {
    for (int field = 0; field < 2; ++field) {
      if (at_ == end_ || *at_++ != ' ') return false;
      const char* begin = at_;
      while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
      if (at_ == begin || at_ - begin > 4) return false;
    }
    return at_ == end_;
  }

  const char* at_;
  const char* end_;
};

uint64_t Mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

Men MenOf(const PackedPosition& position) {
  Men men;
  uint64_t bits = position.occupied_bits();
  for (unsigned i = 0; bits != 0 && i < 32; ++i, bits &= bits - 1) {
    men.Add(position.pieces[i / 2] >> (4 * (i & 1)) & 15U,
            static_cast<unsigned>(std::countr_zero(bits)));
  }
  return men;
}

bool SoundEnPassant(const PackedPosition& position, const Men& men) {
  if (position.en_passant == 0) return true;
  if (position.en_passant > 8) return false;
  const int passed = position.en_passant_square();
  const int forward = position.black_to_move() ? 8 : -8;  // The way the passing pawn went.
  const auto bit = [](int square) { return uint64_t{1} << PackedPosition::SquareOf(square); };
  const uint64_t pawns = men.sets[position.black_to_move() ? 1 : 9];
  return (men.occupied & (bit(passed) | bit(passed - forward))) == 0 &&
         (pawns & bit(passed + forward)) != 0;
}

}  // namespace

unsigned PackedPosition::CodeAt(int square) const {
  const uint64_t bit = uint64_t{1} << SquareOf(square);
  const uint64_t bits = occupied_bits();
  if ((bits & bit) == 0) return 0;
  const auto i = static_cast<unsigned>(std::popcount(bits & (bit - 1)));
  return i < 32 ? pieces[i / 2] >> (4 * (i & 1)) & 15U : 0;
}

bool SamePosition(const PackedPosition& a, const PackedPosition& b) {
  return std::memcmp(&a, &b, kPositionBytes) == 0;
}

uint64_t HashOf(const PackedPosition& position) {
  std::array<uint64_t, 4> words{};
  std::memcpy(words.data(), &position, kPositionBytes);
  const uint64_t first = Mix(words[0] ^ 0x9e3779b97f4a7c15, words[1] ^ 0xbf58476d1ce4e5b9);
  const uint64_t second = Mix(words[2] ^ 0x94d049bb133111eb, words[3] ^ first ^ 0xd6e8feb86659fd93);
  return Mix(first ^ 0xa0761d6478bd642f, second ^ 0xe7037ed1a0b428db);
}

PackedPosition Pack(const chess::Board& board) {
  Men men;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const Piece piece =
        board.PieceAt(chess::Square(PackedPosition::SquareOf(static_cast<int>(bit))));
    if (!piece.empty()) men.Add(piece.code(), bit);
  }
  PackedPosition position;
  men.PutInto(position);
  position.state = board.side_to_move() == Color::kBlack ? 1 : 0;
  for (size_t right = 0; right < 4; ++right) {
    const uint64_t rook = uint64_t{1} << PackedPosition::SquareOf(std::countr_zero(kRookOf[right]));
    if ((board.castling_rooks() & rook) != 0 && Supports(position, right)) {
      position.state = static_cast<uint8_t>(position.state | 2U << right);
    }
  }
  if (const auto passed = board.en_passant()) {
    position.en_passant = static_cast<uint8_t>(passed->file() + 1);
  }
  return position;
}

Result<PackedPosition> PackFen(std::string_view fen) {
  PackedPosition position;
  if (QuickReader(fen).Read(position)) return position;
  const Result<chess::Board> board = chess::ParseFen(fen, {.drop_wrong_castling = true});
  if (!board) return Bad("{}", board.reason());
  return Pack(*board);
}

bool IsSound(const PackedPosition& position) {
  const int count = std::popcount(position.occupied_bits());
  if (count > 32 || position.state > 31) return false;
  const Men men = MenOf(position);
  for (unsigned code : {0U, 7U, 8U, 15U}) {
    if (men.sets[code] != 0) return false;
  }
  PackedPosition again;  // Nothing behind the last piece.
  men.PutInto(again);
  if (again.pieces != position.pieces || !men.Sound()) return false;
  for (size_t right = 0; right < 4; ++right) {
    if (position.castling(static_cast<int>(right)) && !Supports(position, right)) return false;
  }
  return SoundEnPassant(position, men);
}

chess::Board BoardOf(const PackedPosition& position) {
  chess::BoardParts parts;
  uint64_t bits = position.occupied_bits();
  for (unsigned i = 0; bits != 0 && i < 32; ++i, bits &= bits - 1) {
    const auto square = static_cast<size_t>(PackedPosition::SquareOf(std::countr_zero(bits)));
    parts.squares[square] = Piece::FromCode(position.pieces[i / 2] >> (4 * (i & 1)) & 15U);
  }
  parts.side_to_move = position.black_to_move() ? Color::kBlack : Color::kWhite;
  for (size_t right = 0; right < 4; ++right) {
    if (position.castling(static_cast<int>(right))) {
      parts.castling_rooks |= uint64_t{1}
                              << PackedPosition::SquareOf(std::countr_zero(kRookOf[right]));
    }
  }
  if (position.en_passant != 0) parts.en_passant = chess::Square(position.en_passant_square());
  return chess::Board::Make(parts);
}

}  // namespace kibitz::policy
