#include "tests/support/corruption.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"

namespace kibitz::testing {
namespace {

void ReadDamaged(std::string_view bytes, const std::string& what, const ReadBytes& read,
                 DamageCounts& counts) {
  try {
    read(bytes);
    ++counts.reads;
  } catch (const Error& error) {
    ++counts.errors;
    EXPECT_FALSE(error.message().empty()) << what;
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
}

// Bytes of private writable memory, the figure that RLIMIT_DATA bounds.
uint64_t DataBytes() {
  std::ifstream status("/proc/self/status");
  uint64_t kilobytes = 0;
  for (std::string word; status >> word;) {
    if (word == "VmData:" && status >> kilobytes) break;
  }
  return kilobytes * 1024;
}

}  // namespace

DamageCounts Cut(std::string_view bytes, const Damage& damage, const ReadBytes& read) {
  DamageCounts counts;
  const auto cut = [&](size_t size) {
    ReadDamaged(bytes.substr(0, size), fmt::format("cut at byte {}", size), read, counts);
  };
  for (size_t size = 0; size < std::min(damage.cut_every_byte_of, bytes.size()); ++size) cut(size);
  Rng rng({.seed = damage.seed, .purpose = Purpose("cut")});
  for (int i = 0; i < damage.random_cuts; ++i) cut(rng.Below(bytes.size()));
  return counts;
}

DamageCounts Flip(std::string_view bytes, const Damage& damage, const ReadBytes& read) {
  DamageCounts counts;
  Rng rng({.seed = damage.seed, .purpose = Purpose("flip")});
  std::string damaged(bytes);
  for (int i = 0; i < damage.flips; ++i) {
    damaged = bytes;
    std::string what = "flipped";
    for (uint64_t flips = 1 + rng.Below(4); flips > 0; --flips) {
      const size_t at = rng.Below(std::min(damage.flip_within, bytes.size()));
      const uint64_t bit = rng.Below(8);
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      what += fmt::format(" {}.{}", at, bit);
    }
    ReadDamaged(damaged, what, read, counts);
  }
  return counts;
}

bool CanLimitMemory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#endif
#endif
  return true;
}

bool StaysWithin(uint64_t bytes, const std::function<void()>& body) {
  if (!CanLimitMemory()) return true;
  std::fflush(nullptr);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    malloc_trim(0);
    const uint64_t in_use = DataBytes() - mallinfo2().fordblks;  // What is free now is no gift.
    const rlimit limit = {in_use + bytes, in_use + bytes};
    if (setrlimit(RLIMIT_DATA, &limit) != 0) _exit(3);
    try {
      body();
    } catch (const Error&) {  // What a lie should end in.
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace kibitz::testing
