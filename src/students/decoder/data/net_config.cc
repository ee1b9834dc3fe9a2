#include "students/decoder/data/net_config.h"

#include "base/check.h"
#include "base/error.h"

namespace kibitz::decoder {

const std::vector<NetPart>& NetParts() {
  static const std::vector<NetPart> parts = {
      {&NetConfig::mean_values, {}},
      {&NetConfig::square_values, {"wl_head.from.", "wl_head.to."}},
      {&NetConfig::separate_lines, {}},
      {&NetConfig::line_votes, {"line_vote."}},
      {&NetConfig::value_votes, {"value_vote."}},
      {&NetConfig::compared_votes, {"compare_vote."}},
      {&NetConfig::board_places, {"place_embedding."}},
      {&NetConfig::board_before, {"before_embedding."}},
      {&NetConfig::square_sight, {"sight_embedding."}},
      {&NetConfig::square_attacks, {"attack_embedding."}}};
  return parts;
}

Fields FieldsOf(NetConfig& config) {
  Fields fields;
  fields.Add("embed_dim", config.embed_dim, "width of the network", {.min = 2, .max = 65536});
  fields.Add("num_heads", config.num_heads, "attention heads", {.min = 1, .max = 1024});
  fields.Add("num_layers", config.num_layers, "transformer layers", {.min = 1, .max = 1000});
  fields.Add("max_seq_len", config.max_seq_len, "max tokens in a sequence",
             {.min = kBoardTokens, .max = 1 << 20});
  fields.Add("d_ff", config.d_ff, "hidden width of the MLP", {.min = 1, .max = 1 << 20});
  fields.Add("n_buckets", config.n_buckets, "buckets of the value heads", {.min = 2, .max = 65536});
  fields.Add("wl_sigma", config.wl_sigma, "spread of the wl buckets", {.min = 1e-3, .max = 100});
  fields.Add("value_hidden_size", config.value_hidden_size, "hidden width of the value heads",
             {.min = 1, .max = 65536});
  fields.Add("num_fourier_freq", config.num_fourier_freq, "frequencies that encode values",
             {.min = 1, .max = 65536});
  fields.Add("mean_values", config.mean_values,
             "write the mean of a value's distribution; else the most likely bucket");
  fields.Add("square_policy", config.square_policy,
             "a move's logit also reads the squares it moves between");
  fields.Add("square_values", config.square_values,
             "a move's wl also reads the squares it moves between; needs square_policy");
  fields.Add("separate_lines", config.separate_lines,
             "a variation sees the root and itself, not the variations before it");
  fields.Add("line_votes", config.line_votes,
             "the end of a variation adds to the final logit of its first move");
  fields.Add("value_votes", config.value_votes,
             "the values of a variation's first and last move add to that logit; needs line_votes");
  fields.Add("compared_votes", config.compared_votes,
             "the final move begins with the instinct, and votes compare the variations; needs "
             "value_votes");
  fields.Add(
      "board_places", config.board_places,
      "add an embedding of its place in the board to each token of one, and mark the last move");
  fields.Add("board_before", config.board_before,
             "add embeddings of the board before the move to each token of a board");
  fields.Add("square_sight", config.square_sight,
             "add embeddings of the pieces that a square sees, on lines and by knight's jumps");
  fields.Add("square_attacks", config.square_attacks,
             "add embeddings of what attacks a square, of pins, checks and flight squares");
  return fields;
}

void CheckConfig(const NetConfig& config) {
  CHECK(!config.square_policy || config.move_vocab_size == kMoveVocabularySize);
  if (config.square_values && !config.square_policy) {
    throw Error(
        "square_values is true without square_policy: expected both, or square_policy alone");
  }
  if (config.value_votes && !config.line_votes) {
    throw Error("value_votes is true without line_votes: expected both, or line_votes alone");
  }
  if (config.compared_votes && !config.value_votes) {
    throw Error("compared_votes is true without value_votes: expected both, or value_votes alone");
  }
  if (config.embed_dim % (2 * config.num_heads) != 0) {
    throw Error(
        "embed_dim is {} with num_heads {}: expected a multiple of {}, because RoPE rotates pairs "
        "in each head",
        config.embed_dim, config.num_heads, 2 * config.num_heads);
  }
}

}  // namespace kibitz::decoder
