#include "base/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "base/text.h"

namespace kibitz {
namespace {

// A file with one number, such as those of control groups; "max" means no limit.
std::optional<uint64_t> ReadNumber(const char* path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  return ParseUnsigned(word);
}

std::optional<uint64_t> MachineAvailable() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  uint64_t kilobytes = 0;
  std::string unit;
  while (in >> name >> kilobytes) {
    std::getline(in, unit);
    if (name == "MemAvailable:") return kilobytes << 10;
  }
  return std::nullopt;
}

std::optional<uint64_t> GroupAvailable() {
  const auto limit = ReadNumber("/sys/fs/cgroup/memory.max");
  const auto used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  return *limit > *used ? *limit - *used : 0;
}

}  // namespace

uint64_t AvailableMemory() {
  const auto machine = MachineAvailable();
  const auto group = GroupAvailable();
  if (machine && group) return std::min(*machine, *group);
  return machine.value_or(group.value_or(0));
}

uint64_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

}  // namespace kibitz
