#include "tests/support/lc0_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <vector>

#include "base/random.h"

namespace kibitz::testing {
namespace {

void AddVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void AddNumber(std::string& out, int field, uint64_t value) {
  AddVarint(out, static_cast<uint64_t>(field) << 3);
  AddVarint(out, value);
}
void AddFixed32(std::string& out, int field, uint32_t value) {
  AddVarint(out, (static_cast<uint64_t>(field) << 3) | 5);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void AddBytes(std::string& out, int field, const std::string& bytes) {
  AddVarint(out, (static_cast<uint64_t>(field) << 3) | 2);
  AddVarint(out, bytes.size());
  out += bytes;
}

class Writer {
 public:
  explicit Writer(const Lc0Spec& spec)
      : spec_(spec), rng_({.seed = spec.seed, .purpose = Purpose("lc0 file")}) {}

  std::string Write() {
    std::string net;
    AddFixed32(net, 1, 0x1c0);
    AddBytes(net, 2, "for tests");
    AddBytes(net, 4, Format());
    AddBytes(net, 10, Weights());
    return net;
  }

 private:
  std::string Format() const {
    std::string network;
    AddNumber(network, 1, static_cast<uint64_t>(spec_.input));
    AddNumber(network, 2, spec_.wdl ? 2 : 1);
    AddNumber(network, 3, static_cast<uint64_t>(spec_.structure));
    const int policy = spec_.convolutional_policy ? 2 : 1;
    AddNumber(network, 4, static_cast<uint64_t>(spec_.policy != 0 ? spec_.policy : policy));
    AddNumber(network, 5, spec_.wdl ? 2 : 1);
    AddNumber(network, 7, static_cast<uint64_t>(spec_.activation));
    std::string format;
    AddNumber(format, 1, static_cast<uint64_t>(spec_.encoding));
    AddBytes(format, 2, network);
    return format;
  }

  std::string Weights() {
    const int filters = spec_.filters;
    std::string weights;
    AddBytes(weights, 1, Conv(112, filters, 3, true));
    for (int i = 0; i < spec_.blocks; ++i) {
      std::string block;
      AddBytes(block, 1, Conv(filters, filters, 3, true));
      AddBytes(block, 2, Conv(filters, filters, 3, true));
      if (spec_.squeeze > 0) AddBytes(block, 3, Squeeze());
      AddBytes(weights, 2, block);
    }
    if (spec_.convolutional_policy) {
      AddBytes(weights, 11, Conv(filters, filters, 3, true));
      AddBytes(weights, 3, Conv(filters, 80, 3, false));
    } else {
      AddBytes(weights, 3, Conv(filters, 4, 1, true));
      AddBytes(weights, 4, Layer(4 * 64 * 1858, 256));
      AddBytes(weights, 5, Layer(1858, 4));
    }
    AddBytes(weights, 6, Conv(filters, 4, 1, true));
    AddBytes(weights, 7, Layer(4 * 64 * 16, 256));
    AddBytes(weights, 8, Layer(16, 4));
    const int outputs = spec_.wdl ? 3 : 1;
    AddBytes(weights, 9, Layer(16 * outputs, 16));
    AddBytes(weights, 10, Layer(outputs, 4));
    if (spec_.attention) AddBytes(weights, 27, "");
    return weights;
  }

  std::string Conv(int inputs, int outputs, int size, bool norm) {
    std::string block;
    AddBytes(block, 1, Layer(inputs * outputs * size * size, inputs * size * size));
    AddBytes(block, 2, Layer(outputs, 4));
    if (!norm) return block;
    AddBytes(block, 3, Layer(outputs, 4));
    AddBytes(block, 4, Layer(outputs, 1, 1));  // Variances: about 1 and above 0.
    AddBytes(block, 5, Layer(outputs, 4, 1));
    AddBytes(block, 6, Layer(outputs, 4));
    return block;
  }

  std::string Squeeze() {
    std::string unit;
    AddBytes(unit, 1, Layer(spec_.filters * spec_.squeeze, spec_.filters));
    AddBytes(unit, 2, Layer(spec_.squeeze, 4));
    AddBytes(unit, 3, Layer(2 * spec_.filters * spec_.squeeze, spec_.squeeze));
    AddBytes(unit, 4, Layer(2 * spec_.filters, 4));
    return unit;
  }

  // Numbers about `mean`, smaller the more are added up.
  std::string Layer(int count, int fan_in, float mean = 0) {
    std::vector<float> numbers(static_cast<size_t>(count));
    for (float& number : numbers) {
      const double spread = (rng_.Uniform() - 0.5) * (mean > 0 ? 0.5 : 2.5);
      number = mean + static_cast<float>(spread / std::sqrt(fan_in));
    }
    std::string layer;
    const auto [min, max] = std::ranges::minmax(numbers);
    AddFixed32(layer, 1, std::bit_cast<uint32_t>(min));
    AddFixed32(layer, 2, std::bit_cast<uint32_t>(max));
    AddBytes(layer, 3, Params(numbers, min, max));
    return layer;
  }

  std::string Params(const std::vector<float>& numbers, float min, float max) const {
    std::string params;
    for (float number : numbers) {
      if (spec_.encoding == 4) {
        params.append(reinterpret_cast<const char*>(&number), sizeof(number));
        continue;
      }
      auto bits = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);  // bfloat16
      if (spec_.encoding != 3) {
        const float share = max > min ? (number - min) / (max - min) : 0;
        bits = static_cast<uint16_t>(std::lround(share * 65535));
      }
      params.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
    }
    return params;
  }

  Lc0Spec spec_;
  Rng rng_;
};

}  // namespace

std::string Lc0Bytes(const Lc0Spec& spec) { return Writer(spec).Write(); }

void WriteLc0File(const std::string& path, const Lc0Spec& spec) {
  std::ofstream(path, std::ios::binary) << Lc0Bytes(spec);
}

}  // namespace kibitz::testing
