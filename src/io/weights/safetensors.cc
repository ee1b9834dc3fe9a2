#include "io/weights/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "io/bytes/crc32c.h"
#include "io/bytes/little_endian.h"
#include "io/bytes/mapped_file.h"
#include "io/weights/value.h"

namespace kibitz::io {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

// Files of ours have a checksum: the CRC-32C of all bytes, its own digits taken as zeros. Two keys
// say so, of which one flipped bit can hide only one.
constexpr std::string_view kSumKey = "kibitz.checksum";
constexpr std::string_view kSumMark = "kibitz.sums";
constexpr std::string_view kSumLabel = "crc32c:";
constexpr std::string_view kNoSum = "00000000";

struct TypeName {
  DType type;
  std::string_view name;
};
constexpr TypeName kTypes[] = {
    {DType::kBool, "BOOL"}, {DType::kU8, "U8"},   {DType::kI8, "I8"},     {DType::kU16, "U16"},
    {DType::kI16, "I16"},   {DType::kU32, "U32"}, {DType::kI32, "I32"},   {DType::kU64, "U64"},
    {DType::kI64, "I64"},   {DType::kF16, "F16"}, {DType::kBF16, "BF16"}, {DType::kF32, "F32"},
    {DType::kF64, "F64"},
};

std::string_view SafeName(DType type) {
  for (const TypeName& known : kTypes) {
    if (known.type == type) return known.name;
  }
  return "";
}

// One tensor as the header describes it.
struct Line {
  std::string name;
  std::optional<DType> type = {};
  std::optional<std::vector<int64_t>> shape = {};
  std::optional<std::vector<int64_t>> offsets = {};
};

// Takes the header token by token. A parser that builds a tree would drop repeated keys in
// silence and allow any shape of document.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  std::vector<Line> lines;
  Metadata metadata;
  std::string problem;  // Why reading stopped.

  bool start_object(size_t) override {
    if (state_ == State::kStart) return Go(State::kTop);
    if (state_ == State::kTopValue) return Go(in_metadata_ ? State::kMetadata : State::kTensor);
    return Bad("an object");
  }

  bool end_object() override {
    if (state_ == State::kTop) return Go(State::kEnd);
    if (state_ == State::kTensor &&
        !(lines.back().type && lines.back().shape && lines.back().offsets)) {
      problem =
          fmt::format("tensor {} lacks dtype, shape or data_offsets", Quoted(lines.back().name));
      return false;
    }
    return Go(State::kTop);
  }

  bool key(std::string& name) override {
    if (state_ == State::kTop) {
      if (!names_.insert(name).second) return Twice(name);
      in_metadata_ = name == kMetadata;
      if (!in_metadata_) lines.push_back({.name = name});
      return Go(State::kTopValue);
    }
    if (state_ == State::kMetadata) {
      if (!metadata_names_.insert(name).second) return Twice(name);
      metadata.emplace_back(name, "");
      return Go(State::kMetadataValue);
    }
    Line& line = lines.back();
    if (name == "dtype") return line.type ? Twice(name) : Go(State::kType);
    if (name == "shape") return line.shape ? Twice(name) : Go(State::kShape);
    if (name == "data_offsets") return line.offsets ? Twice(name) : Go(State::kOffsets);
    problem = fmt::format("tensor {} has the unknown field {}", Quoted(line.name), Quoted(name));
    return false;
  }

  bool start_array(size_t) override {
    if (state_ == State::kShape)
      lines.back().shape.emplace();
    else if (state_ == State::kOffsets)
      lines.back().offsets.emplace();
    else
      return Bad("an array");
    if (in_array_) return Bad("an array in an array");
    in_array_ = true;
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    return Go(State::kTensor);
  }

  bool string(std::string& text) override {
    if (state_ == State::kMetadataValue) {
      metadata.back().second = std::move(text);
      return Go(State::kMetadata);
    }
    if (state_ != State::kType) return Bad("a text");
    for (const TypeName& known : kTypes) {
      if (known.name == text) lines.back().type = known.type;
    }
    if (!lines.back().type) {
      problem = fmt::format(
          "tensor {} is of type {}, expected BOOL, U8 to U64, I8 to I64, F16, BF16, F32 or F64",
          Quoted(lines.back().name), Quoted(text));
      return false;
    }
    return Go(State::kTensor);
  }

  bool number_unsigned(uint64_t value) override {
    if (!in_array_ || value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Bad(fmt::format("the number {}", value));
    }
    auto& numbers = state_ == State::kShape ? lines.back().shape : lines.back().offsets;
    numbers->push_back(static_cast<int64_t>(value));
    return true;
  }

