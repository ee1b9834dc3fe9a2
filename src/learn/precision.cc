#include "learn/precision.h"

#include "nn/kernels/amx.h"

namespace kibitz::learn {
namespace {

constexpr const char* kKey = "precision";

thread_local Precision current = Precision::kFloat32;

}  // namespace

Precision CurrentPrecision() { return current; }

PrecisionScope::PrecisionScope(Precision precision) : before_(current) { current = precision; }
PrecisionScope::~PrecisionScope() { current = before_; }

bool CpuHasBfloat16() { return nn::HasAvx512Bf16(); }

Precision KeepPrecision(torch::autograd::AutogradContext* ctx) {
  ctx->saved_data[kKey] = static_cast<int64_t>(current);
  return current;
}

Precision KeptPrecision(torch::autograd::AutogradContext* ctx) {
  return static_cast<Precision>(ctx->saved_data[kKey].toInt());
}

}  // namespace kibitz::learn
