// The number formats of weights and their products.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace kibitz::nn {

enum class Precision : uint8_t {
  kF32,
  // Weights in 8 bits with scales; activations are quantised on the fly. Not for convolutions.
  kInt8,
};

inline constexpr std::pair<std::string_view, Precision> kPrecisions[] = {
    {"f32", Precision::kF32}, {"int8", Precision::kInt8}};

}  // namespace kibitz::nn
