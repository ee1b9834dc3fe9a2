#include "learn/options/loop_options.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kibitz::learn {

Fields FieldsOf(LoopOptions& options) {
  Fields fields;
  LoopOptions& s = options;
  fields.Add("learning_rate", s.learning_rate, "learning rate of AdamW", {.min = 0});
  fields.Add("weight_decay", s.weight_decay, "weight decay of AdamW", {.min = 0});
  fields.Add("beta1", s.beta1, "beta1 of AdamW", {.min = 0, .max = 1});
  fields.Add("beta2", s.beta2, "beta2 of AdamW", {.min = 0, .max = 1});
  fields.Add("epsilon", s.epsilon, "epsilon of AdamW", {.min = 0});
  fields.Add("max_grad_norm", s.max_grad_norm, "clip the gradients to this norm; 0: never",
             {.min = 0});
  fields.Add("gradient_accumulation_steps", s.gradient_accumulation_steps,
             "batches in a step, which is one update of the weights", {.min = 1, .max = 1 << 20});
  fields.Add("warmup_steps", s.warmup_steps, "steps in which the learning rate rises from 0",
             {.min = 0});
  fields.AddChoice("schedule", s.schedule, "learning rate after the warm-up",
                   {{"constant", Schedule::kConstant},
                    {"cosine", Schedule::kCosine},
                    {"warmup-stable-decay", Schedule::kWarmupStableDecay}});
  fields.Add("min_lr_ratio", s.min_lr_ratio,
             "where a decaying learning rate ends, as a share of it", {.min = 0, .max = 1});
  fields.Add("decay_fraction", s.decay_fraction,
             "share of steps in which warmup-stable-decay decays", {.min = 0, .max = 1});
  fields.Add("num_epochs", s.num_epochs, "passes over the data; 0: no limit", {.min = 0});
  fields.Add("max_steps", s.max_steps, "steps in all, those before a resume too; 0: no limit",
             {.min = 0});
  fields.Add("max_seconds", s.max_seconds, "save and stop after this many seconds; 0: no limit",
             {.min = 0});
  fields.Add("log_every_n_steps", s.log_every_n_steps, "steps between lines of metrics",
             {.min = 1});
  fields.Add("save_every_n_steps", s.save_every_n_steps, "steps between checkpoints", {.min = 1});
  fields.Add("validate_every_n_steps", s.validate_every_n_steps,
             "steps between validations; 0: at every checkpoint", {.min = 0});
  fields.Add("keep_checkpoints", s.keep_checkpoints,
             "newest checkpoints to keep, besides best.pt; 0: all", {.min = 0});
  fields.Add("checkpoint_dir", s.checkpoint_dir, "parent of the runs' folders", {.metavar = "DIR"});
  fields.Add("log_command", s.log_command,
             "a program that gets each line of metrics on its standard input, as it is written",
             {.metavar = "CMD"});
  fields.Add("seed", s.seed, "seed of weights, order and augmentation");
  fields.Add("threads", s.threads, "threads; 0: all cores", {.min = 0, .max = 1024});
  fields.Add("device", s.device, "cpu, cuda or cuda:N", {.metavar = "NAME"});
  fields.Add("use_amp", s.use_amp,
             "bfloat16 matrix products, on CUDA and on processors with AMX or AVX-512 BF16");
  fields.Add("gradient_checkpointing", s.gradient_checkpointing,
             "compute activations again in backward: less memory, a third more time");
  return fields;
}

double LearningRateAt(const LoopOptions& options, int64_t step, int64_t total) {
  const double rate = options.learning_rate;
  if (step < options.warmup_steps) {
    return rate * static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  }
  if (options.schedule == Schedule::kConstant || total <= options.warmup_steps) return rate;
  int64_t fall = options.warmup_steps;
  if (options.schedule == Schedule::kWarmupStableDecay) {
    const auto falling = static_cast<int64_t>(options.decay_fraction * static_cast<double>(total));
    fall = std::max(fall, total - falling);
  }
  if (step < fall) return rate;
  const double done = std::min(1.0, static_cast<double>(step - fall) /
                                        static_cast<double>(std::max<int64_t>(1, total - fall)));
  const double share = options.schedule == Schedule::kCosine
                           ? 0.5 * (1 + std::cos(std::numbers::pi * done))
                           : 1 - done;
  return rate * (options.min_lr_ratio + (1 - options.min_lr_ratio) * share);
}

}  // namespace kibitz::learn
