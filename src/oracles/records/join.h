// Joins finished parts into the file that students read. Parquet files have the options in their
// metadata under "kibitz".
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "oracles/records/part_store.h"

namespace kibitz::oracles {

struct Joined {
  int64_t units = 0;  // Games or positions.
  int64_t rows = 0;
  int64_t duplicates = 0;                  // Games that the file already has; dropped.
  std::map<std::string, int64_t> results;  // Of games: "1-0", ...

  nlohmann::ordered_json ToJson() const;
};

// Columns game_id, ply, fen, played_move, best_move, win, draw, loss, played_q, played_d.
Joined JoinGames(const PartStore& parts);
// Columns fen, variations, mcts_action, win, draw, loss.
Joined JoinSearches(const PartStore& parts);
// By the ending of the output: .parquet with the columns fen, line, depth, knodes, cp, mate and a
// row for each line, or .jsonl, .jsonl.zst, .jsonl.gz with an object for each position.
Joined JoinEvals(const PartStore& parts);

// Throws Error::Usage unless the kind can be written to a file of this extension.
void CheckParquetName(const std::string& out);
void CheckEvalsName(const std::string& out);

}  // namespace kibitz::oracles
