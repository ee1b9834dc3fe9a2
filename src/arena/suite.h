// Test positions with known best moves: EPD suites with bm, am, and points for several moves (the
// Strategic Test Suite).
//
//   const std::vector<SuitePosition> suite = LoadSuite({"sts.epd"});
//   const SuiteResult result = RunSuite(suite, asker, run, settings, &progress);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "arena/asker.h"
#include "arena/game_run.h"

namespace kibitz::arena {

struct SuitePosition {
  std::string id;
  std::string theme;  // The id without its number: "STS(v1.0) Undermine" of "... Undermine.005".
  chess::Board board;
  std::vector<chess::Move> best;   // bm
  std::vector<chess::Move> avoid;  // am
  // Points of moves: c8 beside c9 (UCI) or c7 (SAN), else c0 ("Nf3=10, d4=5"). Empty: none.
  std::vector<std::pair<chess::Move, int>> points;

  int most_points() const;
};

// Every line has bm, am or points. Throws Error with file and line.
std::vector<SuitePosition> LoadSuite(const std::vector<std::string>& paths);

struct SuiteCounts {
  int64_t positions = 0;
  int64_t solved = 0;  // A best move, and none to avoid.
  int64_t points = 0;
  int64_t most_points = 0;
};

struct SuiteResult {
  std::string player;
  std::optional<bool> one_ply = {};  // As OnePlyOf.
  SuiteCounts all;
  std::map<std::string, SuiteCounts> themes;
  int64_t failures = 0;               // Positions without an answer.
  std::vector<std::string> unsolved;  // Ids.

  Json ToJson() const;
  std::string Text() const;
  Page ToPage() const;
};

SuiteResult RunSuite(const std::vector<SuitePosition>& suite, Asker& asker, const RunOptions& run,
                     const Json& settings, Progress* progress);

}  // namespace kibitz::arena
