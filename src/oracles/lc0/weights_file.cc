#include "oracles/lc0/weights_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/bytes/byte_source.h"
#include "io/bytes/little_endian.h"
#include "io/weights/protobuf.h"
#include "oracles/lc0/planes.h"
#include "oracles/lc0/policy_index.h"

namespace kibitz::oracles {
namespace {

using io::ProtobufReader;

constexpr uint32_t kMagic = 0x1c0;
constexpr size_t kMaxBytes = size_t{1} << 30;  // Of the unpacked file.
constexpr int64_t kSquares = 64;
constexpr int64_t kPolicyPlanes = 80;  // Of a convolutional head; 73 are used.

enum class Structure : uint64_t {
  kClassical = 1,
  kSqueeze = 2,
  kClassicalWithHeads = 3,
  kSqueezeWithHeads = 4,
};
enum class Policy : uint64_t { kClassical = 1, kConvolution = 2, kAttention = 3 };
enum class Value : uint64_t { kClassical = 1, kWdl = 2 };
enum class Encoding : uint64_t { kLinear16 = 1, kFloat16 = 2, kBfloat16 = 3, kFloat32 = 4 };

struct Format {
  uint64_t encoding = 1;
  uint64_t input = 1;
  uint64_t structure = 1;
  uint64_t policy = 1;
  uint64_t value = 1;
  uint64_t activation = 0;
};

// A convolution as the file has it.
struct ConvBlock {
  std::vector<float> weights, biases, means, variances, gammas, betas;
};
struct SqueezeUnit {
  std::vector<float> w1, b1, w2, b2;
};
struct Residual {
  ConvBlock first, second;
  std::optional<SqueezeUnit> squeeze;
};
struct FileWeights {
  ConvBlock input;
  std::vector<Residual> blocks;
  ConvBlock policy, policy_first;
  std::vector<float> policy_w, policy_b;
  ConvBlock value;
  std::vector<float> value1_w, value1_b, value2_w, value2_b;
  bool attention = false;  // Has fields of an attention body or policy.
};

std::string ReadAll(const std::string& path) {
  const auto source = io::OpenBytes(path);
  std::string bytes;
  std::array<char, 1 << 16> buffer;
  while (const size_t size = source->Read(buffer.data(), buffer.size())) {
    bytes.append(buffer.data(), size);
    if (bytes.size() > kMaxBytes) throw Error("{}: more than 1 GB; no lc0 network is", path);
  }
  return bytes;
}

float FromHalf(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const auto mantissa = static_cast<float>(half & 1023);
  const float sign = (half & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

struct RawLayer {
  float min = 0;
  float max = 0;
  std::string_view params;
  uint64_t encoding = 0;
};

float Decode(const RawLayer& raw, Encoding encoding, size_t i) {
  const auto bytes = std::as_bytes(std::span(raw.params));
  if (encoding == Encoding::kFloat32) {
    return std::bit_cast<float>(io::LoadLittle<uint32_t>(bytes, 4 * i));
  }
  const auto number = io::LoadLittle<uint16_t>(bytes, 2 * i);
  if (encoding == Encoding::kFloat16) return FromHalf(number);
  if (encoding == Encoding::kBfloat16) {
    return std::bit_cast<float>(static_cast<uint32_t>(number) << 16);
  }
  return static_cast<float>(number) / 65535.0F * (raw.max - raw.min) + raw.min;
}

class WeightsReader {
 public:
  WeightsReader(const std::string& path, uint64_t encoding) : path_(path), encoding_(encoding) {}

  FileWeights Read(ProtobufReader reader) {
    FileWeights weights;
    while (reader.Next()) ReadField(reader, weights);
    return weights;
  }

 private:
  void ReadField(ProtobufReader& reader, FileWeights& weights) {
    switch (reader.field()) {
      case 1:
        return ReadConv(reader.Message(), weights.input);
      case 2:
        return ReadResidual(reader.Message(), weights.blocks.emplace_back());
      case 3:
        return ReadConv(reader.Message(), weights.policy);
      case 4:
        return ReadLayer(reader.Message(), weights.policy_w);
      case 5:
        return ReadLayer(reader.Message(), weights.policy_b);
      case 6:
        return ReadConv(reader.Message(), weights.value);
      case 7:
        return ReadLayer(reader.Message(), weights.value1_w);
      case 8:
        return ReadLayer(reader.Message(), weights.value1_b);
      case 9:
        return ReadLayer(reader.Message(), weights.value2_w);
      case 10:
        return ReadLayer(reader.Message(), weights.value2_b);
      case 11:
        return ReadConv(reader.Message(), weights.policy_first);
      default:
        // 12 to 16 are the moves-left head, which no search here uses; 17 and on are attention.
        if (reader.field() > 16 && reader.is_bytes()) weights.attention = true;
    }
  }

  void ReadConv(ProtobufReader reader, ConvBlock& block) {
    const std::array<std::vector<float>*, 6> parts = {
        &block.weights, &block.biases, &block.means, &block.variances, &block.gammas, &block.betas};
    while (reader.Next()) {
      if (reader.field() <= parts.size()) ReadLayer(reader.Message(), *parts[reader.field() - 1]);
    }
  }

  void ReadResidual(ProtobufReader reader, Residual& block) {
    while (reader.Next()) {
      if (reader.field() == 1) ReadConv(reader.Message(), block.first);
      if (reader.field() == 2) ReadConv(reader.Message(), block.second);
      if (reader.field() == 3) ReadSqueeze(reader.Message(), block.squeeze.emplace());
    }
  }

  void ReadSqueeze(ProtobufReader reader, SqueezeUnit& unit) {
    const std::array<std::vector<float>*, 4> parts = {&unit.w1, &unit.b1, &unit.w2, &unit.b2};
    while (reader.Next()) {
      if (reader.field() <= parts.size()) ReadLayer(reader.Message(), *parts[reader.field() - 1]);
    }
  }

  void ReadLayer(ProtobufReader reader, std::vector<float>& numbers) {
    RawLayer raw;
    while (reader.Next()) {
      if (reader.field() == 1) raw.min = reader.Float();
      if (reader.field() == 2) raw.max = reader.Float();
      if (reader.field() == 3) raw.params = reader.Bytes();
      if (reader.field() == 4) raw.encoding = reader.Number();
    }
    const auto encoding = static_cast<Encoding>(raw.encoding != 0 ? raw.encoding : encoding_);
    if (encoding < Encoding::kLinear16 || encoding > Encoding::kFloat32) {
      throw Error("{}: weights in encoding {}, expected 1 to 4", path_,
                  static_cast<uint64_t>(encoding));
    }
    const size_t size = encoding == Encoding::kFloat32 ? 4 : 2;
    if (raw.params.size() % size != 0) {
      throw Error("{}: a layer of {} bytes, expected a multiple of {}", path_, raw.params.size(),
                  size);
    }
    numbers.resize(raw.params.size() / size);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = Decode(raw, encoding, i);
    if (!std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); })) {
      throw Error("{}: a layer holds a weight that is no finite number", path_);
    }
  }

