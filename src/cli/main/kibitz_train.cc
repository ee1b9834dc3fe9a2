#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/train/train_commands.h"
#include "learn/runtime.h"

int main(int argc, char** argv) {
  kibitz::learn::SetUpLibraries(argv);
  kibitz::learn::KeepFreedMemory();
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::vector<kibitz::cli::Command> commands = {
      kibitz::cli::TrainCheckHere(), kibitz::cli::DecoderPretrainHere(),
      kibitz::cli::DecoderFinetuneHere(), kibitz::cli::Twenty48TrainHere(),
      kibitz::cli::PolicyTrainHere()};
  return kibitz::cli::RunProgram("kibitz-train", commands, words);
}
