// Made-up training records of the decoder: legal random play with random values, as Parquet files
// of the schemas that real ones have.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/random.h"
#include "io/tables/parquet.h"

namespace kibitz::testing {

// Cells of a row of a game file.
struct GameRecord {
  std::string game_id;
  int64_t ply = 0;
  std::string fen;
  std::string played_move;  // In the network's notation.
  std::string best_move;
  std::optional<double> win;
  std::optional<double> draw;
  std::optional<double> loss;
};

// Cells of a row of a file of searches.
struct SearchRecord {
  std::string fen;
  std::string variations;  // JSON.
  std::string mcts_action;
  std::optional<double> win;
  std::optional<double> draw;
  std::optional<double> loss;
};

struct RecordPlan {
  uint64_t count = 100;  // Games or searches.
  uint64_t seed = 1;
  int max_plies = 80;  // Of a game.
  int max_variations = 5;
  int max_nodes = 8;  // Of a variation.
  uint64_t row_group_rows = 2048;
};

// Calls use(record) for every row, in order. Chance hangs on the seed and the record's number.
void MakeGames(const RecordPlan& plan, const std::function<void(const GameRecord&)>& use);
void MakeSearches(const RecordPlan& plan, const std::function<void(const SearchRecord&)>& use);

// The same as a file. `change` may spoil a record before it is written.
void WriteGames(const std::string& path, const RecordPlan& plan,
                const std::function<void(GameRecord&)>& change = {});
void WriteSearches(const std::string& path, const RecordPlan& plan,
                   const std::function<void(SearchRecord&)>& change = {});

}  // namespace kibitz::testing
