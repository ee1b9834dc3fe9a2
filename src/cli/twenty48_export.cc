#include <string>

#include "cli/commands.h"
#include "cli/model_export.h"
#include "io/weights/model_file.h"
#include "students/twenty48/data/net_config.h"

namespace kibitz::cli {
namespace {

struct ExportOptions {
  std::string model;
  std::string out;
  bool half = false;
};

Fields FieldsOf(ExportOptions& options) {
  Fields fields;
  fields.Add("model", options.model, "checkpoint of a training run",
             {.required = true, .metavar = "FILE"});
  fields.Add("out", options.out, "folder for config.json and model.safetensors",
             {.required = true, .metavar = "DIR"});
  fields.Add("half", options.half, "write the weights in half precision (f16)");
  return fields;
}

int Run(const ExportOptions& options, const Context& context) {
  const io::ModelFile file = io::ReadModel(options.model);
  const twenty48::NetConfig config = twenty48::ConfigOf(file);
  const bool binned = config.head_type == twenty48::HeadType::kBinnedEv;
  uint64_t parameters = 0;
  std::vector<io::NamedTensor> weights = file.weights.tensors();
  for (io::NamedTensor& weight : weights) {
    parameters += *io::CountOf(weight.tensor.shape);
    if (options.half) weight.tensor = io::ToHalf(weight.tensor);
  }
  return ExportModel(
      {.weights = io::StateDict(std::move(weights), file.weights.place()),
       .config = ConfigTree(config, binned ? twenty48::BinningOf(file) : std::nullopt),
       .parameters = parameters},
      options.out, context);
}

}  // namespace

Command Twenty48Export() {
  return MakeCommand<ExportOptions>(
      {.name = "2048 export",
       .group = "2048",
       .summary = "turn a checkpoint into a model's folder: config.json and model.safetensors",
       .details = "Writes the weights as they are, with attention or without, and the binning of "
                  "binned heads. --half takes half the room.",
       .example = "kibitz 2048 export --model checkpoints/run/best.pt --out models/mine"},
      Run);
}

}  // namespace kibitz::cli
