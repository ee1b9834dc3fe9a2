#include "oracles/lc0/training_row.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "games/chess/movegen.h"
#include "io/bytes/byte_source.h"
#include "io/bytes/gunzip.h"
#include "io/bytes/tar_reader.h"
#include "oracles/lc0/policy_index.h"

namespace kibitz::oracles {
namespace {

using chess::Bitboard;
using chess::Board;
using chess::BoardParts;
using chess::Color;
using chess::Move;
using chess::PieceType;
using chess::Square;

constexpr size_t kTheirs = 6;                       // Planes before those of the other side.
constexpr size_t kTheirPawnsBefore = 13 + kTheirs;  // On the board one move ago.
constexpr float kSlack = 2e-3F;                     // Of rounding in lc0's sums.
constexpr size_t kLongestGame = kMaxLc0GameBytes / sizeof(io::Lc0Row);

Bitboard ReverseFiles(Bitboard set) {
  set = (set >> 1 & 0x5555555555555555) | (set & 0x5555555555555555) << 1;
  set = (set >> 2 & 0x3333333333333333) | (set & 0x3333333333333333) << 2;
  return (set >> 4 & 0x0f0f0f0f0f0f0f0f) | (set & 0x0f0f0f0f0f0f0f0f) << 4;
}

// Across the diagonal from h1 to a8.
constexpr int TransposedIndex(int square) { return (7 - square % 8) * 8 + 7 - square / 8; }

Bitboard Transposed(Bitboard set) {
  Bitboard result = 0;
  while (set != 0) result |= Bitboard{1} << TransposedIndex(chess::TakeFirst(set).index());
  return result;
}

// How a canonical format turned the board: files, then ranks, then the diagonal.
class Turn {
 public:
  explicit Turn(uint8_t flags)
      : flags_(flags & (io::kLc0Flip | io::kLc0Mirror | io::kLc0Transpose)) {}

  bool any() const { return flags_ != 0; }
  // The set as the mover sees it, of a set as the row has it.
  Bitboard Undone(Bitboard set) const {
    if (!any()) return set;
    if ((flags_ & io::kLc0Transpose) != 0) set = Transposed(set);
    if ((flags_ & io::kLc0Mirror) != 0) set = __builtin_bswap64(set);
    if ((flags_ & io::kLc0Flip) != 0) set = ReverseFiles(set);
    return set;
  }
  // A square as the row has it, of one as the mover sees it.
  Square Done(Square square) const {
    int index = square.index();
    if ((flags_ & io::kLc0Flip) != 0) index ^= 7;
    if ((flags_ & io::kLc0Mirror) != 0) index ^= 56;
    if ((flags_ & io::kLc0Transpose) != 0) index = TransposedIndex(index);
    return Square(index);
  }

 private:
  int flags_;
};

bool IsCanonical(uint32_t input_format) { return input_format >= 3; }

std::string FormatFault(const io::Lc0Row& row) {
  if (row.version >= 3 && row.version <= 7 && row.version != io::kLc0RowVersion) {
    return fmt::format("rows of version {}, expected 6", uint32_t{row.version});
  }
  if (row.version != io::kLc0RowVersion) return "no rows of lc0's training data";
  if (row.input_format >= 1 && row.input_format <= 5) return "";
  const std::string_view name = io::InputFormatName(row.input_format);
  if (name == "unknown") return "unknown input format";
  return fmt::format("input format {} ({}), expected 1 to 5", uint32_t{row.input_format}, name);
}

// A position as the mover sees it, in parts.
struct SeenBoard {
  std::array<Bitboard, 12> pieces{};  // Own P N B R Q K, then theirs.
  Bitboard rooks = 0;                 // That may castle.
  Bitboard passed = 0;                // The square of a double step.

