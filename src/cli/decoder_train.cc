#include "cli/decoder_train.h"

#include "cli/commands.h"
#include "cli/sibling.h"

namespace kibitz::cli {
namespace {

constexpr const char* kDetails =
    "Everything comes from the config file (YAML, TOML or JSON) and from flags, which win;\n"
    "a flag may leave out its section where only one has it: --max-steps. The run's folder is\n"
    "training.checkpoint_dir/run_name. Where it has a checkpoint the run goes on from there,\n"
    "exactly as if it had never stopped. Ctrl-C, --max-seconds and --max-steps save and stop.\n"
    "The folder gets checkpoints that Python's torch.load reads, metrics.jsonl, timing.jsonl\n"
    "and TensorBoard events.";

}  // namespace

CommandText DecoderPretrainText() {
  return {.name = "decoder pretrain",
          .group = "Decoder",
          .summary = "teach a decoder from games: next boards, best moves, values",
          .details = kDetails,
          .example =
              "kibitz decoder pretrain --config configs/decoder/pretrain.yaml --max-seconds 3600",
          .config = true};
}

CommandText DecoderFinetuneText() {
  return {.name = "decoder finetune",
          .group = "Decoder",
          .summary = "teach a decoder to think: searched variations mixed with games",
          .details = kDetails,
          .example =
              "kibitz decoder finetune --config configs/decoder/finetune.yaml "
              "--pretrain-checkpoint checkpoints/pretrain/best.pt",
          .config = true};
}

Command DecoderPretrain() { return RunBySibling<decoder::PretrainOptions>(DecoderPretrainText()); }
Command DecoderFinetune() { return RunBySibling<decoder::FinetuneOptions>(DecoderFinetuneText()); }

}  // namespace kibitz::cli
