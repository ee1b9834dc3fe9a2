#include "base/permutation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace kibitz {

Permutation::Permutation(uint64_t size, const StreamKey& key) : size_(size) {
  CHECK(size >= 1);
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  mask_ = (uint64_t{1} << half_bits_) - 1;
  Rng rng(key);
  for (uint64_t& round : keys_) round = rng.Next();
}

uint64_t Permutation::Scramble(uint64_t value) const {
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask_;
  for (uint64_t key : keys_) {
    uint64_t mixed = (right ^ key) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 32) * 0xbf58476d1ce4e5b9;
    const uint64_t next = left ^ (mixed >> 32 & mask_);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

uint64_t Permutation::operator[](uint64_t place) const {
  CHECK(place < size_);
  do place = Scramble(place);
  while (place >= size_);
  return place;
}

}  // namespace kibitz
