#include "cli/sibling.h"

#include <unistd.h>

#include <cstdio>
#include <vector>

#include "base/error.h"
#include "base/shipped.h"
#include "base/text.h"

namespace kibitz::cli {

void RunSibling(const std::string& name, std::span<const std::string> words) {
  const std::string program = ProgramFolder() + "/kibitz-train";
  if (access(program.c_str(), X_OK) != 0) {
    throw Error(
        "{} is missing: install the package kibitz-train, or build with -DKIBITZ_TORCH=ON (needs "
        "libtorch-dev)",
        program);
  }
  std::vector<std::string> arguments = {program};
  for (std::string_view word : SplitWords(name)) arguments.emplace_back(word);
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), pointers.data());
  throw Error::System("cannot run " + program);
}

}  // namespace kibitz::cli
