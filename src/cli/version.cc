#include <fmt/format.h>

#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "games/chess/attacks.h"

namespace kibitz::cli {
namespace {

struct VersionOptions {};
Fields FieldsOf(VersionOptions&) { return {}; }

int Run(const VersionOptions&, const Context& context) {
  const int cores = HardwareThreads();
  if (context.json) {
    PrintJson({{"version", KIBITZ_VERSION},
               {"compiler", __VERSION__},
               {"slider_index", chess::SliderIndexName()},
               {"cores", cores}});
  } else {
    fmt::print("kibitz {} (compiler {}, sliders by {}, {} cores)\n", KIBITZ_VERSION, __VERSION__,
               chess::SliderIndexName(), cores);
  }
  return 0;
}

}  // namespace

Command Version() {
  return MakeCommand<VersionOptions>({.name = "version",
                                      .group = "General",
                                      .summary = "show the version and how the program was built",
                                      .details = "",
                                      .example = "kibitz version --json"},
                                     Run);
}

}  // namespace kibitz::cli
