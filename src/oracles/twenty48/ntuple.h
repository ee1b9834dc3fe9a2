// An n-tuple network: one table of weights for each pattern of a few cells. A pattern indexes its
// table by the tiles in its cells, in each of the board's eight symmetries; the sum of all these
// weights is the points still to come.
//
//   const NTupleNetwork network = NTupleNetwork::Load("tables.safetensors");
//   network.Evaluate(afterstates, values);
//
// A pattern lists its cells in hexadecimal, "012456". With six cells a table has 16^6
// entries, 64 MB. Tiles beyond 32768 count as 32768.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "games/twenty48/symmetry.h"
#include "oracles/twenty48/afterstate_value.h"
#include "oracles/twenty48/huge_array.h"
#include "oracles/twenty48/ntuple_index.h"

namespace kibitz::oracles {

// Cells under a mask of nibbles.
struct TuplePattern {
  std::string text;
  uint64_t mask = 0;
  size_t entries = 0;
};

// Throws Error::Usage unless every text has 1 to 7 different cells.
std::vector<TuplePattern> ParsePatterns(std::span<const std::string> texts);
// Four patterns of six cells, after Matsuzaki (2016).
std::vector<std::string> DefaultPatterns();

class NTupleNetwork : public AfterstateValue {
 public:
  explicit NTupleNetwork(std::span<const std::string> patterns);
  // Reads the weights from a file that NTupleLearner::Save wrote. Throws Error.
  static NTupleNetwork Load(const std::string& path);

  void Evaluate(std::span<const twenty48::Board> afterstates,
                std::span<float> values) const override;
  bool InPoints() const override { return true; }
  std::string Name() const override { return name_; }

  float Value(uint64_t packed) const {
    const std::array<uint64_t, 8> views = twenty48::Views(packed);
    float sum = 0;
    for (size_t t = 0; t < patterns_.size(); ++t) {
      for (uint64_t view : views) sum += tables_[t][GatherBits(view, patterns_[t].mask)];
    }
    return sum;
  }

  const std::vector<TuplePattern>& patterns() const { return patterns_; }
  std::span<float> table(size_t pattern) { return tables_[pattern].span(); }
  std::span<const float> table(size_t pattern) const { return tables_[pattern].span(); }
  // Weights in the sum: eight for each pattern.
  int terms() const { return 8 * static_cast<int>(patterns_.size()); }

 private:
  std::vector<TuplePattern> patterns_;
  std::vector<HugeArray<float>> tables_;
  std::string name_ = "ntuple";
};

}  // namespace kibitz::oracles
