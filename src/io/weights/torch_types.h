// The names torch gives to element types, for reading and writing .pt files.
#pragma once

#include <optional>
#include <string_view>

#include "io/bytes/tensor.h"

namespace kibitz::io {

// "FloatStorage" -> float32; nothing for types we do not hold (complex, quantised).
std::optional<DType> TypeOfStorage(std::string_view storage);
// Empty for the unsigned types that torch keeps in an UntypedStorage.
std::string_view StorageOf(DType type);

// "float32" -> float32; pickles hold these long names only, never "half" or "long".
std::optional<DType> TypeOfTorchName(std::string_view name);

}  // namespace kibitz::io
