#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_export.h"
#include "io/weights/model_file.h"
#include "students/decoder/data/train_options.h"
#include "students/decoder/data/weights_file.h"

namespace kibitz::cli {
namespace {

struct ExportOptions {
  std::vector<std::string> models;
  std::string out;
};

Fields FieldsOf(ExportOptions& options) {
  Fields fields;
  fields.Add("model", options.models,
             "checkpoint of a training run; of several, the mean of their weights is written",
             {.required = true, .metavar = "FILE"});
  fields.Add("out", options.out, "folder for config.json and model.safetensors",
             {.required = true, .metavar = "DIR"});
  return fields;
}

// The mean of the same tensor in all files.
io::NamedTensor MeanOf(const io::NamedTensor& first,
                       const std::vector<decoder::WeightsFile>& files) {
  std::vector<float> sum(static_cast<size_t>(*io::CountOf(first.tensor.shape)));
  for (const decoder::WeightsFile& file : files) {
    const std::vector<float> values = file.weights.Floats(first.name, first.tensor.shape);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  for (float& value : sum) value /= static_cast<float>(files.size());
  const auto bytes = std::as_bytes(std::span(sum));
  return {first.name,
          io::OwnedTensor(io::DType::kF32, first.tensor.shape, {bytes.begin(), bytes.end()})};
}

int Run(const ExportOptions& options, const Context& context) {
  std::vector<decoder::WeightsFile> files;
  for (const std::string& path : options.models) files.push_back(decoder::ReadWeightsFile(path));
  decoder::NetConfig config = files.front().config;
  const auto sizes = FieldsOf(config).ToTree();
  for (size_t i = 1; i < files.size(); ++i) {
    if (FieldsOf(files[i].config).ToTree() == sizes) continue;
    throw Error::Usage("{} has other sizes than {}; a mean needs networks of the same sizes",
                       options.models[i], options.models[0]);
  }
  std::vector<io::NamedTensor> tensors;
  for (const io::NamedTensor& tensor : files.front().weights.tensors()) {
    tensors.push_back(files.size() == 1 ? tensor : MeanOf(tensor, files));
  }
  const io::StateDict weights(std::move(tensors), options.models.front());
  return ExportModel({.weights = weights, .config = sizes, .parameters = CountParameters(config)},
                     options.out, context);
}

}  // namespace

Command DecoderExport() {
  return MakeCommand<ExportOptions>(
      {.name = "decoder export",
       .group = "Decoder",
       .summary = "turn a checkpoint into a model's folder: config.json and model.safetensors",
       .details =
           "The mean of a run's last checkpoints often plays better than each of them: give\n"
           "--model several times.",
       .example = "kibitz decoder export --model tests/golden/decoder/tiny.pt --out tiny"},
      Run);
}

}  // namespace kibitz::cli
