// Options of decoder training: the config files' sections data, model, training and loss. Needs no
// libtorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "learn/options/loop_options.h"
#include "students/decoder/data/metrics.h"
#include "students/decoder/data/net_config.h"
#include "students/decoder/data/stream.h"

namespace kibitz::decoder {

struct DataOptions {
  std::string parquet_dir;            // Pretraining: games.
  std::string pretrain_parquet_dir;   // Finetuning: games.
  std::string variation_parquet_dir;  // Finetuning: searches.
  // Validation: never trained on.
  std::string val_parquet_dir;
  std::string val_variation_parquet_dir;
  int val_batches = 32;  // In each validation.

  int max_seq_len = 1024;
  double skip_board_prob = 0;
  ThinkingOptions thinking = {};  // Its max_seq_len is not used.
  StreamOptions stream = {};      // Its seed is the training's.

  GameOptions Games() const { return {max_seq_len, skip_board_prob}; }
  ThinkingOptions Thinking() const;
};

struct TrainOptions {
  explicit TrainOptions(Phase which);

  Phase phase;
  std::string project_name = "kibitz";
  std::string run_name;
  DataOptions data;
  NetConfig model;
  std::vector<std::string> given_model;  // Keys of [model] that a flag or a config file set.
  learn::LoopOptions training;
  // Weights to start from; older ones are migrated. They fix the model, but for max_seq_len,
  // and for parts that they lack (NetParts).
  std::string pretrain_checkpoint;
  double embedding_std = 1;  // Of new weights' embedding; 1 as in PyTorch.
  LossWeights loss;
  bool fresh = false;   // Start over where the folder has a run.
  bool strict = false;  // Refuse to resume with other options or data.
};

// Pretraining and finetuning differ in their defaults and in the keys they know.
struct PretrainOptions : TrainOptions {
  PretrainOptions() : TrainOptions(Phase::kPretrain) {}
};
struct FinetuneOptions : TrainOptions {
  FinetuneOptions() : TrainOptions(Phase::kFinetune) {}
};
Fields FieldsOf(TrainOptions& options);
// Fills given_model after flags and config were read.
void NoteGiven(TrainOptions& options, const Fields& fields);

// Takes the model from pretrain_checkpoint, if there is one, and checks everything. Throws
// Error::Usage when a given key of [model] differs from the checkpoint's.
TrainOptions Completed(TrainOptions options);
// Throws Error::Usage when options contradict each other or data are missing.
void CheckOptions(const TrainOptions& options);

// Peak memory of training in bytes, about: weights, gradients, AdamW's moments, and the activations
// that backward needs for a batch of sequences of full length.
uint64_t EstimateMemory(const TrainOptions& options);
// Parameters of the network.
uint64_t CountParameters(const NetConfig& config);

}  // namespace kibitz::decoder
