// A network's weights and config, whatever file they come from.
//
//   const ModelFile file = ReadModel("models/policy-small");
//   const Tensor& output = file.weights.Get("output.weight");
//   const nlohmann::ordered_json* sizes = file.Section("model");   // nullptr when there is none.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/options.h"
#include "io/weights/state_dict.h"

namespace kibitz::io {

enum class ModelFormat : uint8_t { kTorch, kSafetensors, kLc0 };

struct ModelFile {
  StateDict weights;
  // The config that the file holds, or config.json beside it: its objects are sections, the rest is
  // the section "model". Only plain values; null when there is no config.
  nlohmann::ordered_json config;
  std::string place;  // The file of the weights, for messages.
  ModelFormat format = ModelFormat::kTorch;
  Value root = {};  // All that a .pt or .safetensors file holds.

  const nlohmann::ordered_json* Section(std::string_view name) const;
  // Sets the fields that a section of the config names; without the section, none. A null leaves a
  // field as it is. Unknown keys are logged: other programs write their own. Throws Error when a
  // value does not fit.
  void ReadSection(std::string_view name, Fields fields) const;
};

// A model folder (config.json, model.safetensors), a .pt or .safetensors file, or an lc0 network
// (.pb.gz). The content decides, the name where the content does not. A path that is not there may
// name a model that ships, such as "policy-small" (base/shipped.h). Throws Error, also when a
// weight is NaN or infinite or a checksum is wrong.
ModelFile ReadModel(const std::string& path);

// The file of the weights that ReadModel would read. Throws Error when there is none.
std::string FindModel(std::string path);

// A size that a weight's shape has: axis `axis` of `name`. Throws Error when there is no such axis.
int SizeFromShape(const StateDict& weights, const std::string& name, size_t axis);
// How many weights are called "layers.0.w", "layers.1.w", ...: `format` has {} for the number.
int CountLayers(const StateDict& weights, std::string_view format, int first = 0);

// Writes a model folder: model.safetensors, then config.json. Throws Error.
void WriteModel(const std::string& folder, const StateDict& weights,
                const nlohmann::ordered_json& config);

}  // namespace kibitz::io
