// Options of policy training: the config files' sections data, label, model and training. Needs no
// libtorch.
#pragma once

#include <string>
#include <vector>

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
  // model.safetensors. They fix the model, but for attack planes, which may be added.
  std::string init;
  DataOptions data;
  LabelOptions label;
  NetConfig model;
  std::vector<std::string> given_model;  // Keys of [model] that a flag or a config file set.
  learn::LoopOptions training;
  bool fresh = false;   // Start over where the folder has a run.
  bool strict = false;  // Refuse to resume with other options or data.
};
Fields FieldsOf(TrainOptions& options);
// Fills given_model after flags and config were read.
void NoteGiven(TrainOptions& options, const Fields& fields);

// Takes the model from `init`, if there is one, and checks everything but the data. Throws
// Error::Usage when a given key of [model] differs from that of the weights.
TrainOptions Completed(TrainOptions options);

}  // namespace kibitz::policy
