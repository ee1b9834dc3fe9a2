#include <string>
#include <vector>

#include "base/standard_streams.h"
#include "cli/command.h"
#include "cli/train_commands.h"
#include "learn/runtime.h"

int main(int argc, char** argv) {
  kibitz::ReserveStandardStreams();
#ifdef KIBITZ_LAUNCHER
  if (const int code = kibitz::cli::RunBestProgram("kibitz-train", argv); code != 0) return code;
#endif
  kibitz::learn::StartWell(argv);
  kibitz::learn::KeepFreedMemory();
  const std::vector<std::string> words(argv + 1, argv + argc);
  return kibitz::cli::RunProgram("kibitz-train", kibitz::cli::TrainCommandsHere(), words);
}
