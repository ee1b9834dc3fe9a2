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
  const io::ModelFile file = io::ReadModel(options.model);
  const twenty48::NetConfig config = twenty48::ConfigOf(file);
  const bool binned = config.head_type == twenty48::HeadType::kBinnedEv;
  uint64_t parameters = 0;
  for (const io::NamedTensor& weight : file.weights.tensors()) {
    parameters += *io::CountOf(weight.tensor.shape);
  }
  return ExportModel(
      {.weights = file.weights,
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
                  "binned heads.",
       .example = "kibitz 2048 export --model checkpoints/run/best.pt --out models/mine"},
      Run);
}

}  // namespace kibitz::cli
