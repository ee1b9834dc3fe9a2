// A decoder's weights and sizes from a checkpoint of ours or of the Python reference.
//
//   const WeightsFile file = ReadWeightsFile("model.pt");
//   file.weights.Get("policy_head.weight");
#pragma once

#include <string>

#include "io/weights/model_file.h"
#include "students/decoder/data/net_config.h"

namespace kibitz::decoder {

struct WeightsFile {
  io::StateDict weights;  // Migrated to the present vocabulary if needed.
  NetConfig config;
  // Of a pretraining run, by its config: the thinking head is not trained.
  bool pretrained = false;
};

// Sizes come from the file's config; those it lacks from the shapes of the weights. The number of
// heads has no shape: `num_heads` is for files without it, 0 for none. Throws Error.
WeightsFile WeightsOf(const io::ModelFile& file, int num_heads = 0);
// The same of a file that io::ReadModel reads.
WeightsFile ReadWeightsFile(const std::string& path, int num_heads = 0);

}  // namespace kibitz::decoder
