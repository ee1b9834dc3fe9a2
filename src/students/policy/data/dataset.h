// A data set, mapped: packed rows as Precompute writes them, or the four arrays of planes that
// other programs use. Both read alike.
//
//   const Dataset data = Dataset::Open("data");
//   const SplitData& train = data.split(Split::kTrain);
//   std::vector<Analysis> scratch;
//   const Sample sample = train.At(n, scratch);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/tables/npy.h"
#include "students/policy/data/dataset_files.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::policy {

struct Sample {
  PackedPosition position;
  std::span<const Analysis> analyses;  // In the data set, or in the scratch space given.
};

class SplitData {
 public:
  SplitData() = default;  // Empty.

  uint64_t size() const { return size_; }
  uint64_t analyses() const { return analyses_; }
  // `index` is below size(). Throws Error where planes are no position.
  Sample At(uint64_t index, std::vector<Analysis>& scratch) const;
  // Where the analyses begin.
  uint64_t OffsetOf(uint64_t index) const;

 private:
  friend class Dataset;
  friend class Verifier;
  static SplitData OpenPacked(const std::string& folder, Split split);
  static SplitData OpenPlanes(const std::string& folder, Split split);

  PackedPosition PositionFromPlanes(uint64_t index) const;

  uint64_t size_ = 0;
  uint64_t analyses_ = 0;
  std::vector<io::NpyFile> files_;  // Keep the bytes that the spans below are of.
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
  // None for arrays that another program made.
  const std::optional<Manifest>& manifest() const { return manifest_; }

 private:
  std::string folder_;
  Storage storage_ = Storage::kPacked;
  std::optional<Manifest> manifest_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::array<SplitData, kSplits.size()> splits_;
};

}  // namespace kibitz::policy
