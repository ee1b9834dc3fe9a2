// Mixed precision while it lives: matrix products in bfloat16, whose range needs no scaling of the
// loss. On CUDA, and on processors with AMX or AVX-512 BF16 in the functions of products.h; does
// nothing elsewhere.
#pragma once

#include <torch/torch.h>

#include <optional>

#include "learn/precision.h"

namespace kibitz::learn {

class Autocast {
 public:
  Autocast(torch::Device device, bool wanted);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool cuda_;
  std::optional<PrecisionScope> cpu_;
};

}  // namespace kibitz::learn
