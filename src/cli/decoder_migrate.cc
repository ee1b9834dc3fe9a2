#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "io/weights/model_file.h"
#include "io/weights/safetensors.h"
#include "io/weights/torch_file.h"
#include "students/decoder/data/migrate.h"

namespace kibitz::cli {
namespace {

using io::Value;

struct MigrateOptions {
  std::string in;
  std::string out;
};

Fields FieldsOf(MigrateOptions& options) {
  Fields fields;
  fields.Add("in", options.in, "checkpoint to read, .pt or .safetensors",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("out", options.out, "where the migrated checkpoint goes, .pt or .safetensors",
             {.required = true, .metavar = "FILE"});
  return fields;
}

bool IsSafetensors(const std::string& path) { return path.ends_with(".safetensors"); }

// The file's other entries stay, but the optimizer's state: it is of the old shapes.
Value Rewrapped(const Value& root, const io::StateDict& weights, bool changed) {
  if (root.Find("model_state_dict") == nullptr) {
    return Value::Dict({{Value::String("model_state_dict"), io::ToDict(weights.tensors())}});
  }
  Value::Pairs pairs;
  for (const auto& [key, value] : root.pairs()) {
    const bool named = key.Is(Value::Kind::kString);
    if (named && key.AsText() == "model_state_dict") {
      pairs.emplace_back(key, io::ToDict(weights.tensors()));
    } else if (!(changed && named && key.AsText() == "optimizer_state_dict")) {
      pairs.emplace_back(key, value);
    }
  }
  return Value::Dict(std::move(pairs));
}

int Run(const MigrateOptions& options, const Context& context) {
  const io::ModelFile file = io::ReadModel(options.in);
  const decoder::Migration migration = decoder::MigrateStateDict(file.weights, file.place);
  if (IsSafetensors(options.out)) {
    io::WriteSafetensors(options.out, {.tensors = migration.weights.tensors()});
  } else {
    io::WritePt(options.out, Rewrapped(file.root, migration.weights, !migration.changes.empty()));
  }
  if (context.json) {
    PrintJson({{"in", options.in}, {"out", options.out}, {"changes", migration.changes}});
    return 0;
  }
  for (const std::string& change : migration.changes) fmt::print("{}\n", change);
  fmt::print("{} written, {}\n", options.out,
             migration.changes.empty() ? "nothing to change"
                                       : fmt::format("{} changes", migration.changes.size()));
  return 0;
}

}  // namespace

Command DecoderMigrate() {
  return MakeCommand<MigrateOptions>(
      {.name = "decoder migrate",
       .group = "Decoder",
       .summary = "convert an older checkpoint to the current vocabulary and heads",
       .details = "The token embedding grows, heads over the whole vocabulary shrink to their own "
                  "tokens, and\n"
                  "a missing thinking policy head becomes a copy of the policy head. Training does "
                  "the same\n"
                  "when it loads an older checkpoint.",
       .example = "kibitz decoder migrate tests/golden/decoder/migrate/legacy.pt --out new.pt"},
      Run);
}

}  // namespace kibitz::cli
