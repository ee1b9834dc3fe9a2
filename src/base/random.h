// Counter-based random numbers: every draw is a function of (seed, epoch, sample, purpose) and its
// index in that stream. A run is the same on any number of threads or machines, resumed or not.
//
//   Rng rng({.seed = options.seed, .epoch = epoch, .sample = row, .purpose = Purpose("depth")});
//   int depth = 1 + static_cast<int>(rng.Below(5));
//
// The generator is Philox4x32-10 (Salmon et al., 2011): a block cipher over a counter, so that
// streams need no state but their key and may start anywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace kibitz {

// Names what the draws are for, so that two uses never share numbers.
constexpr uint64_t Purpose(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

struct StreamKey {
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t sample = 0;
  uint64_t purpose = 0;
};

// The bare block function: ten rounds of Philox4x32.
std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class Rng {
 public:
  using result_type = uint64_t;  // Serves the standard library's distributions and shuffles too.

  explicit Rng(const StreamKey& key);

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return Next(); }

  uint64_t Next();
  // Uniform in [0, 1), 53 bits.
  double Uniform();
  // Uniform in 0 .. bound-1, without bias. `bound` is at least 1.
  uint64_t Below(uint64_t bound);
  // Standard normal.
  double Normal();
  // Standard Gumbel: -log(-log(u)).
  double Gumbel();

  template <typename Range>
  void Shuffle(Range& range) {
    for (size_t i = range.size(); i > 1; --i) std::swap(range[i - 1], range[Below(i)]);
  }

 private:
  void Refill();

  std::array<uint32_t, 2> key_;
  uint64_t sample_;
  uint64_t block_ = 0;  // Number of the next block.
  std::array<uint64_t, 2> buffer_{};
  size_t used_ = 2;
};

}  // namespace kibitz
