// What the oracle commands share: where records go, going on after an interruption, and the report.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/progress.h"
#include "cli/command.h"
#include "oracles/records/join.h"
#include "oracles/records/part_store.h"
#include "oracles/records/skipped.h"
#include "oracles/records/source_games.h"

namespace kibitz::cli {

struct RecordOutput {
  std::string out;
  bool fresh = false;
};
Fields FieldsOf(RecordOutput& output);

// What a run did, besides writing parts.
struct RecordWork {
  int64_t positions = 0;  // Asked about.
  int failures = 0;       // Of engines.
};

struct RecordRun {
  RecordOutput output;
  nlohmann::ordered_json settings;  // Everything the rows depend on.
  std::function<RecordWork(const oracles::PartStore&)> work;
  std::function<oracles::Joined(const oracles::PartStore&)> join;
  std::string unit;  // "games", "positions".
};

// Files as settings name them: path and size.
nlohmann::ordered_json DescribeInputs(const std::vector<std::string>& paths);

// Does what is missing, puts the output in place and reports. The exit code.
int Run(const RecordRun& run, const oracles::Skipped& skipped, const Context& context);

// Positions to judge, and how many make a part.
struct PositionInput {
  std::vector<std::string> files = {};
  oracles::Sampling sampling = {};
  int64_t part_positions = 256;
};
Fields FieldsOf(PositionInput& input);

// The same for commands that judge positions.
struct PositionRun {
  std::string command;  // "oracle evals"
  PositionInput input;
  RecordOutput output;
  nlohmann::ordered_json teachers;  // Their settings.
  std::function<RecordWork(std::span<const oracles::GameSoFar>, const oracles::PartStore&,
                           Progress&)>
      judge;
  std::function<oracles::Joined(const oracles::PartStore&)> join;
};
int Run(const PositionRun& run, const Context& context);

}  // namespace kibitz::cli
