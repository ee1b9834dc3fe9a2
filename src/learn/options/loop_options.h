// Options of the training loop: the `training` section of every student's config.
#pragma once

#include <cstdint>
#include <string>

#include "base/options.h"

namespace kibitz::learn {

enum class Schedule { kConstant, kCosine, kWarmupStableDecay };

// A step is one update of the weights: gradient_accumulation_steps batches.
struct LoopOptions {
  double learning_rate = 3e-5;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double max_grad_norm = 10;  // Gradients are scaled down to this norm; 0: never.
  int64_t gradient_accumulation_steps = 1;

  int64_t warmup_steps = 0;  // The learning rate rises linearly from 0.
  Schedule schedule = Schedule::kConstant;
  double min_lr_ratio = 0.1;    // Where a decaying schedule ends, as a share of the learning rate.
  double decay_fraction = 0.2;  // Of all steps: the decay at the end of warmup-stable-decay.

  int64_t num_epochs = 1;  // 0: until another limit.
  int64_t max_steps = 0;   // Of the whole run, resumes included. 0: no limit.
  double max_seconds = 0;  // Since this start or resume; saves and stops. 0: no limit.

  int64_t log_every_n_steps = 10;
  int64_t save_every_n_steps = 1000;
  int64_t validate_every_n_steps = 0;  // 0: at every checkpoint.
  int64_t keep_checkpoints = 3;        // The newest; best.pt is kept besides. 0: all.
  std::string checkpoint_dir = "checkpoints";
  std::string log_command = {};  // Gets each line of metrics.jsonl; "": none.

  uint64_t seed = 42;          // Of weights, order and augmentation.
  int threads = 0;             // 0: all cores.
  std::string device = "cpu";  // cpu, cuda or cuda:N.
  bool use_amp = false;        // bfloat16 matrix products, on CUDA, AMX and AVX-512 BF16.
  bool gradient_checkpointing = false;
};

Fields FieldsOf(LoopOptions& options);

// The learning rate of step `step`, from 0. `total`: steps planned; 0 when not known, then a
// decaying schedule does not decay.
double LearningRateAt(const LoopOptions& options, int64_t step, int64_t total);

}  // namespace kibitz::learn
