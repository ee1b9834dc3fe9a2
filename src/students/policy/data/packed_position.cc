#include "students/policy/data/packed_position.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "games/chess/fen.h"

namespace kibitz::policy {
namespace {

using chess::Color;
using chess::Piece;
using chess::PieceType;

constexpr size_t kPositionBytes = offsetof(PackedPosition, analyses);

// What a letter of a FEN's first field does.
struct Letter {
  uint8_t code = 0;     // A piece's, or 0.
  uint8_t squares = 0;  // How far it goes.
  uint8_t piece = 0;    // 1 for one of these.
  uint8_t digit = 0;
  uint8_t slash = 0;
  uint8_t known = 0;  // Any of the three.
};

constexpr std::array<Letter, 256> MakeLetters() {
  std::array<Letter, 256> letters{};
  constexpr std::string_view kPieces = "PNBRQK";
  for (size_t i = 0; i < kPieces.size(); ++i) {
    const auto white = static_cast<unsigned char>(kPieces[i]);
    letters[white] = {static_cast<uint8_t>(i + 1), 1, 1, 0, 0, 1};
    letters[white | 0x20U] = {static_cast<uint8_t>(i + 9), 1, 1, 0, 0, 1};
  }
  for (uint8_t digit = 1; digit <= 8; ++digit) letters['0' + digit] = {0, digit, 0, 1, 0, 1};
  letters['/'] = {0, 0, 0, 0, 1, 1};
  return letters;
}
constexpr std::array<Letter, 256> kLetters = MakeLetters();

// Bits in the order of a FEN.
constexpr uint64_t kLastRanks = 0xff000000000000ffULL;
constexpr std::array<uint64_t, 4> kRookOf = {1ULL << 63, 1ULL << 56, 1ULL << 7, 1ULL << 0};
constexpr std::array<uint64_t, 4> kKingOf = {1ULL << 60, 1ULL << 60, 1ULL << 4, 1ULL << 4};
constexpr std::array<unsigned, 4> kRookCode = {4, 4, 12, 12};
constexpr std::array<unsigned, 4> kKingCode = {6, 6, 14, 14};

// The pieces of a position while a FEN is read; sets of squares in the order of a FEN.
struct Men {
  std::array<uint64_t, 16> sets{};    // By piece code.
  std::array<uint64_t, 2> nibbles{};  // PackedPosition::pieces.
  uint64_t occupied = 0;
  unsigned count = 0;

  void Add(unsigned code, unsigned bit) {
    const uint64_t square = uint64_t{1} << bit;
    sets[code] |= square;
    occupied |= square;
    nibbles[count >> 4 & 1] |= uint64_t{code} << (4 * (count & 15));
    ++count;
  }
  // As chess::ParseFen wants them.
  bool Sound() const {
    uint64_t white = 0;
    uint64_t black = 0;
    for (size_t code = 1; code <= 6; ++code) {
      white |= sets[code];
      black |= sets[code + 8];
    }
    return std::has_single_bit(sets[6]) && std::has_single_bit(sets[14]) &&
           ((sets[1] | sets[9]) & kLastRanks) == 0 && std::popcount(white) <= 16 &&
           std::popcount(black) <= 16 && std::popcount(sets[1]) <= 8 && std::popcount(sets[9]) <= 8;
  }
  bool Supports(size_t right) const {
    return (sets[kKingCode[right]] & kKingOf[right]) != 0 &&
           (sets[kRookCode[right]] & kRookOf[right]) != 0;
  }
  void PutInto(PackedPosition& position) const {
    position.occupied = {static_cast<uint32_t>(occupied), static_cast<uint32_t>(occupied >> 32)};
    std::memcpy(position.pieces.data(), nibbles.data(), 16);
  }
};

// Reads what nearly all FENs look like, quickly; gives up (false) on anything else, right or wrong.
class QuickReader {
 public:
  explicit QuickReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool Read(PackedPosition& position) {
    if (!Pieces() || !men_.Sound() || !Side(position) || !Castling(position)) return false;
    if (end_ - at_ < 2 || at_[0] != ' ' || at_[1] != '-') return false;
    at_ += 2;
    if (at_ != end_ && !Counters()) return false;
    men_.PutInto(position);
    return true;
  }

 private:
  // Without branches on the letters, which cannot be predicted: faults are summed up.
  bool Pieces() {
    std::array<uint8_t, 128> codes;  // Of pieces in turn; more than 32 are seen at the end.
    uint64_t occupied = 0;
    unsigned count = 0;
    unsigned bit = 0;
    unsigned row_end = 8;
    unsigned after_digit = 0;
    unsigned wrong = 0;
    const char* last = at_ + std::min<std::ptrdiff_t>(end_ - at_, 100);
    for (; at_ != last; ++at_) {
      const Letter& letter = kLetters[static_cast<unsigned char>(*at_)];
      if (letter.known == 0) break;
      wrong |= letter.slash & static_cast<unsigned>(bit != row_end);
      wrong |= letter.digit & after_digit;
      after_digit = letter.digit;
      codes[count] = letter.code;
      count += letter.piece;
      occupied |= uint64_t{letter.piece} << (bit & 63);
      bit += letter.squares;
      row_end += 8U * letter.slash;
      wrong |= static_cast<unsigned>(bit > row_end);
    }
    if (wrong != 0 || bit != 64 || row_end != 64 || count > 32) return false;
    for (unsigned i = 0; i < count; ++i, occupied &= occupied - 1) {
      men_.Add(codes[i], static_cast<unsigned>(std::countr_zero(occupied)));
    }
    return true;
  }

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
      const size_t right = std::string_view("KQkq").find(*at_);
      if (right == std::string_view::npos || (seen >> right & 1) != 0) return false;
      seen |= 1U << right;
      if (men_.Supports(right)) position.state = static_cast<uint8_t>(position.state | 2U << right);
    }
    return seen != 0;
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
  Men men_;
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
    if ((board.castling_rooks() & rook) != 0 && men.Supports(right)) {
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
    if (position.castling(static_cast<int>(right)) && !men.Supports(right)) return false;
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
