// Mixed precision on CUDA while it lives: matrix products in bfloat16, whose range needs no scaling
// of the loss. Does nothing elsewhere.
#pragma once

#include <torch/torch.h>

namespace kibitz::learn {

class Autocast {
 public:
  Autocast(torch::Device device, bool wanted);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
};

}  // namespace kibitz::learn
