// For readers that take a path: the bytes as a file in memory.
//
//   const FuzzFile file(data, size, "a.csv");
//   Read(file.path());
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"

namespace kibitz {

// A folder of this process in /dev/shm, removed at the end.
inline const std::string& FuzzFolder() {
  struct Folder {
    Folder() {
      std::string pattern = std::filesystem::exists("/dev/shm") ? "/dev/shm/kibitz-fuzz-XXXXXX"
                                                                : "/tmp/kibitz-fuzz-XXXXXX";
      CHECK(mkdtemp(pattern.data()) != nullptr);
      path = pattern;
    }
    ~Folder() {
      std::error_code error;
      std::filesystem::remove_all(path, error);
    }
    std::string path;
  };
  static const Folder folder;
  return folder.path;
}

class FuzzFile {
 public:
  FuzzFile(const uint8_t* data, size_t size, const std::string& name)
      : path_(FuzzFolder() + "/" + name) {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    CHECK(out.good());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kibitz
