// Between files and modules: weights by name, the same names and order as Python's state_dict.
//
//   LoadWeights(*net, StateDict::From(io::ReadPt("run.pt"), "run.pt"), "run.pt");
//   io::WriteSafetensors("copy.safetensors", {.tensors = WeightsOf(*net)});
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/weights/named_tensor.h"
#include "io/weights/state_dict.h"

namespace kibitz::learn {

// A copy of the file's numbers. CHECKs against types torch does not have (unsigned over 8 bits).
torch::Tensor FromFile(const io::Tensor& tensor);
// Shares the tensor's memory when it is contiguous and on the CPU: write it out before it changes.
io::Tensor ToFile(const torch::Tensor& tensor);

// Parameters and buffers of the module and all below, in Python's order: each module's own
// parameters, its buffers, then its children. They share memory with the module.
std::vector<io::NamedTensor> WeightsOf(const torch::nn::Module& module);

// Fills every parameter and buffer. Throws Error, naming `place`, for one that is missing, has
// another shape or is not known to the module.
void LoadWeights(torch::nn::Module& module, const io::StateDict& weights, const std::string& place);

// Initialises as PyTorch's constructors do, but from our random streams: the same on every machine
// and with any number of threads. Linear and Conv2d: U(-1/sqrt(fan_in), 1/sqrt(fan_in)) for weight
// and bias; Embedding: N(0, 1); other modules are left alone. A tensor's values depend on its name.
void InitWeights(torch::nn::Module& module, uint64_t seed);
void FillNormal(torch::Tensor tensor, uint64_t seed, const std::string& name);

}  // namespace kibitz::learn
