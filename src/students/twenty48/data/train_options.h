// Everything that can be set about training a 2048 student: the config files' sections target,
// binning, dataset, model and training. Known without libtorch.
#pragma once

#include <string>

#include "base/options.h"
#include "learn/options/loop_options.h"
#include "students/twenty48/data/batches.h"
#include "students/twenty48/data/net_config.h"
#include "students/twenty48/data/targets.h"

namespace kibitz::twenty48 {

struct TrainOptions {
  TrainOptions();

  std::string run_name = "twenty48";
  // Weights to start from: a .pt, a .safetensors, or a folder with config.json and
  // model.safetensors. Its config gives the sizes; the head may be of the other kind.
  std::string init;
  // Off: trains the network without attention (net/attention_free.h), a warm start at a fortieth of
  // the work. A later run takes it by `init`, with attention or without.
  bool attention = true;
  TargetOptions target;
  BinningOptions binning;
  DatasetOptions dataset;
  NetConfig model;
  learn::LoopOptions training;
  bool fresh = false;  // Start anew where the folder has a run.
};
Fields FieldsOf(TrainOptions& options);

// Sets the head and its bins by the target, checks everything. Throws Error::Usage.
TrainOptions Completed(TrainOptions options);

}  // namespace kibitz::twenty48
