// The work of attention_job.h with products in bfloat16 (nn/kernels/bf16_gemm.h); softmax and sums
// stay in float32.
#pragma once

#include "learn/attention_job.h"

namespace kibitz::learn {

// What the job's rows are padded to.
inline constexpr int64_t kBf16Padding = 32;

void AttendBf16(const Job& job, const ForwardData& data);
void AttendBackwardBf16(const Job& job, const BackwardData& data);

}  // namespace kibitz::learn
