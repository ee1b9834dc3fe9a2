#include "io/weights/torch_types.h"

#include <array>

namespace kibitz::io {
namespace {

struct Names {
  DType type;
  std::string_view storage;
};

constexpr std::array kNames = {
    Names{DType::kBool, "BoolStorage"},
    Names{DType::kU8, "ByteStorage"},
    Names{DType::kI8, "CharStorage"},
    Names{DType::kI16, "ShortStorage"},
    Names{DType::kI32, "IntStorage"},
    Names{DType::kI64, "LongStorage"},
    Names{DType::kF16, "HalfStorage"},
    Names{DType::kBF16, "BFloat16Storage"},
    Names{DType::kF32, "FloatStorage"},
    Names{DType::kF64, "DoubleStorage"},
    Names{DType::kU8, "UntypedStorage"},  // Counted in bytes.
    Names{DType::kU8, "_UntypedStorage"},
    Names{DType::kU16, ""},
    Names{DType::kU32, ""},
    Names{DType::kU64, ""},
};

}  // namespace

std::optional<DType> TypeOfStorage(std::string_view storage) {
  for (const Names& names : kNames) {
    if (!names.storage.empty() && names.storage == storage) return names.type;
  }
  return std::nullopt;
}

std::string_view StorageOf(DType type) {
  for (const Names& names : kNames) {
    if (names.type == type) return names.storage;
  }
  return "";
}

std::optional<DType> TypeOfTorchName(std::string_view name) {
  for (const Names& names : kNames) {
    if (NameOf(names.type) == name) return names.type;
  }
  return std::nullopt;
}

}  // namespace kibitz::io
