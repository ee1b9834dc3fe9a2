#include "nn/kernels/network_options.h"

#include <utility>
#include <vector>

namespace kibitz::nn {

Fields FieldsOf(NetworkOptions& options) {
  Fields fields;
  std::vector<std::pair<std::string, Precision>> precisions;
  for (const auto& [name, precision] : kPrecisions) precisions.emplace_back(name, precision);
  fields.AddChoice("precision", options.precision,
                   "precision of weights and matrix products; convolutions: f32 only", precisions);
  fields.Add("threads", options.threads, "threads; 0: one for each core", {.min = 0, .max = 1024});
  fields.Add("num_heads", options.num_heads,
             "attention heads, for weights without a config; 0: the config has them",
             {.min = 0, .max = 1024});
  return fields;
}

}  // namespace kibitz::nn
