// safetensors: a JSON header of names, types, shapes and byte ranges, then the bytes.
//
//   const Safetensors model = ReadSafetensors("model.safetensors");   // Mapped, not copied.
//   WriteSafetensors("copy.safetensors", model);
//
// Strict, as the format asks: the header is at most 100 MB and within the file, no name or field
// occurs twice, sizes do not overflow and agree with type and shape, and the ranges tile the
// bytes exactly.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/weights/named_tensor.h"
#include "io/weights/stored_tensor.h"

namespace kibitz::io {

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct Safetensors {
  std::vector<NamedTensor> tensors;  // In the header's order.
  Metadata metadata = {};            // "__metadata__", without the checksum.
  bool has_checksum = false;         // Which was right; WriteSafetensors adds one.

  // nullptr when there is none.
  const std::string* FindMetadata(std::string_view key) const;
};

// Throws Error.
Safetensors ReadSafetensors(const std::string& path);
// The same from memory that `owner` keeps; `place` names it in errors.
Safetensors ParseSafetensors(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                             const std::string& place);

// The bytes begin at a multiple of 8 and wider types come first, so every tensor is aligned to its
// type; the header keeps the given order. Streams: memory does not grow with the tensors.
void WriteSafetensors(const std::string& path, const Safetensors& content);
// The same for views, which are put in row order one at a time.
void WriteSafetensors(const std::string& path, const std::vector<NamedStoredTensor>& tensors,
                      const Metadata& metadata);

}  // namespace kibitz::io
