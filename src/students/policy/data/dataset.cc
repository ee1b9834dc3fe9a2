#include "students/policy/data/dataset.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "students/policy/data/planes.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;
using io::DType;

std::string FileOf(const std::string& folder, Split split, std::string_view part) {
  return fmt::format("{}/{}_{}.npy", folder, NameOf(split), part);
}

// All numbers of a file of this type and any shape.
template <typename T>
std::span<const T> Numbers(const io::NpyFile& file) {
  return {reinterpret_cast<const T*>(file.bytes().data()), file.bytes().size() / sizeof(T)};
}

void Expect(const io::NpyFile& file, DType type, uint64_t rows, std::vector<int64_t> row_shape) {
  std::vector<int64_t> shape = {static_cast<int64_t>(rows)};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  if (file.layout() == io::NpyLayout::Of(type) && file.shape() == shape) return;
  throw Error(
      "{}: holds {} {}, expected {} {}; the arrays do not belong together, or were written "
      "in part",
      file.name(), file.layout().Text(), io::ShapeText(file.shape()), io::NameOf(type),
      io::ShapeText(shape));
}

Analysis FromNumbers(std::span<const int32_t> numbers) {
  return {
      .knodes = static_cast<uint32_t>(std::max(numbers[2], 0)),
      .score = numbers[3],
      .move = numbers[0] < 0 || numbers[0] > kNoMove ? kNoMove : static_cast<uint16_t>(numbers[0]),
      .depth_mate = Analysis::DepthMate(numbers[1], numbers[4] != 0)};
}

// A shorter file than the manifest says was copied or written in part.
void CheckLengths(const std::string& folder, const Manifest& manifest) {
  for (const auto& [name, state] : manifest.files) {
    const std::string path = folder + "/" + name;
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (error) throw Error("{}: {}; make the data set again", path, error.message());
    if (bytes < state.bytes) {
      throw Error("{}: has {} bytes, the manifest says {} and a header; fetch or make it again",
                  path, bytes, state.bytes);
    }
  }
}

// Tells the kernel how the pages of a mapped file will be read. It may refuse: no result changes.
void Advise(const io::NpyFile& file, int advice) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(file.bytes().data()) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(file.bytes().data()) + file.bytes().size();
  if (!file.bytes().empty()) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

}  // namespace

void SplitData::BeginScatteredReads() const {
  for (const io::NpyFile& file : files_) Advise(file, MADV_RANDOM);
}

void SplitData::EndScatteredReads() const {
  for (const io::NpyFile& file : files_) Advise(file, MADV_NORMAL);
}

SplitData SplitData::OpenPacked(const std::string& folder, Split split) {
  SplitData data;
  for (const char* part : {"positions", "analyses", "index"}) {
    data.files_.push_back(io::NpyFile::Open(FileOf(folder, split, part)));
  }
  data.positions_ = data.files_[0].Rows<PackedPosition>(PositionLayout());
  data.rows_ = data.files_[1].Rows<Analysis>(AnalysisLayout());
  data.size_ = data.positions_.size();
  data.analyses_ = data.rows_.size();
  Expect(data.files_[2], DType::kU64, (data.size_ + kIndexStep - 1) / kIndexStep, {});
  data.index_ = Numbers<uint64_t>(data.files_[2]);
  return data;
}

SplitData SplitData::OpenPlanes(const std::string& folder, Split split) {
  SplitData data;
  for (const char* part : {"planes", "meta", "analysis_data", "analysis_offsets"}) {
    data.files_.push_back(io::NpyFile::Open(FileOf(folder, split, part)));
  }
  data.size_ = data.files_[0].rows();
  data.analyses_ = data.files_[2].rows();
  Expect(data.files_[0], DType::kU8, data.size_, {kPlanes, 8, 8});
  Expect(data.files_[1], DType::kI8, data.size_, {kMeta});
  Expect(data.files_[2], DType::kI32, data.analyses_, {5});
  const bool wide = data.files_[3].layout() == io::NpyLayout::Of(DType::kU64);
  Expect(data.files_[3], wide ? DType::kU64 : DType::kU32, data.size_ + 1, {});
  data.planes_ = Numbers<uint8_t>(data.files_[0]);
  data.meta_ = Numbers<int8_t>(data.files_[1]);
  data.numbers_ = Numbers<int32_t>(data.files_[2]);
  if (wide) {
    data.offsets64_ = Numbers<uint64_t>(data.files_[3]);
  } else {
    data.offsets32_ = Numbers<uint32_t>(data.files_[3]);
  }
  return data;
}

