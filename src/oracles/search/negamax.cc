#include "oracles/search/negamax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::Color;
using chess::Move;
using chess::PieceType;

constexpr std::array<int, 7> kValues = {0, 100, 320, 330, 500, 900, 0};
constexpr int kInfinity = 2 * kMateScore;
constexpr int64_t kNodesBetweenLooks = 256;

// Bonuses by rank and by file towards the centre, seen from White: their sum is the square's.
struct PieceTable {
  std::array<int, 8> rank;
  std::array<int, 4> file;  // From the edge to the centre.
};

constexpr std::array<PieceTable, 7> kTables = {{
    {},
    {{0, -5, 0, 10, 15, 30, 50, 0}, {-5, 0, 5, 10}},            // Pawn
    {{-30, -10, 5, 10, 15, 10, -5, -30}, {-20, -5, 5, 10}},     // Knight
    {{-10, 5, 5, 5, 5, 5, 0, -5}, {-10, 0, 0, 5}},              // Bishop
    {{0, 0, 0, 0, 0, 0, 15, 5}, {-5, 0, 2, 5}},                 // Rook
    {{-5, 0, 2, 3, 3, 2, 0, -5}, {-5, 0, 2, 3}},                // Queen
    {{15, 5, -15, -30, -40, -45, -50, -50}, {15, 15, 0, -10}},  // King
}};
// With few pieces the king belongs into the centre.
constexpr PieceTable kEndgameKing = {{-25, -10, 5, 15, 20, 20, 10, -10}, {-20, -5, 5, 10}};

int SquareBonus(const PieceTable& table, chess::Square square, Color color) {
  const int rank = color == Color::kWhite ? square.rank() : 7 - square.rank();
  const int file = std::min(square.file(), 7 - square.file());
  return table.rank[static_cast<size_t>(rank)] + table.file[static_cast<size_t>(file)];
}

bool IsEndgame(const Board& board) {
  int officers = 0;
  for (PieceType type :
       {PieceType::kKnight, PieceType::kBishop, PieceType::kRook, PieceType::kQueen}) {
    officers += kValues[static_cast<size_t>(type)] * std::popcount(board.pieces(type));
  }
  return officers <= 2600;
}

int ScoreOf(const Board& board, Color color, Material material) {
  int score = 0;
  const bool endgame = material == Material::kTables && IsEndgame(board);
  for (PieceType type : chess::kPieceTypes) {
    const auto index = static_cast<size_t>(type);
    chess::Bitboard left = board.pieces(color, type);
    score += kValues[index] * std::popcount(left);
    if (material == Material::kPieces) continue;
    const PieceTable& table = type == PieceType::kKing && endgame ? kEndgameKing : kTables[index];
    for (; left != 0; left &= left - 1) score += SquareBonus(table, chess::First(left), color);
  }
  return score;
}

bool IsCapture(const Board& board, Move move) {
  if (move.kind() == Move::Kind::kEnPassant) return true;
  return move.kind() != Move::Kind::kCastle && !board.PieceAt(move.to()).empty();
}

// Captures of much by little first.
int CaptureRank(const Board& board, Move move) {
  if (!IsCapture(board, move)) return move.promotion() == PieceType::kQueen ? 800 : 0;
  const PieceType taken =
      move.kind() == Move::Kind::kEnPassant ? PieceType::kPawn : board.PieceAt(move.to()).type();
  const PieceType mover = board.PieceAt(move.from()).type();
  return 1000 + 10 * kValues[static_cast<size_t>(taken)] - kValues[static_cast<size_t>(mover)];
}

std::vector<Move> Ordered(const Board& board, bool captures_only) {
  std::vector<Move> moves;
  for (Move move : chess::LegalMoves(board)) {
    if (!captures_only || IsCapture(board, move) || move.promotion() == PieceType::kQueen) {
      moves.push_back(move);
    }
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [&](Move a, Move b) { return CaptureRank(board, a) > CaptureRank(board, b); });
  return moves;
}

