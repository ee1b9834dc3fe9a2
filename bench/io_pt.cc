// Loading a checkpoint of 450 MB: mapped, so it takes neither time nor memory worth the name.
// Part of the bench "io".
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "bench/bench.h"
#include "bench/io_parts.h"
#include "io/weights/convert_weights.h"
#include "io/weights/torch_file.h"

namespace kibitz::bench {
namespace {

using io::Value;

constexpr double kMillisecondsAllowed = 200;
constexpr double kMegabytesAllowed = 50;
constexpr int64_t kWidth = 512;

// Numbers that differ from tensor to tensor, and cheap ones.
Value RandomTensor(uint64_t index, std::vector<int64_t> shape) {
  std::vector<std::byte> bytes(*io::BytesOf(io::DType::kF32, shape));
  Rng rng({.seed = 1, .sample = index, .purpose = Purpose("bench pt")});
  for (size_t at = 0; at < bytes.size(); at += 512) {
    const auto value = static_cast<float>(rng.Normal());
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  }
  return Value::Of(io::OwnedTensor(io::DType::kF32, std::move(shape), std::move(bytes)));
}

// A transformer of 12 layers by 11 tensors with its AdamW state: 528 tensors, 453 MB.
void WriteCheckpoint(const std::string& path) {
  Value::Pairs weights;
  Value::Pairs state;
  uint64_t index = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    weights.emplace_back(Value::String(name), RandomTensor(index++, shape));
    state.emplace_back(Value::Int(static_cast<int64_t>(state.size())),
                       Value::Dict({{Value::String("step"), RandomTensor(index++, {})},
                                    {Value::String("exp_avg"), RandomTensor(index++, shape)},
                                    {Value::String("exp_avg_sq"), RandomTensor(index++, shape)}}));
  };
  for (int layer = 0; layer < 12; ++layer) {
    const std::string prefix = "_orig_mod.layers." + std::to_string(layer) + ".";
    for (const char* part : {"q", "k", "v", "o"}) {
      add(prefix + "attn." + part + ".weight", {kWidth, kWidth});
      add(prefix + "attn." + part + ".bias", {kWidth});
    }
    add(prefix + "mlp.up.weight", {4 * kWidth, kWidth});
    add(prefix + "mlp.down.weight", {kWidth, 4 * kWidth});
    add(prefix + "norm.weight", {kWidth});
  }
  const Value optimizer = Value::Dict({{Value::String("state"), Value::Dict(std::move(state))}});
  const Value config = Value::Dict({{Value::String("width"), Value::Int(kWidth)}});
  io::WritePt(path, Value::Dict({{Value::String("step"), Value::Int(1000)},
                                 {Value::String("model_state_dict"), Value::Dict(weights)},
                                 {Value::String("optimizer_state_dict"), optimizer},
                                 {Value::String("config"), config}}));
}

// Over all names, shapes and first bytes.
uint64_t SignatureOf(const std::vector<io::NamedStoredTensor>& tensors) {
  Signature signature;
  for (const auto& [name, tensor] : tensors) {
    signature.Add(name);
    for (int64_t size : tensor.shape) signature.Add(static_cast<uint64_t>(size));
    signature.Add(std::string_view(reinterpret_cast<const char*>(tensor.bytes.data()), 4));
  }
  return signature.value();
}

}  // namespace

void BenchPt(Bench& bench) {
  const std::string path = MadeDataFolder() + "/checkpoint.pt";
  if (!std::filesystem::exists(path)) WriteCheckpoint(path);
  const double file_megabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e6;

  const double before = ResidentMegabytes();
  const Timer timer;
  const Value root = io::ReadPt(path);
  const double milliseconds = timer.Seconds() * 1000;
  const double megabytes = ResidentMegabytes() - before;
  const auto tensors = io::Flatten(root, path).tensors;
  const uint64_t signature = SignatureOf(tensors);

  bench.Say(fmt::format(".pt: {} tensors, {:.0f} MB", tensors.size(), file_megabytes));
  bench.Report({.name = ".pt load, mapped",
                .value = milliseconds,
                .unit = "ms",
                .yardstick = kMillisecondsAllowed,
                .yardstick_name = "allowed",
                .signature = signature});
  bench.Report({.name = ".pt load, extra memory",
                .value = megabytes,
                .unit = "MB",
                .yardstick = kMegabytesAllowed,
                .yardstick_name = "allowed",
                .signature = signature});
  if (milliseconds > kMillisecondsAllowed) bench.Fail(".pt load takes longer than allowed");
  if (megabytes > kMegabytesAllowed) bench.Fail(".pt load takes more memory than allowed");
}

}  // namespace kibitz::bench
