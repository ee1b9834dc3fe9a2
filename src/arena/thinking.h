// Does thinking help? The same positions, the decoder's instinct against its move after thinking,
// by a judge; and whether its thoughts are well formed.
//
//   const ThinkingResult result = RunThinking(positions, options, judge, run, settings, &progress);
//   Use(result.budgets.back().thinking_better, result.budgets.back().p_value);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arena/game_run.h"
#include "arena/judge.h"
#include "arena/statistics/intervals.h"
#include "base/options.h"
#include "games/chess/board.h"

namespace kibitz::arena {

struct ThinkingOptions {
  std::string model = {};
  std::vector<int> variations = {1, 2, 3, 5, 0};  // Budgets; 0: as many as the network wants.
  std::vector<int> times = {};                    // Further budgets, in milliseconds.
  int equal = 10;              // Moves whose scores differ by no more centipawns are equally good.
  std::string precision = {};  // Of the network; "": as by default.
  bool one_ply = false;        // Of instinct and thinker alike; off: the bare network is measured.
};
// All but the model.
Fields FieldsOf(ThinkingOptions& options);

// One budget's moves against another's, on the same positions.
struct BudgetPair {
  int64_t better = 0;
  int64_t worse = 0;
  double p_value = 1;   // McNemar's exact test.
  Resampled gain = {};  // Centipawns, by paired bootstrap.
};

// The move after thinking with one budget against the instinct's.
struct BudgetResult {
  std::string name;  // "2 variations", "own length", "100 ms"
  int64_t positions = 0;
  int64_t changed = 0;  // Another move than the instinct's.
  int64_t thinking_better = 0;
  int64_t instinct_better = 0;
  int64_t equal = 0;
  double p_value = 1;       // McNemar's exact test.
  double loss = 0;          // Mean centipawns lost against the best move, each at most 1000.
  Resampled gain = {};      // Centipawns that thinking gains on the instinct, by paired bootstrap.
  double milliseconds = 0;  // Mean time of a move.
  double nodes = 0;         // Mean number of positions that the thought gave a value to.
  BudgetPair versus_first = {};  // Against the first budget; nothing in the first itself.
};

// Thoughts as the network writes them by itself, with nothing enforced.
struct ThoughtForm {
  int64_t thoughts = 0;
  int64_t ended = 0;  // By themselves, not by the maximum length.
  int64_t variations = 0;
  int64_t variations_ended = 0;  // By end_var.
  int64_t moves = 0;             // In variations, and the final ones.
  int64_t legal_moves = 0;
  int64_t final_moves = 0;
  int64_t legal_final_moves = 0;
  int64_t boards = 0;        // After legal moves.
  int64_t right_boards = 0;  // As the rules have them, all 68 tokens.
  int64_t tokens = 0;        // Of those boards: squares, side, castling and so on.
  int64_t right_tokens = 0;
  int64_t well_formed = 0;  // Thoughts that ended, with legal moves and right boards only.
};

struct ThinkingResult {
  std::string model;
  std::string judge;
  bool one_ply = false;
  int64_t positions = 0;
  int64_t unknown = 0;  // To the judge: left out.
  double instinct_loss = 0;
  std::vector<BudgetResult> budgets;  // In the order asked for; the headline is the last of the
                                      // variations.
  size_t headline = 0;
  ThoughtForm form;

  Json ToJson() const;
  std::string Text() const;
  Page ToPage() const;
};

ThinkingResult RunThinking(const std::vector<chess::Board>& positions,
                           const ThinkingOptions& options, Judging& judge, const RunOptions& run,
                           const Json& settings, Progress* progress);

}  // namespace kibitz::arena
