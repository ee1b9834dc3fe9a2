// What the matrix products of training round their factors to. Autocast chooses it for the forward
// pass; a function keeps the choice for its backward pass, which runs later.
//
//   const PrecisionScope scope(Precision::kBfloat16);    // Of this thread, while it lives.
#pragma once

#include <torch/torch.h>

namespace kibitz::learn {

enum class Precision {
  kFloat32,
  kBfloat16,  // Sums stay in float32.
};

// Of the calling thread; kFloat32 outside of all scopes.
Precision CurrentPrecision();

class PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  Precision before_;
};

// The processor multiplies bfloat16 faster than float32.
bool CpuHasBfloat16();

// Keeps the current precision for backward and returns it; then what was kept.
Precision KeepPrecision(torch::autograd::AutogradContext* ctx);
Precision KeptPrecision(torch::autograd::AutogradContext* ctx);

}  // namespace kibitz::learn
