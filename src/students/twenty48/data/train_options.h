// Options of 2048 training: the config files' sections target, binning, dataset, model and
// training. Needs no libtorch.
#pragma once

#include <string>
#include <vector>

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
  // model.safetensors. They fix the model, but for the head, which follows the target.
  std::string init;
  // Off: trains the network without attention (net/attention_free.h), a warm start at a fortieth of
  // the work. A later run takes it by `init`, with attention or without.
  bool attention = true;
  TargetOptions target;
  BinningOptions binning;
  DatasetOptions dataset;
  NetConfig model;
  std::vector<std::string> given_model;  // Keys of [model] that a flag or a config file set.
  learn::LoopOptions training;
  bool fresh = false;   // Start over where the folder has a run.
  bool strict = false;  // Refuse to resume with other options or data.
};
Fields FieldsOf(TrainOptions& options);
// Fills given_model after flags and config were read.
void NoteGiven(TrainOptions& options, const Fields& fields);

// Takes the model from `init`, if there is one, sets the head and its bins by the target, and
// checks everything. Throws Error::Usage, also when a given key of [model] differs from that of the
// weights.
TrainOptions Completed(TrainOptions options);

}  // namespace kibitz::twenty48
