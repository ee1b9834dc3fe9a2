#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  kibitz::ReserveStandardStreams();
#ifdef KIBITZ_LAUNCHER
  if (const int code = kibitz::cli::RunBestProgram("kibitz", argv); code != 0) return code;
#endif
  const std::vector<std::string> words(argv + 1, argv + argc);
  return kibitz::cli::RunProgram("kibitz", kibitz::cli::AllCommands(), words);
}
