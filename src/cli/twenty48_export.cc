#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "io/weights/safetensors.h"
#include "io/weights/state_dict.h"
#include "io/weights/torch_file.h"
#include "students/twenty48/data/net_config.h"

namespace kibitz::cli {
namespace {

struct ExportOptions {
  std::string model;
  std::string out;
};

Fields FieldsOf(ExportOptions& options) {
  Fields fields;
  fields.Add("model", options.model, "checkpoint of a training run",
             {.required = true, .metavar = "FILE"});
  fields.Add("out", options.out, "folder for config.json and model.safetensors",
             {.required = true, .metavar = "DIR"});
  return fields;
}

int Run(const ExportOptions& options, const Context& context) {
  std::optional<twenty48::NetConfig> config = twenty48::ConfigOf(options.model);
  if (!config) {
    throw Error("{}: holds no config; expected a checkpoint of 'kibitz 2048 train'", options.model);
  }
  const io::StateDict weights = io::StateDict::From(io::ReadPt(options.model), options.model);
  std::filesystem::create_directories(options.out);
  io::WriteSafetensors(options.out + "/model.safetensors", {.tensors = weights.tensors()});
  const bool binned = config->head_type == twenty48::HeadType::kBinnedEv;
  WriteFileAtomically(
      options.out + "/config.json",
      ConfigText(*config, binned ? twenty48::BinningOf(options.model) : std::nullopt));
  uint64_t parameters = 0;
  for (const io::NamedTensor& weight : weights.tensors()) {
    parameters += *io::CountOf(weight.tensor.shape);
  }
  if (context.json) {
    PrintJson({{"folder", options.out}, {"parameters", parameters}});
  } else {
    fmt::print("{}: {} parameters\n", options.out, parameters);
  }
  return 0;
}

}  // namespace

Command Twenty48Export() {
  return MakeCommand<ExportOptions>(
      {.name = "2048 export",
       .group = "2048",
       .summary = "turn a checkpoint into a model's folder: config.json and model.safetensors",
       .details = "Writes the weights as they are, with attention or without, and the binning of "
                  "binned heads.",
       .example = "kibitz 2048 export --model checkpoints/run/best.pt --out models/mine"},
      Run);
}

}  // namespace kibitz::cli
