#include "learn/autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include "nn/kernels/amx.h"

namespace kibitz::learn {
namespace {

void Switch(bool on) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  at::autocast::set_autocast_enabled(at::kCUDA, on);
  if (on) at::autocast::set_autocast_dtype(at::kCUDA, at::kBFloat16);
#else
  at::autocast::set_enabled(on);
  if (on) at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
#endif
  if (!on) at::autocast::clear_cache();
}

}  // namespace

Autocast::Autocast(torch::Device device, bool wanted)
    : on_(wanted && device.is_cuda()), before_(CurrentPrecision()) {
  if (on_) Switch(true);
  if (wanted && device.is_cpu() && nn::HasAmx()) SetCurrentPrecision(Precision::kBfloat16);
}

Autocast::~Autocast() {
  if (on_) Switch(false);
  SetCurrentPrecision(before_);
}

}  // namespace kibitz::learn
