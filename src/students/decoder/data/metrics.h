// The metrics of training, as sums and counts that add up over batches.
//
//   Metrics metrics = CountMetrics(batch, scores);
//   metrics += CountMetrics(batch, scores);
//   auto values = NamedValues(metrics, Phase::kFinetune);  // {{"board_acc", 0.91}, ...}
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "students/decoder/data/batch.h"

namespace kibitz::decoder {

// Pretraining has games only, and no thinking policy head.
enum class Phase : uint8_t { kPretrain, kFinetune };

struct LossWeights {
  double final_move = 5;  // Pretraining's `move_weight`.
  double thinking_move = 2;
  double board = 1;
  double wl = 1;
  double d = 1;
  double instinct = 5;     // The move at the root of a thought.
  double branch_wl = 1;    // wl of branches.
  double piece_moves = 2;  // Moves from and to squares of the root.
  double threats = 1;      // The same of the opponent.
  double early_end = 5;    // The final move behind a variation that is not the last.
  double legal = 0;        // Probability of illegal moves, where the legal ones are known.
};

struct Mean {
  double sum = 0;
  double count = 0;

  void Add(double value) {
    sum += value;
    count += 1;
  }
  double Value() const { return count > 0 ? sum / count : 0; }
};

struct Metrics {
  Mean total_loss;  // One value for each batch; the other losses, one for each target.
  Mean final_move_loss;
  Mean thinking_move_loss;
  Mean board_loss;
  Mean wl_loss;
  Mean d_loss;
  Mean instinct_loss;
  Mean piece_move_loss;
  Mean threat_loss;
  Mean branch_wl_loss;
  Mean early_end_loss;
  Mean legal_loss;

  Mean final_move_acc;
  Mean thinking_move_acc;
  Mean instinct_acc;
  Mean piece_move_acc;
  Mean threat_acc;
  Mean early_end_acc;
  Mean legal_acc;  // The most likely move is legal, where the legal ones are known.
  Mean board_acc;
  // Blocks without a wrong token; a token outside boards is a block of its own.
  Mean board_total_acc;
  // The same for boards only: blocks with more than one target.
  Mean board_total_acc_real_blocks;
  Mean board_square_acc;    // The same for the 64 squares of those boards.
  Mean board_castling_acc;  // Castling rights token.
  Mean board_stm_acc;       // Side to move token.
  Mean end_var_acc;         // Of the board head, where end_var is its target; likewise below.
  Mean end_think_acc;
  Mean continue_var_acc;
  Mean new_variation_acc;
  Mean final_move_acc_reordered;  // Where the first variation is not the best.

  Mean wl_mae;  // Absolute error of the distribution's mean.
  Mean d_mae;
  Mean branch_wl_mae;

  // Samples in a batch, mean over the batches.
  Mean batch_thinking_samples;
  Mean batch_normal_samples;
  Mean n_reordered_samples;

  Metrics& operator+=(const Metrics& other);
};

// Names as the reference logs them, without "train/". Metrics with a count of 0 are left out.
// Pretraining's names are move_loss and move_acc, and it has none of thinking.
std::vector<std::pair<std::string, Mean>> NamedMeans(const Metrics& metrics, Phase phase);
std::vector<std::pair<std::string, double>> NamedValues(const Metrics& metrics, Phase phase);

// Results of the heads on a batch, in the order of its lists.
struct Scores {
  std::vector<float> board_loss;  // One for each board target.
  std::vector<uint8_t> board_hit;
  std::vector<float> move_loss;  // One for each of batch.moves.
  std::vector<uint8_t> move_hit;
  std::vector<float> wl_loss;  // One for each of batch.values that is valid.
  std::vector<float> d_loss;
  std::vector<float> wl_error;  // Absolute.
  std::vector<float> d_error;
  std::vector<float> branch_loss;  // One for each of batch.branches that is a move.
  std::vector<float> branch_error;
  std::vector<float> early_end_loss;  // One for each that ends the thought.
  std::vector<uint8_t> early_end_hit;
  std::vector<float> legal_loss;  // One for each target that is `legal`.
  std::vector<uint8_t> legal_hit;
};

// All but total_loss.
Metrics CountMetrics(const Batch& batch, const Scores& scores);

}  // namespace kibitz::decoder
