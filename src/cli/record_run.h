// What the oracle commands share: where records go, resuming, and the report.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/progress.h"
#include "base/skip_counter.h"
#include "base/slice.h"
#include "cli/command.h"
#include "oracles/records/join.h"
#include "oracles/records/part_store.h"
#include "oracles/records/source_games.h"

namespace kibitz::cli {

struct RecordOutput {
  std::string out;
  bool fresh = false;
  SliceOptions slice = {};
};
Fields FieldsOf(RecordOutput& output);

// Counts of a run.
struct RecordWork {
  int64_t positions = 0;  // Searched.
  int failures = 0;       // Engines that had to restart.
};

struct RecordRun {
  RecordOutput output;
  nlohmann::ordered_json stored_options;  // Everything the rows depend on.
  std::function<RecordWork(const oracles::PartStore&)> work;
  std::function<oracles::Joined(const oracles::PartStore&)> join;
  std::string unit;  // "games", "positions".
};

// Path, size and hash of each file, for the copy of the options.
nlohmann::ordered_json DescribeInputs(const std::vector<std::string>& paths);

// Computes the missing parts, joins them to the output and reports. The ranks of a job share the
// parts, and rank 0 joins them; with --shards only a slice of the parts is made. Returns the exit
// code.
int Run(const RecordRun& run, const SkipCounter& skipped, const Context& context);

// Positions to evaluate, and how many make a part.
struct PositionInput {
  std::vector<std::string> files = {};
  oracles::Sampling sampling = {};
  int64_t part_positions = 256;
};
Fields FieldsOf(PositionInput& input);

// The same for commands that evaluate positions.
struct PositionRun {
  std::string command;  // "oracle evals"
  PositionInput input;
  RecordOutput output;
  nlohmann::ordered_json teachers;  // Their options.
  std::function<RecordWork(std::span<const oracles::GameSoFar>, const oracles::PartStore&,
                           Progress&)>
      judge;
  std::function<oracles::Joined(const oracles::PartStore&)> join;
};
int Run(const PositionRun& run, const Context& context);

}  // namespace kibitz::cli