  const std::string& path_;
  uint64_t encoding_;
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

// Old networks name their structure only: their heads are classical.
void CheckFormat(const std::string& path, Format& format) {
  constexpr std::string_view kRemedy =
      "residual networks with 112 classical planes are read, such as the Maia networks";
  if (format.input != 1) {
    throw Error("{}: input format {}, expected 1 (112 classical planes); {}", path, format.input,
                kRemedy);
  }
  const auto structure = static_cast<Structure>(format.structure);
  if (structure < Structure::kClassical || structure > Structure::kSqueezeWithHeads) {
    throw Error("{}: network structure {} ({}), expected a residual network (1 to 4); {}", path,
                format.structure,
                format.structure == 5 ? "ONNX" : "an attention body or several heads", kRemedy);
  }
  if (structure == Structure::kClassical || structure == Structure::kSqueeze) {
    format.policy = static_cast<uint64_t>(Policy::kClassical);
    format.value = static_cast<uint64_t>(Value::kClassical);
  }
  if (format.policy != 1 && format.policy != 2) {
    throw Error("{}: policy format {}{}, expected 1 (classical) or 2 (convolution); {}", path,
                format.policy, format.policy == 3 ? " (attention)" : "", kRemedy);
  }
  if (format.value != 1 && format.value != 2) {
    throw Error("{}: value format {}, expected 1 (classical) or 2 (WDL); {}", path, format.value,
                kRemedy);
  }
  if (format.activation > 1) {
    throw Error("{}: default activation {}, expected 0 (ReLU) or 1 (Mish)", path,
                format.activation);
  }
}

// Puts the file's numbers into layers, checking that they are as many as the shapes need.
class Builder {
 public:
  explicit Builder(const std::string& path) : path_(path) {}

