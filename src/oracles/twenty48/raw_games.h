// Games of an oracle as files, in Macroxue's layout: NAME.meta.json with the game's metadata, and
// NAME.jsonl.gz with one line per move: the board, the move made, and the values of all four.
//
//   RawGame game = ReadRawGame("selfplay/depth02_worker00_seed0000000007_game000000.meta.json");
//   for (const RawStep& step : game.steps) Use(step.board, step.move, step.branch_evs);
//
// The board decides which moves are legal: for illegal moves older programs write 0.0, others
// null. docs/FORMATS.md has the fields.
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
  std::string steps_file;  // The writer's path; readers look beside the meta file.
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

// Reads and checks both files of a game. Throws Error with file and line for any fault: a missing
// file, a broken archive, a line that is not JSON, a board of 15 cells, a rank above 17, a value
// that is infinite or NaN, an illegal or unknown move, a legal move without a value, a number of
// lines other than num_moves.
RawGame ReadRawGame(const std::string& meta_path);
// Reads the metadata alone.
RawMeta ReadRawMeta(const std::string& meta_path);

// Writes NAME.jsonl.gz, then NAME.meta.json: a game with the second file is complete.
void WriteRawGame(const std::string& folder, const RawGame& game);

// One line of the .jsonl.gz, with its newline.
std::string RawLine(const RawStep& step);

// All files NAME.meta.json below the folder, sorted by path. Throws Error for a NAME.jsonl.gz
// without one, unless `orphans` collects their paths.
std::vector<std::string> FindRawGames(const std::string& folder,
                                      std::vector<std::string>* orphans = nullptr);

}  // namespace kibitz::oracles
