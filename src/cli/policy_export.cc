#include <fmt/format.h>

#include <string>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "students/policy/export.h"

namespace kibitz::cli {
namespace {

struct Options {
  std::string data;
  std::string out;
  policy::ExportOptions to;
};

Fields FieldsOf(Options& options) {
  Fields fields;
  fields.Add("data", options.data, "folder of the data set",
             {.required = true, .positional = true, .metavar = "DIR"});
  fields.Add("out", options.out, "folder of the new one", {.required = true, .metavar = "DIR"});
  fields.AddChoice("format", options.to.storage, "what to write",
                   {{"planes", policy::Storage::kPlanes}, {"packed", policy::Storage::kPacked}});
  fields.Add("vocab", options.to.vocabulary,
             "planes: number the moves by this vocabulary and leave others out",
             {.metavar = "FILE"});
  return fields;
}

int Run(const Options& options, const Context& context) {
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
  return MakeCommand<Options>(
      {.name = "policy export",
       .group = "Policy",
       .summary = "convert a data set: packed rows to arrays of planes, or back",
       .details =
           "Arrays: train_planes.npy (N, 13, 8, 8) uint8, train_meta.npy (N, 5) int8,\n"
           "train_analysis_data.npy (M, 5) int32 (move, depth, knodes, cp or mate, is_mate) and\n"
           "train_analysis_offsets.npy (N + 1) uint32, or uint64 where the count needs it; so\n"
           "for val and test. Arrays that other programs made are read too.",
       .example = "kibitz policy export data --out arrays --format planes"},
      Run);
}

}  // namespace kibitz::cli