int Quiet(const Board& board, Material material, int alpha, int beta) {
  const int standing = StaticScore(board, material);
  if (standing >= beta) return standing;
  int best = standing;
  alpha = std::max(alpha, standing);
  for (Move move : Ordered(board, true)) {
    const int score = -Quiet(board.After(move), material, -beta, -alpha);
    best = std::max(best, score);
    alpha = std::max(alpha, score);
    if (alpha >= beta) break;
  }
  return best;
}

class Searcher {
 public:
  Searcher(const GameSoFar& game, const NegamaxOptions& options) : options_(options) {
    boards_.push_back(game.start);
    for (Move move : game.moves) boards_.push_back(boards_.back().After(move));
  }

  const Board& root() const { return boards_.front(); }
  const Board& current() const { return boards_.back(); }
  int64_t nodes() const { return nodes_; }
  bool stopped() const { return stopped_; }

  // For the side to move; `pv` becomes the best line from here.
  int Search(int depth, int ply, int alpha, int beta, std::vector<Move>& pv) {
    pv.clear();
    ++nodes_;
    if (nodes_ % kNodesBetweenLooks == 0 && options_.stop.stop_requested()) stopped_ = true;
    const Board board = current();
    if (!chess::HasLegalMove(board)) return board.InCheck() ? ply - kMateScore : 0;
    if (IsDraw()) return 0;
    if (depth == 0) return StaticScore(board, options_.material);
    int best = -kInfinity;
    std::vector<Move> below;
    for (Move move : Ordered(board, false)) {
      boards_.push_back(board.After(move));
      const int score = -Search(depth - 1, ply + 1, -beta, -alpha, below);
      boards_.pop_back();
      if (stopped_) return best;
      if (score > best) {
        best = score;
        pv.assign(1, move);
        pv.insert(pv.end(), below.begin(), below.end());
      }
      alpha = std::max(alpha, score);
      if (alpha >= beta) break;
    }
    return best;
  }

  void Push(const Board& board) { boards_.push_back(board); }
  void Pop() { boards_.pop_back(); }

 private:
  bool IsDraw() const {
    return current().halfmove_clock() >= 100 || chess::IsInsufficientMaterial(current()) ||
           chess::EarlierOccurrences(boards_) >= 1;
  }

  NegamaxOptions options_;
  std::vector<Board> boards_;  // The game, then the line.
  int64_t nodes_ = 0;
  bool stopped_ = false;
};

}  // namespace

int StaticScore(const Board& board, Material material) {
  const int white =
      ScoreOf(board, Color::kWhite, material) - ScoreOf(board, Color::kBlack, material);
  return board.side_to_move() == Color::kWhite ? white : -white;
}

double ExpectedResult(int centipawns) { return std::atan(centipawns / 90.0) / 1.5637541897; }

int QuietScore(const Board& board, Material material) {
  return Quiet(board, material, -kInfinity, kInfinity);
}

NegamaxResult Negamax(const GameSoFar& game, const NegamaxOptions& options) {
  CHECK(options.depth >= 1);
  NegamaxResult result;
  Searcher searcher(game, options);
  const Board board = searcher.current();
  for (Move move : Ordered(board, false)) result.moves.push_back({move, 0, {move}});
  for (int depth = 1; depth <= options.depth && !result.moves.empty(); ++depth) {
    std::vector<ScoredMove> scored;
    for (const ScoredMove& before : result.moves) {
      searcher.Push(board.After(before.move));
      std::vector<Move> below;
      const int score = -searcher.Search(depth - 1, 1, -kInfinity, kInfinity, below);
      searcher.Pop();
      if (searcher.stopped() && depth > 1) return result;
      below.insert(below.begin(), before.move);
      scored.push_back({before.move, score, std::move(below)});
    }
    std::stable_sort(scored.begin(), scored.end(),
                     [](const ScoredMove& a, const ScoredMove& b) { return a.score > b.score; });
    result.moves = std::move(scored);
    result.depth = depth;
    result.nodes = searcher.nodes();
  }
  return result;
}

}  // namespace kibitz::oracles
