// What changed between the runs that made a checkpoint and the one that resumes from it: options
// that shape the weights, and the data. Limits, logging, saving and threads may change freely.
//
//   const Json data = DataFingerprints(config);
//   for (const std::string& change : ChangesSince(before, {config, data})) LogWarn("{}", change);
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kibitz::learn {

struct RunInputs {
  nlohmann::ordered_json config;
  nlohmann::ordered_json data;  // DataFingerprints; null in checkpoints of earlier versions.
};

// A fingerprint for each folder of data that the config names ("data.parquet_dir").
nlohmann::ordered_json DataFingerprints(const nlohmann::ordered_json& config);

// "training.learning_rate was 0.001 and is 0.002 now"; empty when nothing changed.
std::vector<std::string> ChangesSince(const RunInputs& before, const RunInputs& now);

}  // namespace kibitz::learn