  bool number_integer(int64_t value) override { return Bad(fmt::format("the number {}", value)); }
  bool number_float(double, const std::string& text) override {
    return Bad("the number " + Quoted(text));
  }
  bool null() override { return Bad("null"); }
  bool boolean(bool) override { return Bad("a bool"); }
  bool binary(Json::binary_t&) override { return Bad("bytes"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    problem = fmt::format("the header is not JSON from its byte {} on", position);
    return false;
  }

 private:
  // What comes next. kShape and kOffsets hold until their array ends.
  enum class State {
    kStart,
    kTop,
    kTopValue,
    kTensor,
    kType,
    kShape,
    kOffsets,
    kMetadata,
    kMetadataValue,
    kEnd,
  };

  bool Go(State state) {
    state_ = state;
    return true;
  }
  bool Bad(const std::string& found) {
    const std::string where = in_metadata_    ? "the metadata"
                              : lines.empty() ? "the header"
                                              : Quoted(lines.back().name);
    problem = fmt::format("found {} in {}, where the format has something else", found, where);
    return false;
  }
  bool Twice(const std::string& name) {
    problem = fmt::format("the name {} occurs twice in the header", Quoted(name));
    return false;
  }

  State state_ = State::kStart;
  bool in_metadata_ = false;
  bool in_array_ = false;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_names_;
};

std::string_view HeaderText(std::span<const std::byte> bytes, const std::string& place) {
  if (bytes.size() < kLengthBytes) {
    throw Error("{}: found {} bytes, expected a safetensors file; copy it again", place,
                bytes.size());
  }
  const auto size = LoadLittle<uint64_t>(bytes);
  if (size > kMaxHeaderBytes) {
    throw Error("{}: found a header of {} bytes, expected at most {}; is it a safetensors file?",
                place, size, kMaxHeaderBytes);
  }
  if (size > bytes.size() - kLengthBytes) {
    throw Error("{}: found a header of {} bytes in a file of {}; copy it again", place, size,
                bytes.size());
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, size);
  if (!text.starts_with('{')) {
    throw Error("{}: the header does not begin with '{{'; is it a safetensors file?", place);
  }
  return text;
}

// The bytes that a line claims, checked against its type and shape and the file.
std::span<const std::byte> RangeOf(const Line& line, std::span<const std::byte> data,
                                   const std::string& place) {
  const auto bytes = BytesOf(*line.type, *line.shape);
  if (line.offsets->size() != 2 || (*line.offsets)[0] > (*line.offsets)[1] || !bytes) {
    throw Error("{}, tensor {}: found shape {} and data_offsets {}, expected two in order", place,
                Quoted(line.name), ShapeText(*line.shape), ShapeText(*line.offsets));
  }
  const auto begin = static_cast<uint64_t>((*line.offsets)[0]);
  const auto end = static_cast<uint64_t>((*line.offsets)[1]);
  if (end - begin != *bytes) {
    throw Error("{}, tensor {}: found {} bytes, expected {} for {} {}", place, Quoted(line.name),
                end - begin, *bytes, NameOf(*line.type), ShapeText(*line.shape));
  }
  if (end > data.size()) {
    throw Error("{}, tensor {}: ends at byte {} of {}; the file is cut off, copy it again", place,
                Quoted(line.name), end, data.size());
  }
  return data.subspan(begin, *bytes);
}

void CheckTiling(const std::vector<NamedTensor>& tensors, std::span<const std::byte> data,
                 const std::string& place) {
  std::vector<const NamedTensor*> sorted;
  sorted.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) sorted.push_back(&tensor);
  const auto range = [](const NamedTensor* tensor) {
    return std::pair(tensor->tensor.bytes.data(), tensor->tensor.bytes.size());
  };
  std::ranges::sort(sorted, {}, range);
  const std::byte* at = data.data();
  for (const NamedTensor* tensor : sorted) {
    if (tensor->tensor.bytes.data() != at) {
      throw Error(
          "{}, tensor {}: begins at byte {}, expected {}: ranges must neither overlap nor "
          "leave gaps",
          place, Quoted(tensor->name), tensor->tensor.bytes.data() - data.data(), at - data.data());
    }
    at += tensor->tensor.bytes.size();
  }
  if (at != data.data() + data.size()) {
    throw Error("{}: found {} bytes after the last tensor, expected none; copy the file again",
                place, data.data() + data.size() - at);
  }
}

// Where the digits begin in the file; nothing when it has no checksum.
std::optional<size_t> FindSum(std::string_view header) {
  const std::string start = fmt::format("\"{}\":\"{}", kSumKey, kSumLabel);
  const size_t at = header.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  return kLengthBytes + at + start.size();
}

