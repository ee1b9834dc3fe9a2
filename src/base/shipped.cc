#include "base/shipped.h"

#include <cstdlib>
#include <filesystem>

namespace kibitz {

namespace fs = std::filesystem;

std::string ProgramFolder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const fs::path folder = program.parent_path();
  if (folder.parent_path().filename() == "cpu") {
    // In a build folder, and below lib/kibitz of an installation.
    const fs::path above = folder.parent_path().parent_path();
    for (const fs::path& called : {above, above.parent_path().parent_path() / "bin"}) {
      if (fs::exists(called / program.filename(), error)) return called.string();
    }
  }
  return folder.string();
}

std::vector<std::string> ShareFolders() {
  std::vector<std::string> folders;
  if (const char* share = std::getenv("KIBITZ_SHARE")) folders.emplace_back(share);
  if (const std::string program = ProgramFolder(); !program.empty()) {
    const fs::path above = fs::path(program).parent_path();
    folders.push_back((above / "share" / "kibitz").string());
    folders.push_back(above.string());
  }
  folders.emplace_back(KIBITZ_INSTALLED_SHARE);
  return folders;
}

std::optional<std::string> FindShipped(const std::string& name) {
  std::error_code error;
  for (const std::string& folder : ShareFolders()) {
    std::string path = folder + "/" + name;
    if (fs::exists(path, error)) return path;
  }
  return std::nullopt;
}

}  // namespace kibitz
