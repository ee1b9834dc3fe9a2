// One update of AdamW in one pass over memory, on the CPU; adamw.h has the optimizer.
#pragma once

#include <cstdint>

namespace kibitz::learn {

struct AdamWFactors {
  double decay;  // Of the parameter.
  double beta1;
  double beta2;
  double step_size;   // Rate by the first correction.
  double root_scale;  // Root of the second correction.
  double epsilon;
};

// A piece of a parameter with its state.
struct AdamWPiece {
  float* parameter;
  const float* gradient;
  float* exp_avg;
  float* exp_avg_sq;
  int64_t size;
  AdamWFactors factors;
};

void Update(const AdamWPiece& piece);

}  // namespace kibitz::learn
