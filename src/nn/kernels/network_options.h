// Which network to run, and how: the same options for every command, engine and evaluator.
//
//   nn::NetworkOptions options = {.path = "model.pt", .threads = 2};
//   Fields fields = FieldsOf(options);   // --precision, --threads, --num-heads
#pragma once

#include <string>

#include "base/options.h"
#include "nn/kernels/precision.h"

namespace kibitz::nn {

struct NetworkOptions {
  std::string path = {};  // As io::ReadModel takes it.
  Precision precision = Precision::kF32;
  int threads = 0;    // 0: one for each core.
  int num_heads = 0;  // Attention heads, for weights without a config; 0: the config has them.

  bool operator==(const NetworkOptions&) const = default;
};

// All but the path, which commands call --model or --net.
Fields FieldsOf(NetworkOptions& options);

}  // namespace kibitz::nn
