// An n-tuple network: one table of weights for each pattern of a few cells. A pattern indexes its
// table by the tiles in its cells, in each of the board's eight symmetries; the sum of all these
// weights is the points still to come.
//
//   const NTupleNetwork network = NTupleNetwork::Load("tables.safetensors");
//   network.Evaluate(afterstates, values);
//
// A pattern lists its cells in hexadecimal, "012456". With six cells a table has 16^6
// entries, 64 MB. Tiles beyond 32768 count as 32768.
//
// With stages, a game has several sets of tables, by the board's largest tile: late boards are
// worth other values than early ones. An entry that a stage never learned is 0 and reads that of
// the stage before, so that a stage begins with what is known.
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

// The ranks of the tiles that begin a stage, "8192" to 13. Throws Error::Usage unless they are
// tiles of 4 to 32768, ascending.
std::vector<int> ParseStages(std::span<const std::string> tiles);
// How many of the ranks the largest tile reaches, up to rank 15.
inline size_t StageOf(uint64_t packed, std::span<const int> ranks) {
  constexpr uint64_t kOnes = 0x1111111111111111;
  constexpr uint64_t kTops = 8 * kOnes;
  size_t stage = 0;
  for (; stage < ranks.size(); ++stage) {
    // Adds to the lower three bits of each nibble what makes bit 3 tell whether they suffice.
    const int rank = ranks[stage];
    const uint64_t lower = (packed & ~kTops) + static_cast<uint64_t>((16 - rank) % 8) * kOnes;
    const uint64_t enough = rank > 8 ? lower & packed : rank == 8 ? packed : lower | packed;
    if ((enough & kTops) == 0) break;
  }
  return stage;
}

class NTupleNetwork : public AfterstateValue {
 public:
  explicit NTupleNetwork(std::span<const std::string> patterns,
                         std::span<const std::string> stages = {});
  // Reads the weights from a file that NTupleLearner::Save wrote. Throws Error.
  static NTupleNetwork Load(const std::string& path);

  void Evaluate(std::span<const twenty48::Board> afterstates,
                std::span<float> values) const override;
  bool InPoints() const override { return true; }
  std::string Name() const override { return name_; }

  float Value(uint64_t packed) const {
    const std::array<uint64_t, 8> views = twenty48::Views(packed);
    const size_t stage = Stage(packed);
    float sum = 0;
    for (size_t t = 0; t < patterns_.size(); ++t) {
      for (uint64_t view : views) sum += Weight(t, stage, GatherBits(view, patterns_[t].mask));
    }
    return sum;
  }
  size_t Stage(uint64_t packed) const { return StageOf(packed, stage_ranks_); }
  // The entry of this stage, or of the latest before it that learned one.
  float Weight(size_t pattern, size_t stage, size_t entry) const {
    for (; stage > 0; --stage) {
      const float weight = tables_[stage * patterns_.size() + pattern][entry];
      if (weight != 0) return weight;
    }
    return tables_[pattern][entry];
  }

  const std::vector<TuplePattern>& patterns() const { return patterns_; }
  size_t stages() const { return stage_ranks_.size() + 1; }
  std::span<float> table(size_t pattern, size_t stage = 0) {
    return tables_[stage * patterns_.size() + pattern].span();
  }
  std::span<const float> table(size_t pattern, size_t stage = 0) const {
    return tables_[stage * patterns_.size() + pattern].span();
  }
  // Of the tensors in a file: "012456", and "012456.1" in the next stage.
  std::string TableName(size_t pattern, size_t stage) const;
  // Weights in the sum: eight for each pattern.
  int terms() const { return 8 * static_cast<int>(patterns_.size()); }

 private:
  std::vector<TuplePattern> patterns_;
  std::vector<int> stage_ranks_;
  std::vector<HugeArray<float>> tables_;  // By stage, then by pattern.
  std::string name_ = "ntuple";
};

}  // namespace kibitz::oracles
