#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/player_input.h"
#include "serve/serve.h"

namespace kibitz::cli {
namespace {

int Run(const serve::ServeOptions& options, const Context& context) {
  serve::Serving serving(options);
  const StopOnInterrupt interrupt;
  if (context.json) {
    PrintJson({{"address", serving.address()}, {"port", serving.port()}});
  } else {
    fmt::print("{}\n", serving.address());
  }
  std::fflush(stdout);
  LogInfo("open this address in a browser; Ctrl-C ends the server");
  serving.Run(interrupt.token());
  return 0;
}

}  // namespace

Command Serve() {
  return MakeCommand<serve::ServeOptions>(
      {.name = "serve",
       .group = "Play",
       .summary = "open a page: watch a network think, play it, see data and training",
       .details =
           "Prints the address of the page, and serves it until Ctrl-C. Only what lies in the\n"
           "folders given here can be opened, only programs given with --engines are started, and\n"
           "on an address that other machines reach, clients need the token of the address.\n"
           "docs/API.md has the interface for programs.",
       .example = "kibitz serve --port 8080 --runs checkpoints"},
      Run);
}

}  // namespace kibitz::cli
