// A searched position as a training sequence: variations first, then the final move.
//
//   board start_think { move wl d board move wl d board ... end_var }... end_think move wl d
//
//   Sequence sample = ThinkingSequence(row, options, rng);
//
// Variations come in a random order that favours the most visited (Plackett-Luce), each cut to a
// random depth, so that the network must read the lines instead of trusting the first one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/options.h"
#include "base/random.h"
#include "games/chess/board.h"
#include "students/decoder/data/sequence.h"
#include "students/decoder/data/wdl.h"

namespace kibitz::decoder {

// A position of a line.
struct LineNode {
  chess::Board board;  // After the move that leads here.
  TokenId move = 0;    // The next move of the line; unused in the last node.
  float wl = 0;        // For the side to move here.
  float d = 0;
  bool valid = false;  // wl and d are known.
};

// One root move of a search with its line.
struct SearchVariation {
  TokenId root_move = 0;
  double visit_fraction = 0;
  double prior = 0;         // Of a policy; 0 if the record has none.
  uint32_t first_node = 0;  // Into SearchRow::nodes.
  uint32_t node_count = 0;
  // The record has no node because the root move ends the game; its one node was added.
  bool synthesised = false;
};

// The result of a search, variations by falling visits; ties keep the record's order.
struct SearchRow {
  chess::Board root;
  TokenId best_move = 0;
  std::optional<Wdl> wdl = {};  // Of the root, for the side to move; empty if unknown.
  std::vector<SearchVariation> variations = {};
  std::vector<LineNode> nodes = {};

  std::span<const LineNode> NodesOf(const SearchVariation& variation) const {
    return std::span(nodes).subspan(variation.first_node, variation.node_count);
  }
};

struct ThinkingOptions {
  int max_seq_len = 1024;
  int max_variations = 3;
  int max_depth = 5;
  double tau_base = 0.3;
  double tau_alpha = 1.0;
  bool terminal_leaves = true;  // Include root moves that end the game, as one node.

  // Beside the documents' way; off by default.
  double mirror_prob = 0;            // Colours swapped; as often files, without castling rights.
  int min_depth = 1;                 // Of the random depth, where a line is long enough.
  double fewer_variations_prob = 0;  // Show fewer than max_variations: any smaller number.
  bool draw_candidates = false;      // Candidates drawn from all variations, not the most visited.
  bool candidates_by_prior = false;  // By the records' priors instead of their fractions.
  double candidate_temperature = 1;  // Of that draw: fractions to the power of 1 / this.
  bool soft_targets = false;         // Fractions of visits as targets of root moves.
  double legal_share = 0;            // Of soft targets: alike for all legal moves.
  bool instinct_target = false;      // The policy head also predicts at the root.
  bool piece_moves = false;          // The policy head also predicts each root piece's moves.
  bool square_moves = false;         // Moves to each square too, and the opponent's.
  int branch_values = 0;             // Root moves that are valued where a variation could begin.
  bool early_ends = false;           // The final move also behind every variation but the last.
  double no_thought_prob = 0;        // End behind start_think: for the targets of the root alone.
  double board_target_prob = 1;      // Score the boards of a thought; else no causal pass.
  double own_values_prob = 0;        // Show the network's own values to itself.
};
// All but max_seq_len, which games share.
Fields FieldsOf(ThinkingOptions& options);

// The shortest thinking sequence: one variation of one node.
inline constexpr int kShortestThought = 145;

// tau = base * (1 + alpha * variance of the result); base if the result is unknown.
double Temperature(const std::optional<Wdl>& wdl, double tau_base, double tau_alpha);
// (W + L) - (W - L)^2.
double ResultVariance(const Wdl& wdl);

// Ranks (from 1) in order of falling fraction / tau + noise. Ties keep their order.
std::vector<int> OrderByUtility(std::span<const double> fractions, double tau,
                                std::span<const double> noise);
// The same with Gumbel noise: first places are distributed as softmax(fraction / tau).
std::vector<int> DrawOrder(std::span<const double> fractions, double tau, Rng& rng);

// Fixes random choices; empty lists are drawn.
struct ThinkingChoices {
  std::vector<int> ranking;  // Ranks by visits (from 1), in the order of the sequence.
  std::vector<int> depths;   // Of the variations that have nodes, in the same order.
};

// One attempt at a sequence that fits.
struct ThinkingAttempt {
  int max_variations = 0;
  int max_depth = 0;
  std::vector<int> ranking;
  std::vector<int> depths;
  int32_t length = 0;
};

struct ThinkingResult {
  // Empty when even the shortest attempt exceeds max_seq_len, or no variation has a node.
  std::optional<Sequence> sequence;
  std::vector<ThinkingAttempt> attempts;  // The last one made the sequence.
};

// Tries max_variations and max_depth first. While the sequence is too long, tries one variation
// fewer, with max_depth down to 1 each time. The last attempt is one node of the first variation
// that has any. Throws Error::Usage when fixed choices do not fit the row.
ThinkingResult Think(const SearchRow& row, const ThinkingOptions& options, Rng& rng,
                     const ThinkingChoices& fixed = {});

// Whether any variation of the row has a node to use.
bool HasThought(const SearchRow& row, const ThinkingOptions& options);
// The sequence of a row with HasThought; max_seq_len is at least kShortestThought.
Sequence ThinkingSequence(const SearchRow& row, const ThinkingOptions& options, Rng& rng);

}  // namespace kibitz::decoder
