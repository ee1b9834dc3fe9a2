// One writer at a time: a command takes the lock of its output before it reads, removes or writes
// anything there. The lock is a file that says who holds it. It goes away with the process, also
// after kill -9; a leftover file does no harm.
//
//   const WriteLock lock = WriteLock::OfFolder("checkpoints/run-1");
//
// A second process gets an Error with the command, process, host and time of the first.
#pragma once

#include <optional>
#include <string>

namespace kibitz {

class WriteLock {
 public:
  // Of all files in the folder, which is made when missing: the file "lock" in it. Throws Error.
  static WriteLock OfFolder(const std::string& folder);
  // Of a file and what is kept beside it: the file PATH.lock. Symbolic links are followed.
  static WriteLock OfFile(const std::string& path);
  // Nothing while another process holds it.
  static std::optional<WriteLock> TryOfFolder(const std::string& folder);
  // Of processes that each write a part: held by any number of them, and not together with OfFile
  // or OfFolder.
  static WriteLock ShareFile(const std::string& path);
  static WriteLock ShareFolder(const std::string& folder);
  // Removes the lock file.
  ~WriteLock();
  WriteLock(WriteLock&& other) noexcept;
  WriteLock& operator=(WriteLock&&) = delete;

 private:
  WriteLock(std::string lock_path, int descriptor);

  std::string path_;
  int descriptor_ = -1;
};

// Makes the folder and those above it. Throws Error with path, reason and remedy.
void MakeFolder(const std::string& folder);

namespace internal {
// Whether the name still leads to the open file; not when its holder has renamed or removed it.
bool StillNamed(int descriptor, const std::string& path);
}  // namespace internal

}  // namespace kibitz
