// A random permutation of 0 .. size-1 that needs no list: each entry is computed on demand.
// Training shuffles hundreds of millions of samples with it.
//
//   const Permutation order(samples, {.seed = 1, .epoch = epoch, .purpose = Purpose("order")});
//   Use(order[place]);
//
// A Feistel network over the next power of two, applied again until the result is below size.
#pragma once

#include <array>
#include <cstdint>

#include "base/random.h"

namespace kibitz {

class Permutation {
 public:
  // `size` is at least 1.
  Permutation(uint64_t size, const StreamKey& key);

  uint64_t size() const { return size_; }
  // `place` is below size().
  uint64_t operator[](uint64_t place) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t Scramble(uint64_t value) const;

  uint64_t size_;
  int half_bits_;  // Of either half.
  uint64_t mask_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace kibitz
