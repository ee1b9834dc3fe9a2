// Finds the files that ship with Kibitz, wherever it is installed.
//
//   std::string folder = FindShipped("models/policy-small").value_or("");
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kibitz {

// The folder of the running program; "" when the system does not tell. For a program in cpu/LEVEL
// (processor.h) it is the folder of the one that the user called.
std::string ProgramFolder();

// Where shipped files may be, best first: $KIBITZ_SHARE, share/kibitz beside the program's folder
// (an installation), the folder above the program's (a build folder in a checkout), the
// installation that this library belongs to.
std::vector<std::string> ShareFolders();

// The path of a shipped file or folder; nothing when no share folder has it.
std::optional<std::string> FindShipped(const std::string& name);

}  // namespace kibitz
