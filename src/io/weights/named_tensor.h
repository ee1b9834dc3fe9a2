// A tensor and what a model calls it.
#pragma once

#include <string>

#include "io/bytes/tensor.h"

namespace kibitz::io {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace kibitz::io