uint64_t SplitData::OffsetOf(uint64_t index) const {
  if (!offsets32_.empty()) return offsets32_[index];
  if (!offsets64_.empty()) return offsets64_[index];
  if (index == size_) return analyses_;
  uint64_t offset = index_[index / kIndexStep];
  for (uint64_t i = index / kIndexStep * kIndexStep; i < index; ++i)
    offset += positions_[i].analyses;
  return offset;
}

Result<PackedPosition> SplitData::PositionFromPlanes(uint64_t index) const {
  const auto planes = planes_.subspan(index * kPlaneBytes).first<kPlaneBytes>();
  const auto meta = meta_.subspan(index * kMeta).first<kMeta>();
  return FromPlanes(planes, meta);
}

Sample SplitData::At(uint64_t index, std::vector<Analysis>& scratch) const {
  return TryAt(index, scratch).OrThrow(fmt::format("{}, row {}", files_[0].name(), index));
}

Result<Sample> SplitData::TryAt(uint64_t index, std::vector<Analysis>& scratch) const {
  CHECK(index < size_);
  const uint64_t begin = OffsetOf(index);
  if (!positions_.empty()) {
    const PackedPosition& position = positions_[index];
    if (begin > analyses_ || position.analyses > analyses_ - begin) {
      return Bad("its analyses end behind the last of {}; run 'kibitz policy verify'", analyses_);
    }
    return Sample{position, rows_.subspan(begin, position.analyses)};
  }
  const uint64_t end = OffsetOf(index + 1);
  if (begin > end || end > analyses_) {
    return Bad("offsets {} to {} are no range of {} analyses; run 'kibitz policy verify'", begin,
               end, analyses_);
  }
  const Result<PackedPosition> position = PositionFromPlanes(index);
  if (!position) return Bad("{}", position.reason());
  scratch.clear();
  for (uint64_t i = begin; i < end; ++i) scratch.push_back(FromNumbers(numbers_.subspan(i * 5, 5)));
  Sample sample{*position, scratch};
  sample.position.analyses = static_cast<uint16_t>(std::min<size_t>(scratch.size(), 0xffff));
  return sample;
}

Dataset Dataset::Open(const std::string& folder) {
  Dataset data;
  data.folder_ = folder;
  if (!fs::is_directory(folder)) throw Error("{}: no such folder", folder);
  if (Manifest::Exists(folder)) {
    data.manifest_ = Manifest::Read(folder);
    data.storage_ = data.manifest_->storage;
    CheckLengths(folder, *data.manifest_);
  } else if (fs::exists(FileOf(folder, Split::kTrain, "planes")) && !fs::exists(folder + "/work")) {
    data.storage_ = Storage::kPlanes;
  } else {
    throw Error(
        "{}: no data set, or an unfinished one (it has no manifest.json); run 'kibitz policy "
        "precompute' again to resume it",
        folder);
  }
  for (Split split : kSplits) {
    SplitData& part = data.splits_[static_cast<size_t>(split)];
    if (data.storage_ == Storage::kPacked) {
      part = SplitData::OpenPacked(folder, split);
    } else if (fs::exists(FileOf(folder, split, "planes"))) {
      part = SplitData::OpenPlanes(folder, split);
    }
  }
  const std::string vocabulary = folder + "/vocab.npy";
  data.vocabulary_ = fs::exists(vocabulary)
                         ? std::make_shared<const Vocabulary>(Vocabulary::Read(vocabulary))
                         : std::make_shared<const Vocabulary>(Vocabulary::Full());
  return data;
}

uint64_t Dataset::positions() const {
  uint64_t sum = 0;
  for (const SplitData& split : splits_) sum += split.size();
  return sum;
}

uint64_t Dataset::analyses() const {
  uint64_t sum = 0;
  for (const SplitData& split : splits_) sum += split.analyses();
  return sum;
}

}  // namespace kibitz::policy
