#include <string>
#include <vector>

#include "cli/train_commands.h"
#include "learn/runtime.h"

int main(int argc, char** argv) {
  kibitz::learn::StartWell(argv);
  kibitz::learn::KeepFreedMemory();
  const std::vector<std::string> words(argv + 1, argv + argc);
  return kibitz::cli::RunProgram("kibitz-train", kibitz::cli::TrainCommandsHere(), words);
}
