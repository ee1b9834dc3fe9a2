// Decoder sequences of the shape of real ones, made up: tokens, targets and values are random,
// lengths and layout as in training.
#pragma once

#include <vector>

#include "base/random.h"
#include "students/decoder/sequence.h"

namespace kibitz::testing {

struct MadeOptions {
  int max_seq_len = 1024;
  int max_variations = 3;
  int max_depth = 5;
};

// A root board, variations of random depth (fewer when they do not fit), the final move.
decoder::Sequence MadeThinking(const MadeOptions& options, Rng& rng);
// A game from a random ply on, 20 to 120 plies long; cut at the limit.
decoder::Sequence MadeGame(const MadeOptions& options, Rng& rng);
// Each sequence is a thinking one with probability variation_ratio.
std::vector<decoder::Sequence> MadeSequences(int count, double variation_ratio,
                                             const MadeOptions& options, Rng& rng);

}  // namespace kibitz::testing