  // The batch norm is y = gamma * (x + bias - mean) / sqrt(variance + epsilon) + beta.
  nn::ConvWeights Conv(std::string_view name, ConvBlock& block, int64_t inputs, int64_t outputs,
                       int64_t size) const {
    const int64_t taps = inputs * size * size;
    Need(name, "weights", block.weights, outputs * taps);
    nn::ConvWeights conv{
        .inputs = inputs, .outputs = outputs, .size = size, .weight = {}, .bias = {}};
    conv.bias = Filled(name, "biases", block.biases, outputs, 0);
    conv.weight = std::move(block.weights);
    if (block.variances.empty()) return conv;
    const auto means = Filled(name, "means", block.means, outputs, 0);
    const auto gammas = Filled(name, "gammas", block.gammas, outputs, 1);
    const auto betas = Filled(name, "betas", block.betas, outputs, 0);
    Need(name, "variances", block.variances, outputs);
    for (int64_t o = 0; o < outputs; ++o) {
      const auto i = static_cast<size_t>(o);
      const double scale = gammas[i] / std::sqrt(static_cast<double>(block.variances[i]) + 1e-5);
      conv.bias[i] = static_cast<float>(betas[i] - (means[i] - conv.bias[i]) * scale);
      for (int64_t t = 0; t < taps; ++t) {
        float& weight = conv.weight[static_cast<size_t>(o * taps + t)];
        weight = static_cast<float>(weight * scale);
      }
    }
    return conv;
  }

  nn::DenseWeights Dense(std::string_view name, std::vector<float>& weight,
                         std::vector<float>& bias, int64_t inputs) const {
    const auto outputs = static_cast<int64_t>(bias.size());
    if (outputs == 0) throw Error("{}: the {} layer has no outputs", path_, name);
    Need(name, "weights", weight, inputs * outputs);
    return {
        .inputs = inputs, .outputs = outputs, .weight = std::move(weight), .bias = std::move(bias)};
  }

  // How many filters a convolution without batch norm has, else by that.
  int64_t Outputs(std::string_view name, const ConvBlock& block, int64_t inputs,
                  int64_t size) const {
    const auto weights = static_cast<int64_t>(block.weights.size());
    if (weights == 0 || weights % (inputs * size * size) != 0) {
      throw Error("{}: the {} convolution has {} weights, expected a multiple of {}", path_, name,
                  weights, inputs * size * size);
    }
    return weights / (inputs * size * size);
  }

 private:
  void Need(std::string_view name, std::string_view part, const std::vector<float>& numbers,
            int64_t count) const {
    if (static_cast<int64_t>(numbers.size()) == count) return;
    throw Error("{}: {} has {} {}, expected {}", path_, name, numbers.size(), part, count);
  }
  std::vector<float> Filled(std::string_view name, std::string_view part,
                            std::vector<float>& numbers, int64_t count, float missing) const {
    if (numbers.empty()) return std::vector<float>(static_cast<size_t>(count), missing);
    Need(name, part, numbers, count);
    return std::move(numbers);
  }

