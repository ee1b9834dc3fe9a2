#include "learn/weights.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace kibitz::learn {
namespace {

using io::DType;

constexpr std::pair<DType, torch::ScalarType> kTypes[] = {
    {DType::kBool, torch::kBool},   {DType::kU8, torch::kUInt8},
    {DType::kI8, torch::kInt8},     {DType::kI16, torch::kInt16},
    {DType::kI32, torch::kInt32},   {DType::kI64, torch::kInt64},
    {DType::kF16, torch::kHalf},    {DType::kBF16, torch::kBFloat16},
    {DType::kF32, torch::kFloat32}, {DType::kF64, torch::kFloat64},
};

torch::ScalarType TorchType(DType type) {
  for (const auto& [file, torch] : kTypes) {
    if (file == type) return torch;
  }
  CHECK(!"a type torch has");
  return torch::kFloat32;
}

DType FileType(torch::ScalarType type) {
  for (const auto& [file, torch] : kTypes) {
    if (torch == type) return file;
  }
  CHECK(!"a type files have");
  return DType::kF32;
}

void Collect(const torch::nn::Module& module, const std::string& prefix,
             std::vector<std::pair<std::string, torch::Tensor>>& out) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    out.emplace_back(prefix + item.key(), item.value());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    out.emplace_back(prefix + item.key(), item.value());
  }
  for (const auto& child : module.named_children()) {
    Collect(*child.value(), prefix + child.key() + ".", out);
  }
}

std::vector<std::pair<std::string, torch::Tensor>> NamedTensors(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> out;
  Collect(module, "", out);
  return out;
}

// Draws of one stream per run of elements, so that runs may be filled in any order.
void Fill(torch::Tensor tensor, uint64_t seed, const std::string& name,
          const std::function<float(Rng&)>& draw) {
  const torch::NoGradGuard no_grad;
  CHECK(tensor.is_contiguous() && tensor.dtype() == torch::kFloat32 && tensor.device().is_cpu());
  constexpr int64_t kRun = 1 << 16;
  auto* data = tensor.data_ptr<float>();
  const int64_t count = tensor.numel();
  at::parallel_for(0, (count + kRun - 1) / kRun, 1, [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) {
      Rng rng({.seed = seed,
               .epoch = Purpose(name),
               .sample = static_cast<uint64_t>(run),
               .purpose = Purpose("weights")});
      for (int64_t i = run * kRun; i < std::min(count, (run + 1) * kRun); ++i) data[i] = draw(rng);
    }
  });
}

void FillUniform(const torch::Tensor& tensor, double bound, uint64_t seed,
                 const std::string& name) {
  Fill(tensor, seed, name,
       [bound](Rng& rng) { return static_cast<float>(bound * (2 * rng.Uniform() - 1)); });
}

}  // namespace

torch::Tensor FromFile(const io::Tensor& tensor) {
  auto result = torch::empty(tensor.shape, TorchType(tensor.type));
  CHECK(result.nbytes() == tensor.bytes.size());
  if (!tensor.bytes.empty()) {
    std::memcpy(result.data_ptr(), tensor.bytes.data(), tensor.bytes.size());
  }
  return result;
}

io::Tensor ToFile(const torch::Tensor& tensor) {
  auto owner = std::make_shared<const torch::Tensor>(tensor.detach().cpu().contiguous());
  const auto* data = static_cast<const std::byte*>(owner->data_ptr());
  return {.type = FileType(owner->scalar_type()),
          .shape = owner->sizes().vec(),
          .bytes = {data, owner->nbytes()},
          .owner = owner};
}

std::vector<io::NamedTensor> WeightsOf(const torch::nn::Module& module) {
  std::vector<io::NamedTensor> weights;
  for (const auto& [name, tensor] : NamedTensors(module)) weights.push_back({name, ToFile(tensor)});
  return weights;
}

void LoadWeights(torch::nn::Module& module, const io::StateDict& weights,
                 const std::string& place) {
  const torch::NoGradGuard no_grad;
  const auto own = NamedTensors(module);
  for (const auto& [name, tensor] : own) {
    const io::Tensor& found = weights.Get(name);
    if (found.shape != tensor.sizes().vec()) {
      throw Error("{}: {} is {}, expected {}; is the model's config the file's?", place, name,
                  io::ShapeText(found.shape), io::ShapeText(tensor.sizes().vec()));
    }
    tensor.copy_(FromFile(found));
  }
  if (weights.tensors().size() == own.size()) return;
  for (const io::NamedTensor& tensor : weights.tensors()) {
    const bool known = std::any_of(own.begin(), own.end(),
                                   [&](const auto& pair) { return pair.first == tensor.name; });
    if (!known) {
      throw Error("{}: holds {}, which the model does not have; is the model's config the file's?",
                  place, Quoted(tensor.name));
    }
  }
}

void InitWeights(torch::nn::Module& module, uint64_t seed) {
  for (const auto& item : module.named_modules()) {
    if (const auto* linear = item.value()->as<torch::nn::Linear>()) {
      const double bound = 1 / std::sqrt(static_cast<double>(linear->options.in_features()));
      FillUniform(linear->weight, bound, seed, item.key() + ".weight");
      if (linear->bias.defined()) FillUniform(linear->bias, bound, seed, item.key() + ".bias");
    } else if (const auto* conv = item.value()->as<torch::nn::Conv2d>()) {
      const double inputs = static_cast<double>(conv->weight[0].numel());  // Of one output.
      FillUniform(conv->weight, 1 / std::sqrt(inputs), seed, item.key() + ".weight");
      if (conv->bias.defined()) {
        FillUniform(conv->bias, 1 / std::sqrt(inputs), seed, item.key() + ".bias");
      }
    } else if (const auto* embedding = item.value()->as<torch::nn::Embedding>()) {
      FillNormal(embedding->weight, seed, item.key() + ".weight");
    }
  }
}

void FillNormal(torch::Tensor tensor, uint64_t seed, const std::string& name) {
  Fill(std::move(tensor), seed, name, [](Rng& rng) { return static_cast<float>(rng.Normal()); });
}

}  // namespace kibitz::learn
