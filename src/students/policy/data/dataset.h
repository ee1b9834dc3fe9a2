// A data set, memory-mapped: packed rows as Precompute writes them, or the four arrays of planes
// that other programs use. Both are read the same way.
//
//   const Dataset data = Dataset::Open("data");
//   const SplitData& train = data.split(Split::kTrain);
//   std::vector<Analysis> scratch;
//   const Sample sample = train.At(n, scratch);
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/tables/npy.h"
#include "students/policy/data/labels.h"
#include "students/policy/data/manifest.h"
#include "students/policy/data/packed_position.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::policy {

struct Sample {
  PackedPosition position;
  std::span<const Analysis> analyses;  // In the data set, or in `scratch`.
};

class SplitData {
 public:
  SplitData() = default;  // Empty.

  uint64_t size() const { return size_; }
  uint64_t analyses() const { return analyses_; }
  // `index` is below size(). Throws Error where planes are no position or offsets are wrong.
  Sample At(uint64_t index, std::vector<Analysis>& scratch) const;
  // The same, with the reason instead of an Error.
  Result<Sample> TryAt(uint64_t index, std::vector<Analysis>& scratch) const;
  // Around reading a few positions here and there: the kernel then reads nothing ahead.
  void BeginScatteredReads() const;
  void EndScatteredReads() const;
  // Where the analyses begin.
  uint64_t OffsetOf(uint64_t index) const;

 private:
  friend class Dataset;
  friend class Verifier;
  static SplitData OpenPacked(const std::string& folder, Split split);
  static SplitData OpenPlanes(const std::string& folder, Split split);

  Result<PackedPosition> PositionFromPlanes(uint64_t index) const;

  uint64_t size_ = 0;
  uint64_t analyses_ = 0;
  std::vector<io::NpyFile> files_;  // Own the bytes of the spans below.
  // Packed.
  std::span<const PackedPosition> positions_;
  std::span<const Analysis> rows_;
  std::span<const uint64_t> index_;
  // Planes.
  std::span<const uint8_t> planes_;
  std::span<const int8_t> meta_;
  std::span<const int32_t> numbers_;  // move, depth, knodes, cp or mate, is_mate
  std::span<const uint32_t> offsets32_;
  std::span<const uint64_t> offsets64_;
};

class Dataset {
 public:
  // Lengths are checked here; checksums and content by Verify. Throws Error.
  static Dataset Open(const std::string& folder);

  const std::string& folder() const { return folder_; }
  Storage storage() const { return storage_; }
  const SplitData& split(Split split) const { return splits_[static_cast<size_t>(split)]; }
  uint64_t positions() const;
  uint64_t analyses() const;
  // Of the numbers in Analysis::move.
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  // None for arrays of another program.
  const std::optional<Manifest>& manifest() const { return manifest_; }

 private:
  std::string folder_;
  Storage storage_ = Storage::kPacked;
  std::optional<Manifest> manifest_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::array<SplitData, kSplits.size()> splits_;
};

}  // namespace kibitz::policy
