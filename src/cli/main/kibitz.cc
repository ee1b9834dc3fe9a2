#include <string>
#include <vector>

#include "cli/commands.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return kibitz::cli::RunProgram("kibitz", kibitz::cli::AllCommands(), words);
}