  const std::string& path_;
};

void BuildPolicy(const Builder& builder, Policy policy, FileWeights& file, int64_t filters,
                 nn::ResidualWeights& weights) {
  if (policy == Policy::kConvolution) {
    weights.policy = builder.Conv("policy1", file.policy_first, filters,
                                  builder.Outputs("policy1", file.policy_first, filters, 3), 3);
    weights.policy_planes =
        builder.Conv("policy", file.policy, weights.policy.outputs, kPolicyPlanes, 3);
    return;
  }
  weights.policy = builder.Conv("policy", file.policy, filters,
                                builder.Outputs("policy", file.policy, filters, 1), 1);
  weights.policy_dense =
      builder.Dense("ip_pol", file.policy_w, file.policy_b, weights.policy.outputs * kSquares);
}

nn::ResidualWeights Build(const std::string& path, const Format& format, FileWeights file) {
  const Builder builder(path);
  nn::ResidualWeights weights;
  weights.activation = format.activation == 1 ? nn::Activation::kMish : nn::Activation::kRelu;
  const int64_t filters = builder.Outputs("input", file.input, kLc0Planes, 3);
  weights.input = builder.Conv("input", file.input, kLc0Planes, filters, 3);
  for (size_t i = 0; i < file.blocks.size(); ++i) {
    Residual& from = file.blocks[i];
    const std::string name = fmt::format("block {}", i + 1);
    nn::ResidualBlockWeights block;
    block.first = builder.Conv(name, from.first, filters, filters, 3);
    block.second = builder.Conv(name, from.second, filters, filters, 3);
    if (from.squeeze) {
      nn::SqueezeWeights& squeeze = block.squeeze.emplace();
      squeeze.reduce = builder.Dense(name + " se1", from.squeeze->w1, from.squeeze->b1, filters);
      squeeze.expand =
          builder.Dense(name + " se2", from.squeeze->w2, from.squeeze->b2, squeeze.reduce.outputs);
    }
    weights.blocks.push_back(std::move(block));
  }
  BuildPolicy(builder, static_cast<Policy>(format.policy), file, filters, weights);
  weights.value = builder.Conv("value", file.value, filters,
                               builder.Outputs("value", file.value, filters, 1), 1);
  weights.value_hidden =
      builder.Dense("ip1_val", file.value1_w, file.value1_b, weights.value.outputs * kSquares);
  weights.value_out =
      builder.Dense("ip2_val", file.value2_w, file.value2_b, weights.value_hidden.outputs);
  return weights;
}

void CheckHeads(const std::string& path, const Lc0File& file) {
  const int64_t outputs = file.value_head == Lc0ValueHead::kWdl ? 3 : 1;
  if (file.weights.value_out.outputs != outputs) {
    throw Error("{}: the value head has {} outputs, expected {}", path,
                file.weights.value_out.outputs, outputs);
  }
  if (file.weights.policy_dense && file.weights.policy_dense->outputs != kLc0Moves) {
    throw Error("{}: the policy head has {} outputs, expected {}", path,
                file.weights.policy_dense->outputs, kLc0Moves);
  }
}

}  // namespace

bool IsLc0File(const std::string& path) {
  const auto source = io::OpenBytes(path, {.read_ahead = false});
  std::array<char, 5> start{};
  size_t size = 0;
  while (size < start.size()) {
    const size_t more = source->Read(start.data() + size, start.size() - size);
    if (more == 0) return false;
    size += more;
  }
  return std::string_view(start.data(), size) == std::string_view("\x0d\xc0\x01\x00\x00", 5);
}

Lc0File ReadLc0File(const std::string& path) { return ParseLc0File(ReadAll(path), path); }

Lc0File ParseLc0File(std::string_view bytes, const std::string& path) {
  ProtobufReader reader(bytes, path);
  uint32_t magic = 0;
  Format format;
  Lc0File file;
  std::optional<ProtobufReader> weights;
  while (reader.Next()) {
    if (reader.field() == 1) magic = reader.Fixed32();
    if (reader.field() == 1 && magic != kMagic) break;
    if (reader.field() == 2) file.license = reader.Bytes();
    if (reader.field() == 4) format = ReadFormat(reader.Message());
    if (reader.field() == 10) weights = reader.Message();
  }
  if (magic != kMagic) {
    throw Error("{}: does not start as an lc0 network (magic {:#x}, expected {:#x})", path, magic,
                kMagic);
  }
  CheckFormat(path, format);
  if (!weights) throw Error("{}: holds no weights; the file was cut short, fetch it again", path);
  FileWeights content = WeightsReader(path, format.encoding).Read(*weights);
  if (content.attention) {
    throw Error("{}: has attention layers, which are not read; residual networks are", path);
  }
  file.weights = Build(path, format, std::move(content));
  file.value_head = format.value == 2 ? Lc0ValueHead::kWdl : Lc0ValueHead::kExpected;
  CheckHeads(path, file);
  return file;
}

std::string DescriptionOf(const Lc0File& file) {
  const nn::ResidualWeights& weights = file.weights;
  const bool squeeze = !weights.blocks.empty() && weights.blocks.front().squeeze.has_value();
  return fmt::format("{} blocks of {} filters{}, {} policy, {}{}", weights.blocks.size(),
                     weights.input.outputs, squeeze ? " with squeeze-and-excitation" : "",
                     weights.policy_planes ? "convolutional" : "classical",
                     file.value_head == Lc0ValueHead::kWdl ? "WDL" : "expected value",
                     weights.activation == nn::Activation::kMish ? ", Mish" : "");
}

}  // namespace kibitz::oracles
