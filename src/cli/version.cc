#include <fmt/format.h>

#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "games/chess/attacks.h"
#include "nn/kernels/instructions.h"

namespace kibitz::cli {
namespace {

struct VersionOptions {};
Fields FieldsOf(VersionOptions&) { return {}; }

int Run(const VersionOptions&, const Context& context) {
  const int cores = HardwareThreads();
  if (context.json) {
    PrintJson({{"version", KIBITZ_VERSION},
               {"compiler", __VERSION__},
               {"instructions", nn::InstructionsName()},
               {"slider_index", chess::SliderIndexName()},
               {"cores", cores}});
  } else {
    fmt::print("kibitz {} (code for {}, compiler {}, sliders by {}, {} cores)\n", KIBITZ_VERSION,
               nn::InstructionsName(), __VERSION__, chess::SliderIndexName(), cores);
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
