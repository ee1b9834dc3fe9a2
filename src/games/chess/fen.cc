#include "games/chess/fen.h"

#include <optional>
#include <utility>

#include "base/text.h"

namespace kibitz::chess {
namespace {

constexpr int kMaxCounter = 65535;  // What the board's 16 bits hold.

std::string_view Name(Color color) { return color == Color::kWhite ? "White" : "Black"; }
Color ColorOfLetter(char letter) {
  return letter >= 'A' && letter <= 'Z' ? Color::kWhite : Color::kBlack;
}

// Each step fills its part and returns the reason it could not, or "".
class FenParser {
 public:
  explicit FenParser(const FenReading& reading) : reading_(reading) {}

  Result<Board> Parse(std::string_view text) {
    auto fields = SplitWords(text);
    std::string reason;
    if (reading_.epd_operations && fields.size() > 4) {
      size_t count = 4;
      while (count < 6 && count < fields.size() && ParseInt(fields[count])) ++count;
      if (count < fields.size()) {
        reason = Operations(text.substr(static_cast<size_t>(fields[count].data() - text.data())));
        fields.resize(count);
      }
    }
    if (fields.size() < 4 || fields.size() > 6) {
      return Bad(
          "found {} fields, expected 4 (pieces side castling en-passant), 5 (half-move clock) or 6 "
          "(move number)",
          fields.size());
    }
    if (reason.empty()) reason = Pieces(fields[0]);
    if (reason.empty()) reason = Side(fields[1]);
    if (reason.empty()) reason = Men();
    if (reason.empty()) reason = Castling(fields[2]);
    if (reason.empty()) reason = EnPassant(fields[3]);
    if (reason.empty() && fields.size() > 4) reason = HalfmoveClock(fields[4]);
    if (reason.empty() && fields.size() > 5) reason = MoveNumber(fields[5]);
    if (!reason.empty()) return Bad("{}", reason);

    const Board board = Board::Make(parts_);
    const Color waiting = ~board.side_to_move();
    if ((board.AttackersOf(board.KingOf(waiting), board.occupied()) &
         board.pieces(board.side_to_move())) != 0) {
      return Bad("{} is in check but it is {}'s move", Name(waiting), Name(~waiting));
    }
    return board;
  }

 private:
  std::string Pieces(std::string_view field) {
    const auto ranks = Split(field, '/');
    if (ranks.size() != 8) return fmt::format("found {} ranks, expected 8", ranks.size());
    for (size_t i = 0; i < 8; ++i) {
      if (auto reason = Rank(ranks[i], 7 - static_cast<int>(i)); !reason.empty()) return reason;
    }
    return "";
  }

  std::string Rank(std::string_view text, int rank) {
    int file = 0;
    bool after_number = false;
    for (char c : text) {
      const bool number = c >= '1' && c <= '8';
      if (number && after_number) return fmt::format("rank {}: two numbers in a row", rank + 1);
      after_number = number;
      if (number) {
        file += c - '0';
      } else if (const auto piece = Piece::FromLetter(c)) {
        if (file < 8) At(Square::At(file, rank)) = *piece;
        ++file;
      } else {
        return fmt::format("rank {}: {} is neither a piece nor a number from 1 to 8", rank + 1,
                           Quoted(std::string_view(&c, 1)));
      }
      if (file > 8) break;
    }
    if (file == 8) return "";
    return fmt::format("rank {}: {} has {} squares, expected 8", rank + 1, Quoted(text),
                       file > 8 ? "too many" : std::to_string(file));
  }

  std::string Side(std::string_view field) {
    if (field != "w" && field != "b") {
      return fmt::format("side to move: found {}, expected w or b", Quoted(field));
    }
    parts_.side_to_move = field == "w" ? Color::kWhite : Color::kBlack;
    return "";
  }

  // How many of what stand where.
  std::string Men() const {
    for (Color color : {Color::kWhite, Color::kBlack}) {
      int men = 0;
      int kings = 0;
      int pawns = 0;
      for (int i = 0; i < 64; ++i) {
        const Piece piece = At(Square(i));
        if (piece.empty() || piece.color() != color) continue;
        ++men;
        if (piece.type() == PieceType::kKing) ++kings;
        if (piece.type() != PieceType::kPawn) continue;
        ++pawns;
        if (Square(i).rank() == 0 || Square(i).rank() == 7) {
          return fmt::format("a pawn stands on {}", Square(i).Name());
        }
      }
      if (kings != 1) return fmt::format("{} has {} kings, expected 1", Name(color), kings);
      if (men > 16) return fmt::format("{} has {} pieces, expected at most 16", Name(color), men);
      if (pawns > 8) return fmt::format("{} has {} pawns, expected at most 8", Name(color), pawns);
    }
    return "";
  }

