// A tensor as a .pt file stores it: possibly a strided view into a shared storage.
//
//   const Tensor tensor = value.stored().ToTensor();   // Mapped when contiguous, else copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/bytes/tensor.h"

namespace kibitz::io {

struct StoredTensor {
  DType type = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;       // In elements, none negative.
  std::span<const std::byte> bytes;   // From the first element to the last one a stride reaches.
  std::shared_ptr<const void> owner;  // Keeps `bytes` valid.

  // Whether the elements lie in row order without gaps.
  bool IsContiguous() const;
  // Points into the file when contiguous, else copies in row order, at every call.
  // Throws Error when a copy would be over 64 MB and larger than what the file holds.
  Tensor ToTensor() const;
};

struct NamedStoredTensor {
  std::string name;
  StoredTensor tensor;
};

// CHECKs that sizes agree.
StoredTensor Stored(Tensor tensor);

// Strides of a contiguous tensor: [3, 4] -> [4, 1].
std::vector<int64_t> RowStrides(std::span<const int64_t> shape);

}  // namespace kibitz::io
