#include "tests/support/decoder_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"

namespace kibitz::testing {
namespace {

using chess::Board;
using chess::Move;
using chess::MoveStyle;
using io::ColumnType;

std::array<double, 3> RandomWdl(Rng& rng) {
  const double win = rng.Uniform();
  const double draw = rng.Uniform() * (1 - win);
  const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
  const double w = rounded(win);
  const double d = rounded(draw);
  return {w, d, rounded(1 - w - d)};
}

Move RandomMove(const Board& board, Rng& rng) {
  const chess::MoveList moves = chess::LegalMoves(board);
  return moves[rng.Below(moves.size())];
}

bool Over(const Board& board) { return chess::EndingOf(board) != chess::Ending::kNone; }

// A line of random moves as the nodes of a variation.
nlohmann::json MakeNodes(Board board, int count, int64_t visits, Rng& rng) {
  nlohmann::json nodes = nlohmann::json::array();
  for (int i = 0; i < count; ++i) {
    const bool last = i + 1 == count || Over(board);
    const Move move = Over(board) ? Move() : RandomMove(board, rng);
    nlohmann::json node = {{"fen", chess::ToFen(board)},
                           {"move", nullptr},
                           {"wdl", RandomWdl(rng)},
                           {"visit_count", visits >> i}};
    if (!last) node["move"] = ToText(board, move, MoveStyle::kUci);
    nodes.push_back(std::move(node));
    if (last) break;
    board = board.After(move);
  }
  return nodes;
}

SearchRecord MakeSearch(const RecordPlan& plan, uint64_t number) {
  Rng rng({.seed = plan.seed, .sample = number, .purpose = Purpose("search record")});
  Board root;
  for (uint64_t plies = rng.Below(60); plies > 0; --plies) {
    const Board next = root.After(RandomMove(root, rng));
    if (Over(next)) break;
    root = next;
  }
  std::vector<Move> moves;
  for (Move move : chess::LegalMoves(root)) moves.push_back(move);
  rng.Shuffle(moves);
  moves.resize(std::min(moves.size(), 1 + rng.Below(static_cast<uint64_t>(plan.max_variations))));
  nlohmann::json variations = nlohmann::json::array();
  int64_t total = 0;
  std::vector<int64_t> visits;
  for (size_t i = 0; i < moves.size(); ++i) {
    visits.push_back(static_cast<int64_t>(1 + rng.Below(800 >> i)));
    total += visits.back();
  }
  size_t best = 0;
  for (size_t i = 0; i < moves.size(); ++i) {
    if (visits[i] > visits[best]) best = i;
    const int nodes = 1 + static_cast<int>(rng.Below(static_cast<uint64_t>(plan.max_nodes)));
    variations.push_back(
        {{"root_move", ToText(root, moves[i], MoveStyle::kUci)},
         {"visit_count", visits[i]},
         {"visit_fraction", static_cast<double>(visits[i]) / static_cast<double>(total)},
         {"prior", 1.0 / static_cast<double>(moves.size())},
         {"nodes", MakeNodes(root.After(moves[i]), nodes, visits[i], rng)}});
  }
  const auto [win, draw, loss] = RandomWdl(rng);
  return {chess::ToFen(root),
          variations.dump(),
          ToText(root, moves[best], MoveStyle::kUci),
          win,
          draw,
          loss};
}

void MakeGame(const RecordPlan& plan, uint64_t number,
              const std::function<void(const GameRecord&)>& use) {
  Rng rng({.seed = plan.seed, .sample = number, .purpose = Purpose("game record")});
  const uint64_t plies = 1 + rng.Below(static_cast<uint64_t>(plan.max_plies));
  Board board;
  for (uint64_t ply = 0; ply < plies && !Over(board); ++ply) {
    const Move played = RandomMove(board, rng);
    const Move best = RandomMove(board, rng);
    const auto [win, draw, loss] = RandomWdl(rng);
    use({fmt::format("g{}", number), static_cast<int64_t>(ply), chess::ToFen(board),
         ToText(board, played, MoveStyle::kModel), ToText(board, best, MoveStyle::kModel), win,
         draw, loss});
    board = board.After(played);
  }
}

template <typename Record>
void SetWdl(io::ParquetWriter& writer, size_t column, const Record& record) {
  if (record.win) writer.SetDouble(column, *record.win);
  if (record.draw) writer.SetDouble(column + 1, *record.draw);
  if (record.loss) writer.SetDouble(column + 2, *record.loss);
}

}  // namespace

void MakeGames(const RecordPlan& plan, const std::function<void(const GameRecord&)>& use) {
  for (uint64_t i = 0; i < plan.count; ++i) MakeGame(plan, i, use);
}

void MakeSearches(const RecordPlan& plan, const std::function<void(const SearchRecord&)>& use) {
  for (uint64_t i = 0; i < plan.count; ++i) use(MakeSearch(plan, i));
}

void WriteGames(const std::string& path, const RecordPlan& plan,
                const std::function<void(GameRecord&)>& change) {
  io::ParquetWriter writer(path,
                           {{"game_id", ColumnType::kText},
                            {"ply", ColumnType::kInt64},
                            {"fen", ColumnType::kText},
                            {"played_move", ColumnType::kText},
                            {"best_move", ColumnType::kText},
                            {"win", ColumnType::kDouble},
                            {"draw", ColumnType::kDouble},
                            {"loss", ColumnType::kDouble}},
                           {.row_group_rows = plan.row_group_rows});
  MakeGames(plan, [&](GameRecord record) {
    if (change) change(record);
    writer.SetText(0, record.game_id);
    writer.SetInt(1, record.ply);
    writer.SetText(2, record.fen);
    writer.SetText(3, record.played_move);
    writer.SetText(4, record.best_move);
    SetWdl(writer, 5, record);
    writer.EndRow();
  });
  writer.Finish();
}

void WriteSearches(const std::string& path, const RecordPlan& plan,
                   const std::function<void(SearchRecord&)>& change) {
  io::ParquetWriter writer(path,
                           {{"fen", ColumnType::kText},
                            {"variations", ColumnType::kText},
                            {"mcts_action", ColumnType::kText},
                            {"win", ColumnType::kDouble},
                            {"draw", ColumnType::kDouble},
                            {"loss", ColumnType::kDouble}},
                           {.row_group_rows = plan.row_group_rows});
  MakeSearches(plan, [&](SearchRecord record) {
    if (change) change(record);
    writer.SetText(0, record.fen);
    writer.SetText(1, record.variations);
    writer.SetText(2, record.mcts_action);
    SetWdl(writer, 3, record);
    writer.EndRow();
  });
  writer.Finish();
}

}  // namespace kibitz::testing
