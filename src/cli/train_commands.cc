#include "cli/train_commands.h"

#include "cli/sibling.h"

namespace kibitz::cli {
namespace {

constexpr const char* kDetails =
    "Options come from the config file (YAML, TOML or JSON) and from flags; flags win. A flag may\n"
    "leave out its section where only one section has it: --max-steps.\n"
    "The run's folder is training.checkpoint_dir/run_name. It gets checkpoints that Python's\n"
    "torch.load reads, best.pt (lowest validation loss), metrics.jsonl, timing.jsonl and\n"
    "TensorBoard events. If the folder has a checkpoint, the run resumes from the newest one and\n"
    "ends as if it had never stopped. Ctrl-C, --max-seconds and --max-steps save and stop.";

}  // namespace

Fields FieldsOf(TrainCheckOptions& options) {
  Fields fields;
  fields.Add("threads", options.threads, "threads; 0: all cores", {.min = 0, .max = 1024});
  return fields;
}

CommandText TextOf(const decoder::PretrainOptions&) {
  return {.name = "decoder pretrain",
          .group = "Decoder",
          .summary = "train a decoder on games: next boards, best moves, values",
          .details = kDetails,
          .example =
              "kibitz decoder pretrain --config configs/decoder/small-pretrain.toml --max-steps 2",
          .config = true};
}

CommandText TextOf(const decoder::FinetuneOptions&) {
  return {
      .name = "decoder finetune",
      .group = "Decoder",
      .summary = "train a decoder to think: searched variations mixed with games",
      .details = std::string(kDetails) +
                 "\nWith --pretrain-checkpoint the model is the checkpoint's: leave [model] out.",
      .example =
          "kibitz decoder finetune --config configs/decoder/small-finetune.toml "
          "--pretrain-checkpoint checkpoints/small-pretrain/best.pt",
      .config = true};
}

CommandText TextOf(const policy::TrainOptions&) {
  return {.name = "policy train",
          .group = "Policy",
          .summary = "train a network on the moves of the evaluation database",
          .details = std::string(kDetails) +
                     "\nWith --init the model is that of the weights: leave [model] out.",
          .example =
              "kibitz policy train --config configs/policy/small.toml --data-dir data "
              "--max-seconds 3600",
          .config = true};
}

CommandText TextOf(const twenty48::TrainOptions&) {
  return {
      .name = "2048 train",
      .group = "2048",
      .summary = "train a network on the oracle's moves or values",
      .details = std::string(kDetails) +
                 "\ntarget.mode is binned_ev, hard_move or tsad_soft.\n"
                 "With --init the model is that of the weights: leave [model] out.",
      .example = "kibitz 2048 train --config configs/twenty48/small-tsad.toml --max-seconds 1200",
      .config = true};
}

CommandText TextOf(const TrainCheckOptions&) {
  return {
      .name = "train check",
      .group = "Training",
      .summary = "check that libtorch is fast on this machine",
      .details = "Measures a matrix product: without OpenBLAS training is a hundred times slower.",
      .example = "kibitz train check"};
}

std::vector<Command> TrainCommandsBySibling() {
  return EachTrainCommand(
      []<typename Options>(CommandText text) { return RunBySibling<Options>(std::move(text)); });
}

}  // namespace kibitz::cli
