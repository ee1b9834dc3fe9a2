// A decoder's weights and sizes from a checkpoint of ours or of the Python reference.
//
//   const WeightsFile file = ReadWeightsFile("model.pt");
//   file.weights.Get("policy_head.weight");
#pragma once

#include <optional>
#include <string>

#include "io/weights/state_dict.h"
#include "students/decoder/data/net_config.h"

namespace kibitz::decoder {

struct WeightsFile {
  io::StateDict weights;  // Migrated to the present vocabulary if needed.
  NetConfig config;
  // Of a pretraining run, by its config: the thinking head is not trained.
  bool pretrained = false;
};

// Reads .pt and .safetensors. Sizes come from the file's config; a file without one tells them by
// the shapes of its tensors, but for the number of heads: `num_heads`, when it is known. Throws
// Error.
WeightsFile ReadWeightsFile(const std::string& path, std::optional<int> num_heads = std::nullopt);

}  // namespace kibitz::decoder
