// Where tests find their data. Golden data comes with the repository (tests/golden) and may be
// replaced by another kit of the same form through KIBITZ_GOLDEN; real data is optional.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kibitz::testing {

// $KIBITZ_GOLDEN, or tests/golden: "decoder/legal.jsonl" -> its path.
std::string GoldenPath(const std::string& name);

// $KIBITZ_DATA, or ../shared/data beside the repository.
std::string DataPath(const std::string& name);

// The files of a folder of the data by kind, sorted: DataFiles("evals", ".jsonl.zst"). Their names
// and sizes are the kit's own, so that another one can take its place. None without the folder.
std::vector<std::string> DataFiles(const std::string& folder, const std::string& ending);
// The first of them; a path that is not there when there is none.
std::string DataFile(const std::string& folder, const std::string& ending);

// A file of the repository: "examples/immortal.pgn" -> its path.
std::string SourcePath(const std::string& name);
// A program of this build: "kibitz" -> its path.
std::string ProgramPath(const std::string& name);

// A model that ships with the repository: "twenty48-small" -> its folder.
std::string ModelPath(const std::string& name);

bool Exists(const std::string& path);

// A Python that can import the module: Debian's own first, another may shadow it on the PATH. Empty
// when there is none.
std::string PythonWith(const std::string& module);

// The whole of a small file; fails the test when it cannot be read.
std::string ReadWhole(const std::string& path);

// A new empty folder, removed with its content at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The message of the Error that the function throws; "" when it throws none.
template <typename Function>
std::string MessageOf(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

// What a command line did. Runs without a shell.
struct Ran {
  int code = -1;  // Exit code, or 128 + the signal that ended it.
  std::string out;
  std::string err;
};
Ran RunCommand(const std::vector<std::string>& words, const std::string& input = "");

}  // namespace kibitz::testing

// For the top of a test that needs a Debian package of Python, such as python3-torch for torch.
#define SKIP_WITHOUT_PYTHON(module)                                                  \
  if (::kibitz::testing::PythonWith(module).empty()) {                               \
    GTEST_SKIP() << "python3-" << (module) << " is not installed; run 'make setup'"; \
  }

// For the top of a test that needs real data.
#define SKIP_WITHOUT(path)                                                           \
  if (!::kibitz::testing::Exists(path)) {                                            \
    GTEST_SKIP() << (path) << " is not here; set KIBITZ_DATA to the folder of data"; \
  }
