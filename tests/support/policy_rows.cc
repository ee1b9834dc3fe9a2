#include "tests/support/policy_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "io/bytes/byte_sink.h"
#include "io/tables/parquet.h"

namespace kibitz::testing {
namespace {

using chess::Board;

constexpr size_t kOpening = 6;     // Plies that all games share too often to be worth a row.
constexpr size_t kPositions = 40;  // Of a game.
constexpr size_t kTail = 18;       // Plies after the last one, for its line.
constexpr size_t kPasses = 3;      // Over all games until each position has its first rows.

struct Game {
  std::vector<Board> boards;       // Before each move.
  std::vector<std::string> moves;  // In king-takes-rook notation.
};

Game PlayGame(uint64_t seed, uint64_t number) {
  Rng rng({.seed = seed, .epoch = 0, .sample = number, .purpose = Purpose("evaluation game")});
  Game game;
  Board board;
  while (game.boards.size() < kOpening + kPositions + kTail) {
    const chess::MoveList moves = LegalMoves(board);
    if (moves.empty()) break;
    const chess::Move move = moves[rng.Below(moves.size())];
    game.boards.push_back(board);
    game.moves.push_back(ToText(board, move, chess::MoveStyle::kUciRook));
    board = board.After(move);
  }
  return game;
}

// The first move, then how the game went on.
std::string LineFrom(const Game& game, size_t at, const std::string& first, uint64_t length) {
  std::string line = first;
  for (size_t i = at + 1; i < std::min(game.moves.size(), at + length); ++i)
    line += " " + game.moves[i];
  return line;
}

void SetScore(Rng& rng, EvaluationRow& row) {
  row.cp.reset();
  row.mate.reset();
  if (rng.Below(14) == 0) {
    row.mate = static_cast<int64_t>(rng.Below(20)) - 10;
    if (*row.mate == 0) row.mate = 1;
  } else {
    row.cp = static_cast<int64_t>(rng.Below(1200)) - 600;
  }
}

// The rows of one session; how many.
uint64_t Analyse(const Game& game, size_t at, Rng& rng,
                 const std::function<void(const EvaluationRow&)>& use) {
  const Board& board = game.boards[at];
  const chess::MoveList moves = LegalMoves(board);
  EvaluationRow row;
  row.fen = chess::ToFen(board, {.counters = false});
  row.depth = static_cast<int64_t>(18 + rng.Below(30));
  row.knodes = static_cast<int64_t>(rng.Below(500'000));
  constexpr uint64_t kLines[] = {1, 1, 1, 2, 3};
  const uint64_t lines = std::min<uint64_t>(kLines[rng.Below(std::size(kLines))], moves.size());
  for (uint64_t i = 0; i < lines; ++i) {
    const std::string first =
        i == 0 ? game.moves[at]
               : ToText(board, moves[(rng.Below(moves.size()))], chess::MoveStyle::kUciRook);
    row.line = LineFrom(game, at, first, 10 + rng.Below(kTail - 9));
    row.same_session = i > 0;
    SetScore(rng, row);
    use(row);
  }
  return lines;
}

std::string PvJson(const EvaluationRow& row) {
  return fmt::format("{{\"{}\":{},\"line\":\"{}\"}}", row.mate ? "mate" : "cp",
                     row.mate ? *row.mate : *row.cp, row.line);
}

}  // namespace

void MakeEvaluations(const EvaluationPlan& plan,
                     const std::function<void(const EvaluationRow&)>& use) {
  const uint64_t games = std::max<uint64_t>(1, plan.positions / kPositions);
  uint64_t made = 0;
  // Passes over all games, each with a third of their positions: a position's rows lie passes
  // apart, and after three passes every one has been there.
  for (uint64_t pass = 0; made < plan.rows; ++pass) {
    for (uint64_t number = 0; number < games && made < plan.rows; ++number) {
      const Game game = PlayGame(plan.seed, number);
      Rng rng({.seed = plan.seed,
               .epoch = pass + 1,
               .sample = number,
               .purpose = Purpose("evaluation")});
      const size_t end = std::min(kOpening + kPositions, game.boards.size());
      for (size_t at = kOpening; at < end && made < plan.rows; ++at) {
        if ((at + number + pass) % kPasses != 0) continue;
        made += Analyse(game, at, rng, use);
      }
    }
  }
}

void WriteEvaluations(const EvaluationPlan& plan, const std::string& parquet,
                      const std::string& jsonl) {
  using io::ColumnType;
  io::ParquetWriter table(parquet, {{"fen", ColumnType::kText},
                                    {"line", ColumnType::kText},
                                    {"depth", ColumnType::kInt64},
                                    {"knodes", ColumnType::kInt64},
                                    {"cp", ColumnType::kInt64},
                                    {"mate", ColumnType::kInt64}});
  io::ByteSink lines(jsonl, {.level = jsonl.ends_with(".zst") ? 1 : 0, .threads = 1});
  std::string open;  // The end of a line whose session may go on.
  MakeEvaluations(plan, [&](const EvaluationRow& row) {
    table.SetText(0, row.fen);
    table.SetText(1, row.line);
    table.SetInt(2, row.depth);
    table.SetInt(3, row.knodes);
    if (row.cp) table.SetInt(4, *row.cp);
    if (row.mate) table.SetInt(5, *row.mate);
    table.EndRow();
    if (row.same_session) {
      lines.Write("," + PvJson(row));
      return;
    }
    lines.Write(open);
    lines.Write(fmt::format("{{\"fen\":\"{}\",\"evals\":[{{\"pvs\":[{}", row.fen, PvJson(row)));
    open = fmt::format("],\"knodes\":{},\"depth\":{}}}]}}\n", row.knodes, row.depth);
  });
  lines.Write(open);
  table.Finish();
  lines.Commit();
}

}  // namespace kibitz::testing
