// The sizes of a decoder network, as the config files' `model` section names them.
#pragma once

#include <string_view>
#include <vector>

#include "base/options.h"
#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {

struct NetConfig {
  int embed_dim = 1024;  // A multiple of 2 * num_heads.
  int num_heads = 16;
  int num_layers = 12;
  int max_seq_len = 1024;
  int d_ff = 1536;        // Hidden width of the MLP.
  int n_buckets = 100;    // Of each value head.
  double wl_sigma = 0.4;  // Spread of the wl buckets' centres.
  int value_hidden_size = 256;
  int num_fourier_freq = 128;
  bool mean_values = false;  // A value is its distribution's mean, not the most likely bucket.

  // A move's logit also reads the two squares of its board: the board that the move is for. The
  // policy heads' weights are applied to the squares' hidden states too.
  bool square_policy = false;

  // The wl of a move also reads the two squares of its board, through matrices of its own:
  // wl_head.from.weight and wl_head.to.weight, (value_hidden_size, D). Needs square_policy.
  bool square_values = false;

  // A variation sees the root and itself, not the variations before it (LineView).
  bool separate_lines = false;

  // The end of each variation votes for its first move: line_vote of end_var's hidden state is
  // added to the move's logit after the thought. line_vote.weight: (1, D); line_vote.bias: (1).
  bool line_votes = false;

  // A variation's written values vote too: the wl of its first and of its last move, both for the
  // side that moves at the root, times value_vote.weight, (1, 2), times kValueVoteScale. Needs
  // line_votes.
  bool value_votes = false;

  // The move after a thought begins with the root's policy, the instinct, and not with what
  // end_think reads; and a variation's vote also weighs how it compares with the others
  // (LineComparison): times compare_vote.weight, (1, 3). Needs value_votes.
  bool compared_votes = false;

  // A board's tokens have an embedding of their place in it added, so that a square knows where it
  // is; those before the two squares of the last move also one of the other square (PlaceRows).
  // place_embedding.weight: (196, D).
  bool board_places = false;

  // A board's tokens also have embeddings added of what stood next in the board before, and of the
  // piece that moves (PlaceRows): copying needs no attention. before_embedding.weight: (82, D).
  bool board_before = false;

  // The squares of a board that is read whole also have embeddings added of what they see from
  // there (sight.h). A board that is being written has none: its squares are not all known.
  // sight_embedding.weight: (768, D).
  bool square_sight = false;

  // The squares of such a board also have embeddings added of what attacks them (sight.h): of the
  // attack planes that hold them. attack_embedding.weight: (29, D).
  bool square_attacks = false;

  // Fixed by the vocabulary; tests use other sizes.
  int vocab_size = kVocabularySize;
  int board_vocab_size = kBoardVocabularySize;
  int move_vocab_size = kMoveVocabularySize;

  bool operator==(const NetConfig&) const = default;
};

// Parts that trained weights can be given later. Their tensors then start at 0, and the network
// first computes what it did before; but for separate_lines and mean_values, which have no tensors,
// and compared_votes, which takes the final move from another token.
struct NetPart {
  bool NetConfig::*flag;
  std::vector<std::string_view> tensors;  // How their names begin.
};
const std::vector<NetPart>& NetParts();

// All but the vocabulary sizes.
Fields FieldsOf(NetConfig& config);

// Throws Error when the sizes contradict each other.
void CheckConfig(const NetConfig& config);

}  // namespace kibitz::decoder
