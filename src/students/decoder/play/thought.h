// What the decoder returns: predictions, and thoughts with their variations. Plain values, made by
// player.h, shown by the command line and UCI.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "games/chess/board.h"
#include "students/decoder/data/tokens.h"
#include "students/decoder/data/votes.h"
#include "students/decoder/data/wdl.h"

namespace kibitz::decoder {

// A value as the network writes it: centres of buckets. wl = win - loss.
struct NodeValue {
  float wl = 0;
  float d = 0;

  bool operator==(const NodeValue&) const = default;
};

// W = (1 - d + wl) / 2 and L = (1 - d - wl) / 2, not below 0; the same point of view as `value`.
Wdl WdlOf(NodeValue value);
// The same value as the other side sees it.
constexpr NodeValue Reversed(NodeValue value) { return {-value.wl, value.d}; }

// A move and how likely the network finds it.
struct Candidate {
  TokenId token = 0;
  std::optional<chess::Move> move;  // Nothing when it is not legal.
  double probability = 0;           // Among the moves asked for, at temperature 1.
  double logit = 0;
};

// The move as UCI writes it on this board; one that is not legal by its token's name, castling as
// the king's two steps.
std::string TextOf(const chess::Board& board, const Candidate& candidate);

struct PredictOptions {
  double temperature = 0;  // 0: the most likely move.
  bool legal_only = true;
  int top_k = 0;       // Draw only among the most likely; 0: all.
  bool value = false;  // Also wl and d of the chosen move: two more passes.
  uint64_t seed = 0;
  std::stop_token stop = {};  // Looked at between layers.
};

struct Prediction {
  // By the stop token. Then everything is empty, or only the value.
  bool cancelled = false;
  // Nothing only when the position has no legal move and only those were asked for.
  std::optional<Candidate> chosen;
  // Every legal move, or every token, the most likely first.
  std::vector<Candidate> candidates;
  std::optional<NodeValue> value;  // For the side to move; with PredictOptions::value.
};

struct ThinkOptions {
  double thinking_temperature = 0;   // Moves of the variations.
  double final_temperature = 0;      // The final move.
  double structure_temperature = 0;  // Boards, and where variations and the thought end.
  int top_k = 0;                     // Draw moves only among the most likely; 0: all.
  int max_variations = 0;            // 0: as many as the network wants.
  int max_depth = 0;                 // Moves of a variation; 0 likewise.
  int max_seq_len = 0;               // Tokens; 0: the network's own length.
  // Every move is legal in the position that the rules give, whatever board the network wrote. A
  // variation ends where there is none; a root without legal moves gets no variations.
  bool legal_only = false;
  bool distinct = false;    // No two variations begin with the same move, where there are others.
  bool root_value = false;  // Also wl and d of the instinct's move: two more passes.
  uint64_t seed = 0;
  bool draft = true;  // Boards drafted by the rules: the same result, faster.
  // The tokens to write instead of the network's choices: for the values of a given line, and to
  // measure speed with any weights. Values remain the network's own.
  std::vector<TokenId> script = {};
  std::stop_token stop = {};  // Looked at between layers.
};

// A position to think about.
struct ThinkTask {
  chess::Board root = {};
  ThinkOptions options = {};
};

// One step of a variation: the move, its value, the board the network wrote after it.
struct ThoughtNode {
  TokenId token = 0;                       // The move.
  double probability = 0;                  // Of the move, at temperature 1.
  std::optional<chess::Move> move = {};    // Set while every move so far was legal.
  std::optional<NodeValue> value = {};     // For the side to move after the move.
  std::vector<TokenId> board = {};         // 68 tokens, fewer when the thought was cut off.
  std::optional<chess::Board> after = {};  // By the rules; set when `move` is.
  bool board_true = false;                 // `board` is what the rules say.
};

struct Variation {
  std::vector<ThoughtNode> nodes;
  bool ended = false;  // By end_var, not because the thought was cut off.
};

// The legal moves at the variation's start, by the rules from the root. `beyond` counts the moves
// after the first illegal one, and it.
struct LegalLine {
  std::vector<chess::Move> moves;
  int beyond = 0;
};
LegalLine LegalPart(const Variation& variation);

// A node's value for the side to move at the root. `ply` is the node's index.
NodeValue RootView(NodeValue value, size_t ply);

enum class ThoughtEnd {
  kFinished,   // end_think, final move, value; or, with legal_only, a root without legal moves.
  kNoRoom,     // The sequence reached its maximum length.
  kCancelled,  // By the stop token.
};

struct ThoughtStats {
  int passes = 0;            // Through the network.
  int64_t rows = 0;          // Tokens run through it, in both streams.
  int drafted_tokens = 0;    // Board tokens proposed by the rules ...
  int accepted_tokens = 0;   // ... and chosen by the network too.
  int written_tokens = 0;    // Tokens written after the root board.
  double seconds = 0;        // From its start to its end; thoughts at once share them.
  double first_seconds = 0;  // Until the root was read.
};

struct Thought {
  chess::Board root;
  ThoughtEnd end = ThoughtEnd::kCancelled;
  std::vector<TokenId> tokens;  // The whole sequence, root board first.
  std::vector<int> blocks;      // Of each token: boards 0, 1, 2, ...; others alone, over 10000.
  struct Entry {
    int position = 0;
    float value = 0;
  };
  std::vector<Entry> wl_entries;
  std::vector<Entry> d_entries;
  std::vector<Variation> variations;
  std::vector<VotingLine> votes;  // Of the variations that ended, in their order.

  // The moves without thinking: policy_head at the root board, legal moves only, the most likely
  // first. Empty when cancelled before that.
  std::vector<Candidate> instinct;
  // Of the first of them, for the side to move; with ThinkOptions::root_value.
  std::optional<NodeValue> instinct_value;
  // The final move as written; nothing when the thought ended before it.
  std::optional<Candidate> final_move;
  std::optional<NodeValue> final_value;  // For the side to move at the root.
  // Every legal move by policy_head and votes at the end, the most likely first; `instinct` when
  // the thought ended before that.
  std::vector<Candidate> candidates;
  // The move to play: the final move where it is legal, else the most likely legal one.
  // Nothing when the position has no legal move or the thought was cancelled before any pass.
  std::optional<chess::Move> move;
  bool by_instinct = false;  // `move` comes from policy_head on the root.
  ThoughtStats stats;
};

// Called while a thought grows, on the thread that called Think.
struct ThoughtListener {
  // After each token of the sequence, the root board's included; boards come at once when their
  // draft holds. `position` counts from 0.
  std::function<void(TokenId token, int position)> on_token = {};
  // When the root was read: Thought::instinct is there, and its value where asked for.
  std::function<void(const Thought&)> on_root = {};
  // When the last node of the last variation has its value; its board is not written yet.
  std::function<void(const Thought&)> on_value = {};
  // When the last node of the last variation has its board.
  std::function<void(const Thought&)> on_board = {};
  std::function<void(const Thought&)> on_variation_end = {};
};

}  // namespace kibitz::decoder