  Bitboard All() const {
    Bitboard all = 0;
    for (const Bitboard set : pieces) all |= set;
    return all;
  }
};

std::string MenFault(const SeenBoard& seen) {
  Bitboard all = 0;
  for (const size_t side : {size_t{0}, kTheirs}) {
    int men = 0;
    for (size_t i = side; i < side + 6; ++i) {
      if ((all & seen.pieces[i]) != 0) return "two pieces on one square";
      all |= seen.pieces[i];
      men += chess::PopCount(seen.pieces[i]);
    }
    if (chess::PopCount(seen.pieces[side + 5]) != 1) return "not one king each";
    if (men > 16 || chess::PopCount(seen.pieces[side]) > 8) return "too many pieces";
    if ((seen.pieces[side] & (chess::RankOf(0) | chess::RankOf(7))) != 0) {
      return "a pawn on the last rank";
    }
  }
  return "";
}

// The rook of a right: in format 1 in the corner with the king on the e-file, later ones name its
// file. Nothing where the pieces do not support the right.
std::optional<Bitboard> CastlingRook(const SeenBoard& seen, uint8_t byte, bool us, bool queen_side,
                                     bool corner) {
  const int rank = us ? 0 : 7;
  const size_t side = us ? 0 : kTheirs;
  const Bitboard king = seen.pieces[side + 5];
  Bitboard rook = Bitboard{byte} << (8 * rank);
  if (corner) {
    rook = Square::At(queen_side ? 0 : 7, rank).bit();
    if (king != Square::At(4, rank).bit()) return std::nullopt;
  }
  if (chess::PopCount(rook) != 1 || (rook & seen.pieces[side + 3]) == 0) return std::nullopt;
  if ((king & chess::RankOf(rank)) == 0 || (rook < king) != queen_side) return std::nullopt;
  return rook;
}

bool AddCastling(const io::Lc0Row& row, SeenBoard& seen) {
  struct Right {
    uint8_t byte;
    bool us;
    bool queen_side;
  };
  for (const Right right :
       {Right{row.castling_us_queen, true, true}, Right{row.castling_us_king, true, false},
        Right{row.castling_them_queen, false, true}, Right{row.castling_them_king, false, false}}) {
    if (right.byte == 0) continue;
    const auto rook =
        CastlingRook(seen, right.byte, right.us, right.queen_side, row.input_format == 1);
    if (!rook) return false;
    seen.rooks |= *rook;
  }
  return true;
}

// Canonical formats name the file; the others show it by the board before: a pawn of the other side
// that stood on its first square and stands two squares further.
bool AddEnPassant(const io::Lc0Row& row, const Turn& turn, SeenBoard& seen) {
  Bitboard files = 0;
  if (IsCanonical(row.input_format)) {
    // As a set on some rank: flipping files is the only turn of a board with pawns.
    files = turn.Undone(Bitboard{row.side_or_en_passant} << 56) >> 56;
    if (chess::PopCount(files) > 1) return false;
  } else {
    const Bitboard before = ReverseFiles(row.planes[kTheirPawnsBefore]);
    const Bitboard now = seen.pieces[kTheirs];
    files = (before & ~now) >> 48 & (now & ~before) >> 32 & 0xff;
    if (chess::PopCount(files) != 1) return true;
  }
  if (files == 0) return true;
  const Bitboard clear = files << 40 | files << 48;
  if ((seen.pieces[kTheirs] & files << 32) == 0 || (seen.All() & clear) != 0) {
    return !IsCanonical(row.input_format);
  }
  seen.passed = files << 40;
  return true;
}

Board Absolute(const SeenBoard& seen, Color mover, int clock, int fullmove_number) {
  BoardParts parts;
  const auto absolute = [&](Square square) {
    return mover == Color::kWhite ? square : Square(square.index() ^ 56);
  };
  for (size_t i = 0; i < seen.pieces.size(); ++i) {
    const chess::Piece piece(i < kTheirs ? mover : ~mover, chess::kPieceTypes[i % kTheirs]);
    for (Bitboard set = seen.pieces[i]; set != 0;) {
      parts.squares[static_cast<size_t>(absolute(chess::TakeFirst(set)).index())] = piece;
    }
  }
  parts.side_to_move = mover;
  parts.castling_rooks = mover == Color::kWhite ? seen.rooks : __builtin_bswap64(seen.rooks);
  if (seen.passed != 0) parts.en_passant = absolute(chess::First(seen.passed));
  parts.halfmove_clock = clock;
  parts.fullmove_number = fullmove_number;
  return Board::Make(parts);
}

Result<Board> BoardOf(const io::Lc0Row& row, const Turn& turn, int fullmove_number) {
  SeenBoard seen;
  for (size_t i = 0; i < seen.pieces.size(); ++i) {
    seen.pieces[i] = turn.Undone(ReverseFiles(row.planes[i]));
  }
  if (std::string fault = MenFault(seen); !fault.empty()) return Bad("{}", fault);
  if (!AddCastling(row, seen)) return Bad("castling rights without king and rook");
  if (!AddEnPassant(row, turn, seen)) return Bad("en passant without a pawn");
  const bool black = IsCanonical(row.input_format) ? (row.flags & io::kLc0Black) != 0
                                                   : row.side_or_en_passant != 0;
  const Color mover = black ? Color::kBlack : Color::kWhite;
  const Board board = Absolute(seen, mover, row.rule50, fullmove_number);
  const Bitboard checkers = board.AttackersOf(board.KingOf(~mover), board.occupied());
  if ((checkers & board.pieces(mover)) != 0) return Bad("the side not to move is in check");
  return board;
}

// From q (win minus loss) and d; nothing where these are no probabilities.
std::optional<Wdl> WdlOf(float q, float d) {
  if (!(q >= -1 - kSlack && q <= 1 + kSlack && d >= -kSlack && d <= 1 + kSlack)) {
    return std::nullopt;
  }
  const double draw = std::clamp(static_cast<double>(d), 0.0, 1.0);
  const double win = (1 - draw + static_cast<double>(q)) / 2;
  const double loss = (1 - draw - static_cast<double>(q)) / 2;
  if (win < -static_cast<double>(kSlack) || loss < -static_cast<double>(kSlack))
    return std::nullopt;
  const double sum = std::max(win, 0.0) + draw + std::max(loss, 0.0);
  return Wdl{std::max(win, 0.0) / sum, draw / sum, std::max(loss, 0.0) / sum};
}

std::string AddValues(const io::Lc0Row& row, Lc0Ply& ply) {
  const auto root = WdlOf(row.root_q, row.root_d);
  const auto best = WdlOf(row.best_q, row.best_d);
  const auto played = WdlOf(row.played_q, row.played_d);
  const auto result = WdlOf(row.result_q, row.result_d);
  if (!root || !best || !played || !result) return "values that are no probabilities";
  ply.root_wdl = *root;
  ply.best_wdl = *best;
  ply.played_wdl = *played;
  ply.result = *result;
  return "";
}

std::string AddMoves(const io::Lc0Row& row, const Turn& turn, const Lc0Reading& reading,
                     Lc0Ply& ply) {
  const bool white = ply.board.side_to_move() == Color::kWhite;
  bool played = false;
  bool best = false;
  float sum = 0;
  for (const Move move : chess::LegalMoves(ply.board)) {
    const int seen = white ? 0 : 56;
    const Move turned(turn.Done(Square(move.from().index() ^ seen)),
                      turn.Done(Square(move.to().index() ^ seen)), move.kind());
    const int index = Lc0MoveIndex(Color::kWhite, turned);
    if (index == row.played) {
      ply.played = move;
      played = true;
    }
    if (index == row.best) {
      ply.best = move;
      best = true;
    }
    if (!reading.visits) continue;
    const float share = row.shares[index];
    if (!(share >= 0 && share <= 1)) continue;
    sum += share;
    if (share > 0) ply.visited.push_back({move, share});
  }
  if (!played) return "illegal move played";
  if (!best) return "illegal best move";
  if (reading.visits && std::abs(sum - 1) > 0.01F) return "shares of visits do not sum to 1";
  return "";
}

// The content of a file. Of a damaged one as much as can be read, and the damage is counted.
std::string UnpackedGame(std::string_view bytes, const std::string& name, SkipCounter& skipped) {
  std::string content;
  if (!io::LooksLikeGzip(bytes)) {
    return std::string(bytes.substr(0, kMaxLc0GameBytes));
  }
  if (io::Gunzip(bytes, kMaxLc0GameBytes, content)) return content;
  try {
    const auto source =
        io::Unpacked(io::MemoryBytes(std::string(bytes), name), {.read_ahead = false});
    std::array<char, 1 << 15> buffer;
    for (size_t got = source->Read(buffer.data(), buffer.size()); got > 0;
         got = source->Read(buffer.data(), buffer.size())) {
      content.append(buffer.data(), got);
      if (content.size() > kMaxLc0GameBytes) {
        skipped.Add("files that unpack to over 64 MB", {.file = name});
        return "";
      }
    }
    skipped.Add("damaged gzip files", {.file = name});
  } catch (const Error& error) {
    skipped.Add("damaged gzip files", {.file = error.message()});
  }
  return content;
}

}  // namespace

Result<Lc0Ply> DecodeLc0Row(const io::Lc0Row& row, int fullmove_number, const Lc0Reading& reading) {
  if (std::string fault = FormatFault(row); !fault.empty()) return Bad("{}", fault);
  if ((row.flags & io::kLc0Deleted) != 0) return Bad("marked for deletion by lc0's rescorer");
  const Turn turn(IsCanonical(row.input_format) ? row.flags : uint8_t{0});
  const Result<Board> board = BoardOf(row, turn, fullmove_number);
  if (!board) return Bad("{}", board.reason());
  Lc0Ply ply;
  ply.board = *board;
  ply.visits = row.visits;
  if (std::string fault = AddValues(row, ply); !fault.empty()) return Bad("{}", fault);
  if (std::string fault = AddMoves(row, turn, reading, ply); !fault.empty())
    return Bad("{}", fault);
  return ply;
}

Lc0Game ReadLc0Game(std::string_view bytes, const std::string& name, const Lc0Reading& reading,
                    SkipCounter& skipped) {
  const std::string_view stem = name;
  Lc0Game game;
  game.id = stem.ends_with(".gz") ? stem.substr(0, stem.size() - 3) : stem;
  if (!io::LooksLikeGzip(bytes) && bytes.size() > kMaxLc0GameBytes) {
    skipped.Add("files that unpack to over 64 MB", {.file = name});
    return game;
  }
  const std::string content = UnpackedGame(bytes, name, skipped);
  if (io::LooksLikeTar(content)) {
    skipped.Add("tar archives not named .tar", {.file = name});
    return game;
  }
  io::Lc0Row row;
  int first_black = 0;  // 1 if Black moved first.
  for (size_t i = 0; i < std::min(content.size() / sizeof(row), kLongestGame); ++i) {
    std::memcpy(&row, content.data() + i * sizeof(row), sizeof(row));
    ++game.rows;
    const int number = 1 + (static_cast<int>(i) + first_black) / 2;
    Result<Lc0Ply> ply = DecodeLc0Row(row, number, reading);
    if (!ply) {
      skipped.Add(ply.reason(), {.file = name, .row = static_cast<int64_t>(i)});
      if (row.version != io::kLc0RowVersion) return game;  // Rows of another length.
      continue;
    }
    Lc0Ply next = *std::move(ply);
    if (i == 0 && next.board.side_to_move() == Color::kBlack) first_black = 1;
    next.ply = static_cast<int>(i);
    if (!game.plies.empty() && game.plies.back().ply + 1 == next.ply) {
      const Lc0Ply& last = game.plies.back();
      next.follows = last.board.After(last.played).key() == next.board.key();
    }
    game.plies.push_back(std::move(next));
  }
  if (content.size() % sizeof(row) != 0) {
    skipped.Add("rows cut short", {.file = name, .row = static_cast<int64_t>(game.rows)});
  }
  return game;
}

}  // namespace kibitz::oracles
