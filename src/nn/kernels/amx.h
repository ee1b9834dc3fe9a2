// Intel's AMX: eight tile registers of 16 rows of 64 bytes, and the product of two tiles of
// bfloat16 that adds to a tile of floats. One instruction does 16 times what an AVX-512
// multiply-add does.
//
//   if (HasAmx()) {
//     const AmxTiles tiles;            // Of this thread, while it lives.
//     MultiplyTiles();                 // A function marked KIBITZ_AMX, with _tile_... intrinsics.
//   }
//
// Functions with these instructions are compiled for them alone, whatever the rest is compiled for:
// every build has them, and HasAmx() decides at run time. A tile that is multiplied by (the left
// factor) holds 16 rows of 32 numbers; one that multiplies holds 16 pairs of neighbouring rows of
// the right factor, the two numbers of a column side by side; sums are 16 by 16 floats.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#define KIBITZ_AMX \
  __attribute__((  \
      target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")))
#define KIBITZ_HAS_AMX_INTRINSICS 1
#endif

namespace kibitz::nn {

inline constexpr int64_t kAmxRows = 16;
inline constexpr int64_t kAmxDepth = 32;  // bfloat16 numbers of a row.

// The processor has AMX for bfloat16, with AVX-512 BF16 to convert, and the system lets this
// process use it. KIBITZ_AMX=off in the environment says no. Asks once.
bool HasAmx();

// All eight tile registers of the calling thread as full tiles, while it lives; free inside
// another. Does nothing without HasAmx().
class AmxTiles {
 public:
  AmxTiles();
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

}  // namespace kibitz::nn
