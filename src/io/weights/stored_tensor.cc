#include "io/weights/stored_tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace kibitz::io {
namespace {

// The largest copy made on the word of a few numbers in a file.
constexpr uint64_t kFreeCopyBytes = uint64_t{64} << 20;

// Copies elements in row order: whole runs of the innermost contiguous dimensions at a time.
std::vector<std::byte> CopyInRowOrder(const StoredTensor& tensor, uint64_t total) {
  const size_t size = SizeOf(tensor.type);
  size_t outer = tensor.shape.size();  // Dimensions before this one are stepped through.
  uint64_t run = size;
  while (outer > 0 && (tensor.shape[outer - 1] == 1 ||
                       static_cast<uint64_t>(tensor.strides[outer - 1]) * size == run)) {
    --outer;
    run *= static_cast<uint64_t>(tensor.shape[outer]);
  }
  std::vector<std::byte> out(total);
  std::vector<int64_t> index(outer, 0);
  uint64_t from = 0;  // In elements.
  for (uint64_t at = 0; at < total; at += run) {
    std::memcpy(out.data() + at, tensor.bytes.data() + from * size, run);
    for (size_t d = outer; d-- > 0;) {
      from += static_cast<uint64_t>(tensor.strides[d]);
      if (++index[d] < tensor.shape[d]) break;
      from -= static_cast<uint64_t>(tensor.strides[d]) * static_cast<uint64_t>(tensor.shape[d]);
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

std::vector<int64_t> RowStrides(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

bool StoredTensor::IsContiguous() const {
  if (CountOf(shape) == 0) return true;
  const std::vector<int64_t> row = RowStrides(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && strides[d] != row[d]) return false;
  }
  return true;
}

Tensor StoredTensor::ToTensor() const {
  const auto total = BytesOf(type, shape);
  CHECK(total.has_value());
  if (IsContiguous()) return {type, shape, bytes.first(*total), owner};
  if (*total > std::max<uint64_t>(kFreeCopyBytes, bytes.size())) {
    throw Error(
        "tensor {} {} repeats {} stored bytes to make {}, over the limit of 64 MB; in Python, save "
        "the tensor without expand()",
        NameOf(type), ShapeText(shape), bytes.size(), *total);
  }
  return OwnedTensor(type, shape, CopyInRowOrder(*this, *total));
}

StoredTensor Stored(Tensor tensor) {
  CHECK(BytesOf(tensor.type, tensor.shape) == tensor.bytes.size());
  std::vector<int64_t> strides = RowStrides(tensor.shape);
  return {tensor.type, std::move(tensor.shape), std::move(strides), tensor.bytes,
          std::move(tensor.owner)};
}

}  // namespace kibitz::io
