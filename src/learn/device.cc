#include "learn/device.h"

#include <charconv>

#include "base/error.h"
#include "base/log.h"
#include "learn/precision.h"

namespace kibitz::learn {

torch::Device DeviceOf(const std::string& name) {
  if (name == "cpu") return torch::kCPU;
  constexpr std::string_view kPrefix = "cuda:";
  int index = 0;
  bool known = name == "cuda";
  if (name.starts_with(kPrefix)) {
    const char* end = name.data() + name.size();
    const auto [last, error] = std::from_chars(name.data() + kPrefix.size(), end, index);
    known = error == std::errc() && last == end && index >= 0;
  }
  if (!known) {
    throw Error::Usage("training.device is '{}', expected cpu, cuda or cuda:N", name);
  }
  const auto devices = static_cast<int>(torch::cuda::device_count());
  if (index >= devices) {
    throw Error(
        "training.device is '{}', but libtorch finds {} CUDA devices here; use --device cpu, or a "
        "libtorch built for CUDA ('kibitz train check' shows what it finds)",
        name, devices);
  }
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

void WarnIfNotUsed(const LoopOptions& options, torch::Device device) {
  if (!options.use_amp || device.is_cuda() || CpuHasBfloat16()) return;
  LogWarn(
      "training.use_amp has no effect here: this processor has neither AMX nor AVX-512 BF16, so "
      "training runs in float32");
}

}  // namespace kibitz::learn
