#include "nn/kernels/instructions.h"

namespace kibitz::nn {

std::string_view InstructionsName() {
#if defined(__AVX512VNNI__)
  return "AVX-512 VNNI";
#elif defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVXVNNI__)
  return "AVX2 VNNI";
#elif defined(__AVX2__)
  return "AVX2";
#elif defined(__AVX__)
  return "AVX";
#elif defined(__SSE4_2__)
  return "SSE4.2";
#else
  return "scalar";
#endif
}

}  // namespace kibitz::nn
