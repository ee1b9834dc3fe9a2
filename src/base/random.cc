#include "base/random.h"

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace kibitz {
namespace {

// A mix of 64 bits (splitmix64's), to fold three keys into one.
uint64_t Mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

}  // namespace

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * counter[0];
    const uint64_t b = uint64_t{0xcd9e8d57} * counter[2];
    counter = {High(b) ^ counter[1] ^ key[0], Low(b), High(a) ^ counter[3] ^ key[1], Low(a)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

Rng::Rng(const StreamKey& key) : key_{}, sample_(key.sample) {
  const uint64_t mixed = Mix(Mix(Mix(key.seed) ^ key.epoch) ^ key.purpose);
  key_ = {Low(mixed), High(mixed)};
}

void Rng::Refill() {
  const auto bits = Philox({Low(block_), High(block_), Low(sample_), High(sample_)}, key_);
  ++block_;
  buffer_ = {bits[0] | (uint64_t{bits[1]} << 32), bits[2] | (uint64_t{bits[3]} << 32)};
  used_ = 0;
}

uint64_t Rng::Next() {
  if (used_ == buffer_.size()) Refill();
  return buffer_[used_++];
}

double Rng::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

uint64_t Rng::Below(uint64_t bound) {
  CHECK(bound > 0);
  // Multiply and keep the high half; redraw in the sliver that would favour small numbers.
  const uint64_t sliver = (0 - bound) % bound;
  while (true) {
    const auto product = static_cast<unsigned __int128>(Next()) * bound;
    if (static_cast<uint64_t>(product) >= sliver) return static_cast<uint64_t>(product >> 64);
  }
}

double Rng::Normal() {
  const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

double Rng::Gumbel() {
  const double u = (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53;  // Never 0 or 1.
  return -std::log(-std::log(u));
}

}  // namespace kibitz