// Takes the checksum out of the metadata and compares it. Whether there was one.
bool CheckSum(std::span<const std::byte> bytes, std::string_view header, Metadata& metadata,
              const std::string& place) {
  const auto ours = [](const auto& item) {
    return item.first == kSumKey || item.first == kSumMark;
  };
  const size_t found = std::erase_if(metadata, ours);
  if (found == 0) return false;
  const auto at = FindSum(header);
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (found == 2 && at && *at + kNoSum.size() <= all.size()) {
    uint32_t crc = Crc32c(kNoSum, Crc32c(all.substr(0, *at)));
    crc = Crc32c(all.substr(*at + kNoSum.size()), crc);
    if (fmt::format("{:08x}", crc) == all.substr(*at, kNoSum.size())) return true;
  }
  throw Error("{}: its checksum is wrong: the file is damaged; copy it again", place);
}

void CheckWritable(const std::vector<NamedStoredTensor>& tensors, const Metadata& metadata) {
  std::unordered_set<std::string_view> names = {kMetadata};
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) throw Error("cannot write two tensors called {}", Quoted(name));
    if (!IsUtf8(name)) throw Error("cannot write the name {}: it is not UTF-8", Quoted(name));
  }
  names.clear();
  for (const auto& [key, value] : metadata) {
    CHECK(key != kSumKey && key != kSumMark);
    if (!names.insert(key).second) throw Error("cannot write metadata {} twice", Quoted(key));
    if (!IsUtf8(key) || !IsUtf8(value)) {
      throw Error("cannot write metadata {}: it is not UTF-8", Quoted(key));
    }
  }
}

// `begins`: where each tensor's bytes start. Padded with spaces so that the bytes are aligned.
std::string HeaderFor(const std::vector<NamedStoredTensor>& tensors, const Metadata& metadata,
                      const std::vector<uint64_t>& begins) {
  std::string text = "{";
  Json object = Json::object();
  for (const auto& [key, value] : metadata) object[key] = value;
  object[kSumKey] = fmt::format("{}{}", kSumLabel, kNoSum);
  object[kSumMark] = "1";
  text += fmt::format("{}:{}", Json(kMetadata).dump(), object.dump());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                        text.size() > 1 ? "," : "", Json(name).dump(), SafeName(tensor.type),
                        Json(tensor.shape).dump(), begins[i],
                        begins[i] + *BytesOf(tensor.type, tensor.shape));
  }
  text += '}';
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  return text;
}

}  // namespace

const std::string* Safetensors::FindMetadata(std::string_view key) const {
  for (const auto& [name, value] : metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

Safetensors ParseSafetensors(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                             const std::string& place) {
  const std::string_view header = HeaderText(bytes, place);
  HeaderReader reader;
  if (!Json::sax_parse(header, &reader)) throw Error("{}: {}", place, reader.problem);
  const auto data = bytes.subspan(kLengthBytes + header.size());
  const bool has_sum = CheckSum(bytes, header, reader.metadata, place);
  Safetensors out = {
      .tensors = {}, .metadata = std::move(reader.metadata), .has_checksum = has_sum};
  for (Line& line : reader.lines) {
    const auto range = RangeOf(line, data, place);
    out.tensors.push_back(
        {std::move(line.name), {*line.type, *std::move(line.shape), range, owner}});
  }
  CheckTiling(out.tensors, data, place);
  return out;
}

Safetensors ReadSafetensors(const std::string& path) {
  auto file = MappedFile::Open(path);
  const auto bytes = file->bytes();
  return ParseSafetensors(bytes, std::move(file), path);
}

void WriteSafetensors(const std::string& path, const Safetensors& content) {
  std::vector<NamedStoredTensor> tensors;
  for (const auto& [name, tensor] : content.tensors) tensors.push_back({name, Stored(tensor)});
  WriteSafetensors(path, tensors, content.metadata);
}

void WriteSafetensors(const std::string& path, const std::vector<NamedStoredTensor>& tensors,
                      const Metadata& metadata) {
  CheckWritable(tensors, metadata);
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return SizeOf(tensors[i].tensor.type); });
  std::vector<uint64_t> begins(order.size());
  uint64_t total = 0;
  for (size_t i : order) {
    begins[i] = total;
    total += *BytesOf(tensors[i].tensor.type, tensors[i].tensor.shape);
  }
  const std::string header = HeaderFor(tensors, metadata, begins);
  if (header.size() > kMaxHeaderBytes) {
    throw Error("{}: cannot write a header of {} bytes, at most {} are allowed", path,
                header.size(), kMaxHeaderBytes);
  }

  AtomicFile file(path);
  std::string length;
  AppendLittle(length, uint64_t{header.size()});
  file.Write(length + header);
  uint32_t crc = Crc32c(length + header);
  for (size_t i : order) {
    const Tensor tensor = tensors[i].tensor.ToTensor();
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes.data()),
                                 tensor.bytes.size());
    crc = Crc32c(bytes, crc);
    file.Write(bytes);
  }
  file.WriteAt(FindSum(header).value(), fmt::format("{:08x}", crc));
  file.Commit();
}

}  // namespace kibitz::io
