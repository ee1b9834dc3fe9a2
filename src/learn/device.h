// Where training computes: the device and the precision that a config names.
//
//   const torch::Device device = DeviceOf("cuda");
#pragma once

#include <torch/torch.h>

#include <string>

#include "learn/options/loop_options.h"

namespace kibitz::learn {

// The device called cpu, cuda or cuda:N. Throws Error::Usage for another name, and Error for a CUDA
// device that this machine does not have.
torch::Device DeviceOf(const std::string& name);

// Warns when use_amp has no effect: a CPU without AVX-512 BF16 trains in float32.
void WarnIfNotUsed(const LoopOptions& options, torch::Device device);

}  // namespace kibitz::learn
