// Damaging files on purpose: every reader must answer with an Error or a valid read, and must not
// take memory on the word of a broken header.
//
//   Cut(ReadWhole(path), {}, [](std::string_view bytes) { ReadAll(bytes); });
//   EXPECT_TRUE(StaysWithin(64 << 20, [] { ReadAll(lie); }));
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kibitz::testing {

// Reads all of a file from memory. May throw Error; any other exception fails the test.
using ReadBytes = std::function<void(std::string_view bytes)>;

struct Damage {
  size_t cut_every_byte_of = 4096;  // Truncations at each of the first bytes...
  int random_cuts = 500;            // ... and at random places.
  int flips = 10'000;               // Files with one to four bits flipped ...
  size_t flip_within = 4096;        // ... among the first bytes.
  uint64_t seed = 1;
};

struct DamageCounts {
  int errors = 0;  // Reads that ended in an Error.
  int reads = 0;   // Reads that found nothing wrong.
};

// The two kinds of damage; each fails the test on what is not an Error, and on an Error without a
// message.
DamageCounts Cut(std::string_view bytes, const Damage& damage, const ReadBytes& read);
DamageCounts Flip(std::string_view bytes, const Damage& damage, const ReadBytes& read);

// Whether `body` gets by with this much memory beyond what is in use, an Error included. Runs it in
// a forked process whose memory the kernel limits; mapped files do not count, stacks of threads
// do. Always true where CanLimitMemory() is not: sanitizers need memory of their own.
bool CanLimitMemory();
bool StaysWithin(uint64_t bytes, const std::function<void()>& body);

}  // namespace kibitz::testing
