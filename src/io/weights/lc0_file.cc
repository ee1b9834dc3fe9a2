#include "io/weights/lc0_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "io/bytes/byte_source.h"
#include "io/bytes/little_endian.h"
#include "io/weights/protobuf.h"

namespace kibitz::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kMagic = 0x1c0;
constexpr int kMaxBlocks = 1024;  // Residual blocks; the largest networks have 40.

enum class Encoding : uint64_t { kLinear16 = 1, kFloat16 = 2, kBfloat16 = 3, kFloat32 = 4 };

struct Format {
  uint64_t encoding = 1;
  uint64_t input = 1;
  uint64_t structure = 1;
  uint64_t policy = 1;
  uint64_t value = 1;
  uint64_t activation = 0;
};

// The names of a message's fields; field 1 is the first. "" is not read.
using Names = std::span<const std::string_view>;
constexpr std::string_view kConvNames[] = {"weights",    "biases",    "bn_means",
                                           "bn_stddivs", "bn_gammas", "bn_betas"};
constexpr std::string_view kSqueezeNames[] = {"w1", "b1", "w2", "b2"};

std::string ReadAll(const std::string& path) {
  const auto source = OpenBytes(path);
  // Weights hardly compress: a file that unpacks to much more than itself is no network.
  std::error_code unknown;
  const uint64_t packed = std::filesystem::file_size(path, unknown);
  const uint64_t most = Limits().network + (unknown ? 0 : 2 * packed);
  std::string bytes;
  bytes.reserve(most);  // Only what is filled takes memory; growing would copy.
  std::array<char, 1 << 16> buffer;
  while (const size_t size = source->Read(buffer.data(), buffer.size())) {
    if (bytes.size() + size > most) {
      throw Error("{}: unpacks to more than {} MB, expected an lc0 network, which is smaller; {}",
                  path, most >> 20, AllowHint("network", 2 * most));
    }
    bytes.append(buffer.data(), size);
  }
  return bytes;
}

// A layer as the file has it.
struct RawLayer {
  float min = 0;
  float max = 0;
  std::string_view params;
  uint64_t encoding = 0;
};

float Decode(const RawLayer& raw, Encoding encoding, size_t i) {
  const auto bytes = std::as_bytes(std::span(raw.params));
  if (encoding == Encoding::kFloat32) {
    return std::bit_cast<float>(LoadLittle<uint32_t>(bytes, 4 * i));
  }
  const auto number = LoadLittle<uint16_t>(bytes, 2 * i);
  if (encoding == Encoding::kFloat16) return HalfToFloat(number);
  if (encoding == Encoding::kBfloat16) return BFloat16ToFloat(number);
  return static_cast<float>(number) / 65535.0F * (raw.max - raw.min) + raw.min;
}

class WeightsReader {
 public:
  WeightsReader(const std::string& place, uint64_t encoding) : place_(place), encoding_(encoding) {}

  void Read(ProtobufReader reader, Lc0Content& content) {
    int blocks = 0;
    bool attention = false;
    while (reader.Next()) {
      if (reader.field() == 2) {
        if (blocks == kMaxBlocks) {
          throw Error("{}: has more than {} residual blocks; download the file again", place_,
                      kMaxBlocks);
        }
        ReadResidual(reader.Message(), fmt::format("residual.{}.", blocks++));
      } else {
        attention = ReadField(reader) || attention;
      }
    }
    content.tensors = std::move(tensors_);
    content.config["model"]["blocks"] = blocks;
    content.config["model"]["attention"] = attention;
  }

 private:
  // Whether the field belongs to an attention network.
  bool ReadField(ProtobufReader& reader) {
    switch (reader.field()) {
      case 1:
        ReadLayers(reader.Message(), "input.", kConvNames);
        return false;
      case 3:
        ReadLayers(reader.Message(), "policy.", kConvNames);
        return false;
      case 6:
        ReadLayers(reader.Message(), "value.", kConvNames);
        return false;
      case 11:
        ReadLayers(reader.Message(), "policy1.", kConvNames);
        return false;
      case 4:
        return ReadLayer(reader.Message(), "ip_pol_w");
      case 5:
        return ReadLayer(reader.Message(), "ip_pol_b");
      case 7:
        return ReadLayer(reader.Message(), "ip1_val_w");
      case 8:
        return ReadLayer(reader.Message(), "ip1_val_b");
      case 9:
        return ReadLayer(reader.Message(), "ip2_val_w");
      case 10:
        return ReadLayer(reader.Message(), "ip2_val_b");
      default:
        // 12 to 16 are the moves-left head.
        return reader.field() > 16 && reader.is_bytes();
    }
  }