  std::string Castling(std::string_view field) {
    if (field == "-") return "";
    Bitboard rooks = 0;
    for (char letter : field) {
      const bool usual = std::string_view("KQkq").find(letter) != std::string_view::npos;
      const char file = static_cast<char>(letter | 0x20);
      if (!usual && (!reading_.chess960 || file < 'a' || file > 'h')) {
        return fmt::format("castling rights: found {}, expected - or letters of KQkq",
                           Quoted(field));
      }
      const auto rook = usual ? RookByWing(letter) : RookByFile(letter);
      if (!rook && reading_.drop_wrong_castling) continue;
      if (!rook) {
        return fmt::format(
            "castling right {}: king or rook is not on its square{}", letter,
            reading_.chess960 ? "" : " (a Chess960 position is read as such on request)");
      }
      if ((rooks & rook->bit()) != 0) {
        return fmt::format("castling rights: {} names one right twice", Quoted(field));
      }
      rooks |= rook->bit();
    }
    // One rook on either side of the king: a set with two on one side is no set of rights.
    for (Color color : {Color::kWhite, Color::kBlack}) {
      const auto king = KingOf(color);
      const Bitboard mine = rooks & BackRank(color);
      if (PopCount(mine & (king.bit() - 1)) > 1 || PopCount(mine & ~(king.bit() - 1)) > 1) {
        return fmt::format("castling rights: {} gives two rooks on one side of the king",
                           Quoted(field));
      }
    }
    parts_.castling_rooks = rooks;
    return "";
  }

  // K, Q, k, q: the corner rook, or in Chess960 the outermost rook on that side of the king.
  std::optional<Square> RookByWing(char letter) const {
    const Color color = ColorOfLetter(letter);
    const int rank = color == Color::kWhite ? 0 : 7;
    const bool king_side = (letter | 0x20) == 'k';
    const Square king = KingOf(color);
    if (king.rank() != rank) return std::nullopt;
    const Square corner = Square::At(king_side ? 7 : 0, rank);
    const Piece rook(color, PieceType::kRook);
    if (!reading_.chess960) {
      if (king.file() != 4 || At(corner) != rook) return std::nullopt;
      return corner;
    }
    const int step = king_side ? -1 : 1;
    for (int file = corner.file(); file != king.file(); file += step) {
      if (At(Square::At(file, rank)) == rook) return Square::At(file, rank);
    }
    return std::nullopt;
  }

  // A to H, a to h: Shredder-FEN names the rook's file.
  std::optional<Square> RookByFile(char letter) const {
    const Color color = ColorOfLetter(letter);
    const Square square = Square::At((letter | 0x20) - 'a', color == Color::kWhite ? 0 : 7);
    if (KingOf(color).rank() != square.rank()) return std::nullopt;
    if (At(square) != Piece(color, PieceType::kRook)) return std::nullopt;
    return square;
  }

  // The passed square and the pawn's first square are empty and the pawn stands beyond.
  std::string EnPassant(std::string_view field) {
    if (field == "-") return "";
    const auto passed = Square::FromName(field);
    const bool white = parts_.side_to_move == Color::kWhite;
    if (!passed || passed->rank() != (white ? 5 : 2)) {
      return fmt::format("en passant: found {}, expected - or a square on rank {}", Quoted(field),
                         white ? 6 : 3);
    }
    const int forward = white ? -8 : 8;  // The way the passing pawn went.
    const Square pawn(passed->index() + forward);
    const Square origin(passed->index() - forward);
    if (!At(*passed).empty() || !At(origin).empty() ||
        At(pawn) != Piece(~parts_.side_to_move, PieceType::kPawn)) {
      return fmt::format("en passant: no pawn can just have passed {}", passed->Name());
    }
    parts_.en_passant = *passed;
    return "";
  }

  std::string HalfmoveClock(std::string_view field) {
    const auto clock = ParseInt(field);
    if (!clock || *clock < 0 || *clock > kMaxCounter) {
      return fmt::format("half-move clock: found {}, expected a number from 0 to {}", Quoted(field),
                         kMaxCounter);
    }
    parts_.halfmove_clock = static_cast<int>(*clock);
    return "";
  }

