#include "games/chess/perft.h"

#include <atomic>

#include "base/check.h"
#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "games/chess/movegen.h"

namespace kibitz::chess {
namespace {

constexpr int kLookDepth = 5;  // Some milliseconds of work: often enough to look for Ctrl-C.

template <Color us, PerftLeaf leaf>
uint64_t Count(const Board& board, int depth) {
  if (leaf == PerftLeaf::kCount && depth == 1) {
    return static_cast<uint64_t>(CountLegalMovesFor<us>(board));
  }
  if (depth == kLookDepth) ThrowIfInterrupted();
  MoveList moves;
  AddLegalMoves<us>(board, moves);
  if (depth == 1) return moves.size();
  uint64_t nodes = 0;
  for (Move move : moves) nodes += Count<~us, leaf>(board.AfterFor<us>(move), depth - 1);
  return nodes;
}

template <PerftLeaf leaf>
uint64_t CountFor(const Board& board, int depth) {
  return board.side_to_move() == Color::kWhite ? Count<Color::kWhite, leaf>(board, depth)
                                               : Count<Color::kBlack, leaf>(board, depth);
}

}  // namespace

uint64_t Perft(const Board& board, int depth, PerftLeaf leaf) {
  if (depth <= 0) return 1;
  return leaf == PerftLeaf::kCount ? CountFor<PerftLeaf::kCount>(board, depth)
                                   : CountFor<PerftLeaf::kList>(board, depth);
}

std::vector<PerftMove> PerftDivide(const Board& board, int depth, const PerftProgress& progress) {
  CHECK(depth >= 1);
  // Parts of two plies, small enough to share out and to stop between.
  struct Part {
    size_t root;
    Board board;
    int depth;
  };
  std::vector<PerftMove> moves;
  std::vector<Part> parts;
  for (Move move : LegalMoves(board)) {
    moves.push_back({move, 0});
    const Board next = board.After(move);
    if (depth < 3) {
      parts.push_back({moves.size() - 1, next, depth - 1});
      continue;
    }
    for (Move reply : LegalMoves(next)) {
      parts.push_back({moves.size() - 1, next.After(reply), depth - 2});
    }
  }
  std::vector<uint64_t> nodes(parts.size());
  std::atomic<size_t> done{0};
  ThreadPool pool(progress.threads);
  pool.ParallelFor(parts.size(), [&](size_t i) {
    nodes[i] = Perft(parts[i].board, parts[i].depth);
    if (progress.on_part) progress.on_part(++done, parts.size());
  });
  for (size_t i = 0; i < parts.size(); ++i) moves[parts[i].root].nodes += nodes[i];
  return moves;
}

}  // namespace kibitz::chess
