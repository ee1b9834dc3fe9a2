// A checkpoint as a model folder: what the export commands share.
//
//   int Run(const Context& context) {
//     const io::ModelFile file = io::ReadModel("checkpoints/run/best.pt");
//     return ExportModel({.weights = file.weights, .config = file.config}, "out", context);
//   }
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "io/weights/state_dict.h"

namespace kibitz::cli {

struct ExportedModel {
  const io::StateDict& weights;
  nlohmann::ordered_json config;  // For config.json.
  uint64_t parameters = 0;
};

// Writes the folder and prints what it holds. The exit code. Throws Error.
int ExportModel(const ExportedModel& model, const std::string& folder, const Context& context);

}  // namespace kibitz::cli
