// The work of block_attention.h with products in bfloat16 (nn/kernels/bf16_gemm.h) for blocks of 16
// rows, as a board of 2048 has them; softmax and sums stay in float32. The query heads of one key
// head form one matrix, and scores lie transposed, (keys, queries). Letters as there; G query heads
// of a key head.
#pragma once

#include <cstdint>

namespace kibitz::learn {

inline constexpr int64_t kBf16BlockRows = 16;

struct Bf16BlockSizes {
  int64_t heads = 1;     // H
  int64_t kv_heads = 1;  // K
  int64_t e = 1;
  float scale = 1;

  int64_t width() const { return heads * e; }
  int64_t kv_width() const { return kv_heads * e; }
  int64_t queries() const { return heads / kv_heads * kBf16BlockRows; }
  // Of one block.
  int64_t shares() const { return heads * kBf16BlockRows * kBf16BlockRows; }
};

// Of neighbouring blocks, from the first on.
struct Bf16BlockForward {
  const float* q = nullptr;  // (rows, H E)
  const float* k = nullptr;  // (rows, K E)
  const float* v = nullptr;  // (rows, K E)
  float* out = nullptr;      // (rows, H E)
  float* shares = nullptr;   // (blocks, K, 16, G 16), after softmax.
};
void AttendBlocksBf16(const Bf16BlockSizes& sizes, int64_t blocks, const Bf16BlockForward& data);

struct Bf16BlockBackward {
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  const float* shares = nullptr;
  const float* dout = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
};
void AttendBlocksBackwardBf16(const Bf16BlockSizes& sizes, int64_t blocks,
                              const Bf16BlockBackward& data);

}  // namespace kibitz::learn