  std::string MoveNumber(std::string_view field) {
    const auto number = ParseInt(field);
    if (!number || *number < 0 || *number > kMaxCounter) {
      return fmt::format("move number: found {}, expected a number from 1 to {}", Quoted(field),
                         kMaxCounter);
    }
    parts_.fullmove_number = *number == 0 ? 1 : static_cast<int>(*number);  // Some count from 0.
    return "";
  }

  // "bm Nf3; id \"a;b\"; hmvc 3;": an operation is an opcode and its operands, semicolons separate
  // them, and one in quotes belongs to its text. Perft suites (";D1 20 ;D2 400") pass too.
  std::string Operations(std::string_view text) {
    bool quoted = false;
    bool separated = false;
    size_t begin = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
      const bool end = i == text.size();
      if (!end && text[i] == '"') quoted = !quoted;
      if (!end && (text[i] != ';' || quoted)) continue;
      separated = separated || !end;
      if (auto reason = Operation(text.substr(begin, i - begin)); !reason.empty()) return reason;
      begin = i + 1;
    }
    if (separated) return "";
    return fmt::format("found {} after the fields, expected EPD operations such as bm Nf3;",
                       Quoted(text));
  }

  std::string Operation(std::string_view text) {
    const auto words = SplitWords(text);
    if (words.empty()) return "";
    const char first = static_cast<char>(words[0].front() | 0x20);
    if (first < 'a' || first > 'z') {
      return fmt::format("EPD operation {}: expected a name such as bm first", Quoted(text));
    }
    if (words[0] == "hmvc") return HalfmoveClock(words.size() == 2 ? words[1] : "");
    if (words[0] == "fmvn") return MoveNumber(words.size() == 2 ? words[1] : "");
    return "";
  }

  const Piece& At(Square square) const {
    return parts_.squares[static_cast<size_t>(square.index())];
  }
  Piece& At(Square square) { return parts_.squares[static_cast<size_t>(square.index())]; }
  // After Men() there is one.
  Square KingOf(Color color) const {
    int i = 0;
    while (At(Square(i)) != Piece(color, PieceType::kKing)) ++i;
    return Square(i);
  }

  const FenReading reading_;
  BoardParts parts_;
};

std::string PiecesText(const Board& board) {
  std::string text;
  for (int rank = 7; rank >= 0; --rank) {
    int empty = 0;
    for (int file = 0; file < 8; ++file) {
      const Piece piece = board.PieceAt(Square::At(file, rank));
      if (piece.empty()) {
        ++empty;
        continue;
      }
      if (empty > 0) text += static_cast<char>('0' + std::exchange(empty, 0));
      text += piece.Letter();
    }
    if (empty > 0) text += static_cast<char>('0' + empty);
    if (rank > 0) text += '/';
  }
  return text;
}

std::string CastlingText(const Board& board) {
  std::string text;
  for (Color color : {Color::kWhite, Color::kBlack}) {
    for (CastlingSide side : {CastlingSide::kKing, CastlingSide::kQueen}) {
      const auto rook = board.CastlingRook(color, side);
      if (!rook) continue;
      const bool king_side = side == CastlingSide::kKing;
      const Bitboard rooks = board.pieces(color, PieceType::kRook) & BackRank(color);
      const Bitboard further =
          king_side ? rooks & ~(rook->bit() | (rook->bit() - 1)) : rooks & (rook->bit() - 1);
      char letter = king_side ? 'K' : 'Q';
      if (further != 0) letter = static_cast<char>('A' + rook->file());
      text += color == Color::kWhite ? letter : static_cast<char>(letter | 0x20);
    }
  }
  return text.empty() ? "-" : text;
}

}  // namespace

Result<Board> ParseFen(std::string_view text, const FenReading& reading) {
  return FenParser(reading).Parse(text);
}

std::string ToFen(const Board& board, const FenWriting& writing) {
  const auto passed = writing.every_passed_square ? board.passed_square() : board.en_passant();
  std::string text = fmt::format("{} {} {} {}", PiecesText(board),
                                 board.side_to_move() == Color::kWhite ? 'w' : 'b',
                                 CastlingText(board), passed ? passed->Name() : "-");
  if (writing.counters) {
    text += fmt::format(" {} {}", board.halfmove_clock(), board.fullmove_number());
  }
  return text;
}

}  // namespace kibitz::chess
