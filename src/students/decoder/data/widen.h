// A decoder twice as wide that computes the same: what a small network learned quickly goes on in a
// larger one (Net2Net, Chen et al., 2016).
//
//   const WeightsFile wide = Widen(ReadWeightsFile("small.pt"), {.seed = 1});
//
// Every number of the hidden state is there twice, heads and hidden units of the MLP too. A matrix
// reads both copies with half its weight, plus and minus noise that cancels: the copies part as
// soon as training goes on.
#pragma once

#include <cstdint>

#include "students/decoder/data/weights_file.h"

namespace kibitz::decoder {

struct WidenOptions {
  uint64_t seed = 1;
  double noise = 0.5;  // Standard deviation, as a share of the matrix's own.
};
WeightsFile Widen(const WeightsFile& small, const WidenOptions& options);

}  // namespace kibitz::decoder
