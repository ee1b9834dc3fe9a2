// Arrays of numbers: a type, a shape, and contiguous little-endian bytes in row order. Readers
// return tensors that point into the mapped file, without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kibitz::io {

enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
};

size_t SizeOf(DType type);
// "float32", "bfloat16", "bool", ...
std::string_view NameOf(DType type);

// Elements of a shape, and bytes of a tensor; nothing when a size is negative or the product
// overflows 63 bits.
std::optional<uint64_t> CountOf(std::span<const int64_t> shape);
std::optional<uint64_t> BytesOf(DType type, std::span<const int64_t> shape);
// "[3, 64, 8]"
std::string ShapeText(std::span<const int64_t> shape);

struct Tensor {
  DType type = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;   // May be unaligned: copy out before using as numbers.
  std::shared_ptr<const void> owner;  // Keeps `bytes` valid.
};

// A tensor that owns its bytes. CHECKs that sizes agree.
Tensor OwnedTensor(DType type, std::vector<int64_t> shape, std::vector<std::byte> bytes);

// The elements as floats, whatever the type.
std::vector<float> ToFloats(const Tensor& tensor);

// A copy in half precision.
Tensor ToHalf(const Tensor& tensor);

// Whether no element is NaN or infinite.
bool AllFinite(const Tensor& tensor);

// Half and bfloat16 bit patterns.
float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);  // The nearest, ties to even; infinite beyond 65504.
float BFloat16ToFloat(uint16_t bits);

}  // namespace kibitz::io
