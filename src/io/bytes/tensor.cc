#include "io/bytes/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"

namespace kibitz::io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they are");

template <typename T, typename Convert>
void Widen(const Tensor& tensor, std::vector<float>& out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = convert(value);
  }
}

constexpr auto kPlain = [](auto value) { return static_cast<float>(value); };

}  // namespace

size_t SizeOf(DType type) {
  switch (type) {
    case DType::kBool:
    case DType::kU8:
    case DType::kI8:
      return 1;
    case DType::kU16:
    case DType::kI16:
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kU32:
    case DType::kI32:
    case DType::kF32:
      return 4;
    case DType::kU64:
    case DType::kI64:
    case DType::kF64:
      return 8;
  }
  return 0;
}

std::string_view NameOf(DType type) {
  switch (type) {
    case DType::kBool:
      return "bool";
    case DType::kU8:
      return "uint8";
    case DType::kI8:
      return "int8";
    case DType::kU16:
      return "uint16";
    case DType::kI16:
      return "int16";
    case DType::kU32:
      return "uint32";
    case DType::kI32:
      return "int32";
    case DType::kU64:
      return "uint64";
    case DType::kI64:
      return "int64";
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF32:
      return "float32";
    case DType::kF64:
      return "float64";
  }
  return "";
}

std::optional<uint64_t> CountOf(std::span<const int64_t> shape) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t count = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;
    }
    if (count > kMax / static_cast<uint64_t>(size)) return std::nullopt;
    count *= static_cast<uint64_t>(size);
  }
  return empty ? 0 : count;
}

std::optional<uint64_t> BytesOf(DType type, std::span<const int64_t> shape) {
  const auto count = CountOf(shape);
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!count || *count > kMax / SizeOf(type)) return std::nullopt;
  return *count * SizeOf(type);
}

std::string ShapeText(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Tensor OwnedTensor(DType type, std::vector<int64_t> shape, std::vector<std::byte> bytes) {
  CHECK(BytesOf(type, shape) == bytes.size());
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*owner);
  return {type, std::move(shape), view, std::move(owner)};
}

namespace {

// NaN and infinities have all bits of the exponent set: as whole numbers without their sign they
// are not below `infinity`. Eight at a time, so that the compiler can use vectors.
template <typename T>
bool AllBelow(std::span<const std::byte> bytes, T infinity) {
  constexpr size_t kLanes = 8;
  const T mask = static_cast<T>(~(T{1} << (8 * sizeof(T) - 1)));
  std::array<T, kLanes> most{};
  while (!bytes.empty()) {
    std::array<T, kLanes> some{};
    const size_t count = std::min(bytes.size(), sizeof(some));
    std::memcpy(some.data(), bytes.data(), count);
    for (size_t i = 0; i < kLanes; ++i) {
      most[i] = std::max(most[i], static_cast<T>(some[i] & mask));
    }
    bytes = bytes.subspan(count);
  }
  return std::ranges::all_of(most, [infinity](T value) { return value < infinity; });
}

}  // namespace

bool AllFinite(const Tensor& tensor) {
  switch (tensor.type) {
    case DType::kF16:
      return AllBelow<uint16_t>(tensor.bytes, 0x7c00);
    case DType::kBF16:
      return AllBelow<uint16_t>(tensor.bytes, 0x7f80);
    case DType::kF32:
      return AllBelow<uint32_t>(tensor.bytes, 0x7f800000);
    case DType::kF64:
      return AllBelow<uint64_t>(tensor.bytes, 0x7ff0000000000000);
    default:
      return true;
  }
}

std::vector<float> ToFloats(const Tensor& tensor) {
  std::vector<float> out(tensor.bytes.size() / SizeOf(tensor.type));
  switch (tensor.type) {
    case DType::kBool:
    case DType::kU8:
      Widen<uint8_t>(tensor, out, kPlain);
      break;
    case DType::kI8:
      Widen<int8_t>(tensor, out, kPlain);
      break;
    case DType::kU16:
      Widen<uint16_t>(tensor, out, kPlain);
      break;
    case DType::kI16:
      Widen<int16_t>(tensor, out, kPlain);
      break;
    case DType::kU32:
      Widen<uint32_t>(tensor, out, kPlain);
      break;
    case DType::kI32:
      Widen<int32_t>(tensor, out, kPlain);
      break;
    case DType::kU64:
      Widen<uint64_t>(tensor, out, kPlain);
      break;
    case DType::kI64:
      Widen<int64_t>(tensor, out, kPlain);
      break;
    case DType::kF16:
      Widen<uint16_t>(tensor, out, HalfToFloat);
      break;
    case DType::kBF16:
      Widen<uint16_t>(tensor, out, BFloat16ToFloat);
      break;
    case DType::kF32:
      Widen<float>(tensor, out, kPlain);
      break;
    case DType::kF64:
      Widen<double>(tensor, out, kPlain);
      break;
  }
  return out;
}

float HalfToFloat(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

uint16_t FloatToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000U);
  const float size = std::abs(value);
  if (std::isnan(value)) return sign | 0x7E00U;
  if (size >= 65520) return sign | 0x7C00U;  // Rounds to 2^16.
  if (size < 0x1p-14F) {                     // Multiples of 2^-24; 1024 of them is the next kind.
    return static_cast<uint16_t>(sign | static_cast<unsigned>(std::nearbyint(size * 0x1p24F)));
  }
  const uint32_t rounded = (bits & 0x7FFFFFFFU) + 0xFFFU + (bits >> 13 & 1U);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112U << 10)));
}

Tensor ToHalf(const Tensor& tensor) {
  std::vector<std::byte> bytes;
  for (const float value : ToFloats(tensor)) {
    const auto half = std::bit_cast<std::array<std::byte, 2>>(FloatToHalf(value));
    bytes.insert(bytes.end(), half.begin(), half.end());
  }
  return OwnedTensor(DType::kF16, tensor.shape, std::move(bytes));
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace kibitz::io
