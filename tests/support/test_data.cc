#include "tests/support/test_data.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/check.h"

namespace kibitz::testing {
namespace {

std::string FolderFrom(const char* variable, const char* otherwise) {
  const char* folder = std::getenv(variable);
  return folder != nullptr ? folder : std::string(KIBITZ_SOURCE_DIR) + otherwise;
}

struct Pipe {
  Pipe() { CHECK(pipe2(ends.data(), O_CLOEXEC) == 0); }
  std::array<int, 2> ends{};
};

}  // namespace

std::string GoldenPath(const std::string& name) {
  return FolderFrom("KIBITZ_GOLDEN", "/tests/golden") + "/" + name;
}

std::string DataPath(const std::string& name) {
  return FolderFrom("KIBITZ_DATA", "/../shared/data") + "/" + name;
}

std::vector<std::string> DataFiles(const std::string& folder, const std::string& ending) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(DataPath(folder), error)) {
    const std::string path = entry.path().string();
    if (entry.is_regular_file() && path.ends_with(ending)) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string DataFile(const std::string& folder, const std::string& ending) {
  const std::vector<std::string> files = DataFiles(folder, ending);
  return files.empty() ? DataPath(folder + "/*" + ending) : files.front();
}

std::string SourcePath(const std::string& name) {
  return std::string(KIBITZ_SOURCE_DIR) + "/" + name;
}

std::string ProgramPath(const std::string& name) {
  return std::string(KIBITZ_BINARY_DIR) + "/" + name;
}

std::string ModelPath(const std::string& name) { return SourcePath("models/" + name); }

bool Exists(const std::string& path) { return std::filesystem::exists(path); }

std::string PythonWith(const std::string& module) {
  static std::map<std::string, std::string> known;  // Importing torch takes seconds.
  const auto [entry, is_new] = known.try_emplace(module);
  for (const char* python : {"/usr/bin/python3", "python3"}) {
    if (!is_new || !entry->second.empty()) break;
    if (RunCommand({python, "-c", "import " + module}).code == 0) entry->second = python;
  }
  return entry->second;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "kibitz-test-XXXXXX").string();
  CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Ran RunCommand(const std::vector<std::string>& words, const std::string& input) {
  Pipe in;
  Pipe out;
  Pipe err;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(in.ends[0], STDIN_FILENO);
    dup2(out.ends[1], STDOUT_FILENO);
    dup2(err.ends[1], STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  for (int unused : {in.ends[0], out.ends[1], err.ends[1]}) close(unused);
  std::signal(SIGPIPE, SIG_IGN);  // The child may not read its input.
  // Nor may it wait for us to read its output while we wait for it to read its input.
  CHECK(fcntl(in.ends[1], F_SETFL, O_NONBLOCK) == 0);

  Ran ran;
  size_t written = 0;
  std::array<pollfd, 3> polls = {
      {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}, {in.ends[1], POLLOUT, 0}}};
  auto close_at = [&](size_t i) {
    close(polls[i].fd);
    polls[i].fd = -1;
  };
  if (input.empty()) close_at(2);
  while (polls[0].fd >= 0 || polls[1].fd >= 0) {
    CHECK(poll(polls.data(), polls.size(), -1) >= 0);
    if (polls[2].fd >= 0 && polls[2].revents != 0) {
      const ssize_t count = write(polls[2].fd, input.data() + written, input.size() - written);
      written += count > 0 ? static_cast<size_t>(count) : 0;
      const bool later = count < 0 && (errno == EAGAIN || errno == EINTR);
      if (!later && (count <= 0 || written == input.size())) close_at(2);
    }
    for (size_t i : {size_t{0}, size_t{1}}) {
      if (polls[i].fd < 0 || polls[i].revents == 0) continue;
      std::array<char, 65536> buffer{};
      const ssize_t count = read(polls[i].fd, buffer.data(), buffer.size());
      if (count <= 0) {
        close_at(i);
      } else {
        (i == 0 ? ran.out : ran.err).append(buffer.data(), static_cast<size_t>(count));
      }
    }
  }
  if (polls[2].fd >= 0) close_at(2);
  int status = 0;
  waitpid(child, &status, 0);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

}  // namespace kibitz::testing
