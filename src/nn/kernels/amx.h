// Which instructions multiply bfloat16 here. AVX-512 BF16 has dot products of pairs: twice what an
// AVX-512 multiply-add does. Intel's AMX has eight tile registers of 16 rows of 64 bytes, and the
// product of two tiles that adds to a tile of floats: 16 times what a multiply-add does.
//
//   if (HasAmx()) {
//     const AmxTiles tiles;            // Of this thread, while it lives.
//     MultiplyTiles();                 // A function marked KIBITZ_AMX, with _tile_... intrinsics.
//   }
//
// Functions with these instructions are compiled for them alone, whatever the rest is compiled for:
// every build has them, and HasAmx() or HasAvx512Bf16() decides at run time. A tile that is
// multiplied by (the left factor) holds 16 rows of 32 numbers; one that multiplies holds 16 pairs
// of neighbouring rows of the right factor, the two numbers of a column side by side; sums are 16
// by 16 floats.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#define KIBITZ_AMX \
  __attribute__((  \
      target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")))
#define KIBITZ_AVX512_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma")))
#define KIBITZ_HAS_AMX_INTRINSICS 1
#endif

namespace kibitz::nn {

inline constexpr int64_t kAmxRows = 16;
inline constexpr int64_t kAmxDepth = 32;  // bfloat16 numbers of a row.

// The processor has AVX-512 BF16, and the system saves its registers. KIBITZ_BF16=off in the
// environment says no. Asks once.
bool HasAvx512Bf16();
// It also has AMX for bfloat16, and the system lets this process use it. KIBITZ_BF16=avx512 or off
// says no. Asks once.
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
