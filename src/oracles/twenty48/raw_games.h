// Games of an oracle as files, in Macroxue's layout: NAME.meta.json with figures of the game, and
// NAME.jsonl.gz with a line for each move: the board, the move, and the value of all four.
//
//   RawGame game = ReadRawGame("selfplay/depth02_worker00_seed0000000007_game000000.meta.json");
//   for (const RawStep& step : game.steps) Use(step.board, step.move, step.branch_evs);
//
// Which moves are legal follows from the board: rows of older programs say 0.0 for illegal moves,
// others null. docs/FORMATS.md has the fields.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "games/twenty48/board.h"

namespace kibitz::oracles {

struct RawMeta {
  uint32_t seed = 0;
  int depth = 0;
  int64_t game_index = 0;
  std::string steps_file;  // As the writer called it; readers look beside the meta file.
  int64_t num_moves = 0;
  int64_t score = 0;
  int64_t max_tile = 0;
  int max_rank = 0;
  int64_t sum_tile = 0;
  double seconds = 0;
};

struct RawStep {
  uint32_t seed = 0;
  uint32_t step_index = 0;
  twenty48::Board board;
  twenty48::Move move = twenty48::Move::kUp;
  std::string valuation_type = "search";
  double valuation = 0;  // Of the move.
  // By IndexOf(move); nothing where the file says null. An illegal move may have a value.
  std::array<std::optional<double>, 4> branch_evs;
};

struct RawGame {
  RawMeta meta;
  std::vector<RawStep> steps;
};

// "depth02_worker00_seed0710363253_game000000".
std::string RawGameName(const RawMeta& meta);

// Reads and checks both files of a game. Throws Error with file and line for anything that is not
// as it must be: a missing file, a broken archive, a line that is no JSON, a board of 15 cells, a
// rank beyond 17, a value that is no finite number, an illegal or unknown move, a legal move
// without a value, a count that does not fit the meta file.
RawGame ReadRawGame(const std::string& meta_path);
// The file of figures alone.
RawMeta ReadRawMeta(const std::string& meta_path);

// Writes NAME.jsonl.gz, then NAME.meta.json: where the latter is, the game is whole.
void WriteRawGame(const std::string& folder, const RawGame& game);

// One line of the .jsonl.gz, with its end.
std::string RawLine(const RawStep& step);

// All files NAME.meta.json below the folder, sorted by path. Throws Error when there is a
// NAME.jsonl.gz without one, unless `orphans` takes their paths.
std::vector<std::string> FindRawGames(const std::string& folder,
                                      std::vector<std::string>* orphans = nullptr);

}  // namespace kibitz::oracles
