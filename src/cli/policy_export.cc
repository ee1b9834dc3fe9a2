#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/write_lock.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/model_export.h"
#include "io/weights/model_file.h"
#include "students/policy/data/export.h"
#include "students/policy/data/net_config.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::cli {
namespace {

struct PolicyExportOptions {
  std::string data;
  std::string model;
  std::string out;
  policy::ExportOptions to;
};

Fields FieldsOf(PolicyExportOptions& options) {
  Fields fields;
  fields.Add("data", options.data, "folder of the data set",
             {.positional = true, .metavar = "DIR"});
  fields.Add("model", options.model, "export a checkpoint of a training run instead",
             {.metavar = "FILE"});
  fields.Add("out", options.out, "folder to write", {.required = true, .metavar = "DIR"});
  fields.AddChoice("format", options.to.storage, "format of the written data set",
                   {{"planes", policy::Storage::kPlanes}, {"packed", policy::Storage::kPacked}});
  fields.Add(
      "vocab", options.to.vocabulary,
      "planes: move indices follow this vocabulary, other moves are dropped; with --model: the "
      "network's vocabulary if it is not the full one",
      {.metavar = "FILE"});
  return fields;
}

int ExportCheckpoint(const PolicyExportOptions& options, const Context& context) {
  const io::ModelFile file = io::ReadModel(options.model);
  policy::NetConfig config = policy::ConfigOf(file);
  if (config.num_moves != policy::kFullVocabularySize && options.to.vocabulary.empty()) {
    throw Error::Usage("{} has {} moves, not the full vocabulary's {}; name its own with --vocab",
                       options.model, config.num_moves, policy::kFullVocabularySize);
  }
  if (!options.to.vocabulary.empty()) {
    MakeFolder(options.out);
    policy::Vocabulary::Read(options.to.vocabulary).Write(options.out + "/vocab.npy");
  }
  return ExportModel({.weights = file.weights,
                      .config = policy::FieldsOf(config).ToTree(),
                      .parameters = CountParameters(config)},
                     options.out, context);
}

int Run(const PolicyExportOptions& options, const Context& context) {
  if (options.data.empty() == options.model.empty()) {
    throw Error::Usage("give either DIR (a data set) or --model FILE");
  }
  if (!options.model.empty()) return ExportCheckpoint(options, context);
  const policy::Manifest manifest = Export(options.data, options.out, options.to);
  if (context.json) {
    PrintJson({{"positions", manifest.positions()},
               {"analyses", manifest.analyses()},
               {"format", NameOf(manifest.storage)},
               {"folder", options.out}});
  } else {
    fmt::print("{}: {} positions, {} analyses as {}\n", options.out, manifest.positions(),
               manifest.analyses(), NameOf(manifest.storage));
  }
  return 0;
}

}  // namespace

Command PolicyExport() {
  return MakeCommand<PolicyExportOptions>(
      {.name = "policy export",
       .group = "Policy",
       .summary = "convert a data set between packed rows and planes, or a checkpoint to a model",
       .details =
           "Planes are NumPy arrays: train_planes.npy (N, 13, 8, 8) uint8, train_meta.npy (N, 5) "
           "int8,\n"
           "train_analysis_data.npy (M, 5) int32 (move, depth, knodes, cp or mate, is_mate) and\n"
           "train_analysis_offsets.npy (N + 1) uint32, or uint64 if M needs it; the same for val "
           "and\n"
           "test. Arrays written by other programs are read too. A model is a folder with "
           "config.json\n"
           "and model.safetensors.",
       .example = "kibitz policy export data --out arrays --format planes"},
      Run);
}

}  // namespace kibitz::cli
