// Files that grow over several runs. A journal keeps the length and checksum of what is known to be
// good; a run that was killed resumes from there and truncates what came after.
//
//   AppendFile file(path, journal.state);   // FileState{}: a new file.
//   file.Append(bytes);
//   file.Sync();                            // On disk; now file.state() may go into the journal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "students/policy/data/file_state.h"

namespace kibitz::policy {

class AppendFile {
 public:
  // Truncates the file to the state's length. The first `head_bytes` are kept for WriteHead and do
  // not count in the state. Throws Error when the file is shorter.
  AppendFile(std::string path, const FileState& from, uint64_t head_bytes = 0);
  ~AppendFile();
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;

  void Append(std::string_view bytes);
  // Exactly as many bytes as were kept for it.
  void WriteHead(std::string_view bytes);
  void Sync();

  const FileState& state() const { return state_; }
  const std::string& path() const { return path_; }

 private:
  void WriteAt(uint64_t offset, std::string_view bytes);

  std::string path_;
  uint64_t head_bytes_;
  int descriptor_ = -1;
  FileState state_;
};

}  // namespace kibitz::policy