  void ReadLayers(ProtobufReader reader, const std::string& prefix, Names names) {
    while (reader.Next()) {
      if (reader.field() < 1 || reader.field() > names.size()) continue;
      ReadLayer(reader.Message(), prefix + std::string(names[reader.field() - 1]));
    }
  }

  void ReadResidual(ProtobufReader reader, const std::string& prefix) {
    while (reader.Next()) {
      if (reader.field() == 1) ReadLayers(reader.Message(), prefix + "conv1.", kConvNames);
      if (reader.field() == 2) ReadLayers(reader.Message(), prefix + "conv2.", kConvNames);
      if (reader.field() == 3) ReadLayers(reader.Message(), prefix + "se.", kSqueezeNames);
    }
  }

  // Always false, so that ReadField can return it.
  bool ReadLayer(ProtobufReader reader, std::string name) {
    RawLayer raw;
    while (reader.Next()) {
      if (reader.field() == 1) raw.min = reader.Float();
      if (reader.field() == 2) raw.max = reader.Float();
      if (reader.field() == 3) raw.params = reader.Bytes();
      if (reader.field() == 4) raw.encoding = reader.Number();
    }
    AddTensor(raw, std::move(name));
    return false;
  }

  void AddTensor(const RawLayer& raw, std::string name) {
    const auto encoding = static_cast<Encoding>(raw.encoding != 0 ? raw.encoding : encoding_);
    if (encoding < Encoding::kLinear16 || encoding > Encoding::kFloat32) {
      throw Error("{}: {} has encoding {}, expected 1 to 4; download the file again", place_, name,
                  static_cast<uint64_t>(encoding));
    }
    const size_t size = encoding == Encoding::kFloat32 ? 4 : 2;
    if (raw.params.size() % size != 0) {
      throw Error("{}: {} has {} bytes, expected a multiple of {}; download the file again", place_,
                  name, raw.params.size(), size);
    }
    const size_t count = raw.params.size() / size;
    if (count == 0) return;
    std::vector<std::byte> bytes(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      const float number = Decode(raw, encoding, i);
      if (!std::isfinite(number)) {
        throw Error(
            "{}: {} has a weight that is {}, expected a finite one; download the file again",
            place_, name, number);
      }
      std::memcpy(bytes.data() + i * sizeof(float), &number, sizeof(float));
    }
    tensors_.push_back({std::move(name),
                        OwnedTensor(DType::kF32, {static_cast<int64_t>(count)}, std::move(bytes))});
  }

  const std::string& place_;
  uint64_t encoding_;
  std::vector<NamedTensor> tensors_;
};

Format ReadFormat(ProtobufReader reader) {
  Format format;
  while (reader.Next()) {
    if (reader.field() == 1) format.encoding = reader.Number();
    if (reader.field() != 2) continue;
    ProtobufReader network = reader.Message();
    while (network.Next()) {
      if (network.field() == 1) format.input = network.Number();
      if (network.field() == 3) format.structure = network.Number();
      if (network.field() == 4) format.policy = network.Number();
      if (network.field() == 5) format.value = network.Number();
      if (network.field() == 7) format.activation = network.Number();
    }
  }
  return format;
}

}  // namespace

bool IsLc0File(const std::string& path) {
  const auto source = OpenBytes(path, {.read_ahead = false});
  std::array<char, 5> start{};
  size_t size = 0;
  while (size < start.size()) {
    const size_t more = source->Read(start.data() + size, start.size() - size);
    if (more == 0) return false;
    size += more;
  }
  return std::string_view(start.data(), size) == std::string_view("\x0d\xc0\x01\x00\x00", 5);
}

Lc0Content ReadLc0File(const std::string& path) { return ParseLc0File(ReadAll(path), path); }

Lc0Content ParseLc0File(std::string_view bytes, const std::string& place) {
  ProtobufReader reader(bytes, place);
  uint32_t magic = 0;
  Format format;
  Lc0Content content;
  std::optional<ProtobufReader> weights;
  while (reader.Next()) {
    if (reader.field() == 1) magic = reader.Fixed32();
    if (reader.field() == 1 && magic != kMagic) break;
    if (reader.field() == 2) content.config["license"] = std::string(reader.Bytes());
    if (reader.field() == 4) format = ReadFormat(reader.Message());
    if (reader.field() == 10) weights = reader.Message();
  }
  if (magic != kMagic) {
    throw Error("{}: found magic {:#x}, expected {:#x} of an lc0 network; is it one?", place, magic,
                kMagic);
  }
  content.config["model"] = {
      {"input", format.input}, {"structure", format.structure},   {"policy", format.policy},
      {"value", format.value}, {"activation", format.activation}, {"blocks", 0},
      {"attention", false}};
  if (weights) WeightsReader(place, format.encoding).Read(*weights, content);
  return content;
}

}  // namespace kibitz::io
