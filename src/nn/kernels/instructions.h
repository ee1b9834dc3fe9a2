// The vector instructions that this build of the kernels uses.
#pragma once

#include <string_view>

namespace kibitz::nn {

// Such as "AVX-512 VNNI" or "AVX2".
std::string_view InstructionsName();

}  // namespace kibitz::nn
