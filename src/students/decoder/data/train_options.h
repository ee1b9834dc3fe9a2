// Everything that can be set about training a decoder: the config files' sections data, model,
// training and loss. Known without libtorch.
#pragma once

#include <cstdint>
#include <string>

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
  // Held out: never trained on.
  std::string val_parquet_dir;
  std::string val_variation_parquet_dir;
  int val_batches = 32;  // Of each validation.

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
  learn::LoopOptions training;
  std::string pretrain_checkpoint;  // Weights to start from; migrated if they are older.
  LossWeights loss;
  bool fresh = false;  // Start anew where the folder has a run.
};

// Pretraining and finetuning differ in their defaults and in the keys they know.
struct PretrainOptions : TrainOptions {
  PretrainOptions() : TrainOptions(Phase::kPretrain) {}
};
struct FinetuneOptions : TrainOptions {
  FinetuneOptions() : TrainOptions(Phase::kFinetune) {}
};
Fields FieldsOf(TrainOptions& options);

// Throws Error::Usage when options contradict each other or data are missing.
void CheckOptions(const TrainOptions& options);

// Bytes that training takes at its peak, about: weights, gradients, moments, and what a batch of
// sequences of full length keeps for the way back.
uint64_t EstimateMemory(const TrainOptions& options);
// Numbers of the network.
uint64_t CountParameters(const NetConfig& config);

}  // namespace kibitz::decoder
