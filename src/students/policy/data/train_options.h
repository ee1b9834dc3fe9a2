// Everything that can be set about training a policy: the config files' sections data, label, model
// and training. Known without libtorch.
#pragma once

#include <string>

#include "base/options.h"
#include "learn/options/loop_options.h"
#include "students/policy/data/batches.h"
#include "students/policy/data/labels.h"
#include "students/policy/data/net_config.h"

namespace kibitz::policy {

struct TrainOptions {
  TrainOptions();

  std::string run_name = "policy";
  // Weights to start from: a .pt, a .safetensors, or a folder with config.json and
  // model.safetensors. Its config gives the sizes.
  std::string init;
  DataOptions data;
  LabelOptions label;
  NetConfig model;
  learn::LoopOptions training;
  bool fresh = false;  // Start anew where the folder has a run.
};
Fields FieldsOf(TrainOptions& options);

// Takes the sizes of `init` and checks everything but the data. Throws Error::Usage.
TrainOptions Completed(TrainOptions options);

}  // namespace kibitz::policy
