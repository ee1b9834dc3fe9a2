#include "students/decoder/data/widen.h"

#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"

namespace kibitz::decoder {
namespace {

// Which axes of a tensor are the hidden state: axis 0 or the last one of a matrix. A written axis
// is repeated; a read one is repeated with half the weight.
struct Axes {
  bool writes_first = false;
  bool writes_last = false;
  bool reads_last = false;
};

Axes AxesOf(std::string_view name) {
  if (name.ends_with("_embedding.weight")) return {.writes_last = true};
  if (name.ends_with(".scale")) return {.writes_first = true};
  if (name.starts_with("fourier_encoder.proj.")) return {.writes_first = true};
  if (name.starts_with("layers.")) return {.writes_first = true, .reads_last = true};
  const bool head = name.find("_head.") != std::string_view::npos || name.starts_with("line_vote.");
  const bool second_layer = name.find(".mlp.2.") != std::string_view::npos;
  if (head && !second_layer && name.ends_with(".weight")) return {.reads_last = true};
  return {};
}

class Widener {
 public:
  Widener(const std::string& name, const WidenOptions& options)
      : axes_(AxesOf(name)),
        rng_({.seed = options.seed, .purpose = Purpose("widen " + name)}),
        noise_(options.noise) {}

  io::Tensor Apply(const io::StateDict& weights, const io::NamedTensor& item) {
    std::vector<int64_t> shape = item.tensor.shape;
    const std::vector<float> values = weights.Floats(item.name, shape);
    const bool twice_last = axes_.writes_last || axes_.reads_last;
    const size_t columns = shape.size() > 1 ? static_cast<size_t>(shape.back()) : 1;
    const size_t rows = values.size() / columns;
    const double deviation = noise_ * RootMeanSquare(values);
    std::vector<float> wide;
    for (int copy = 0; copy < (axes_.writes_first ? 2 : 1); ++copy) {
      for (size_t row = 0; row < rows; ++row) {
        const float* from = values.data() + row * columns;
        const size_t begin = wide.size();
        wide.insert(wide.end(), from, from + columns);
        if (twice_last) wide.insert(wide.end(), from, from + columns);
        if (axes_.reads_last) Halve(wide.data() + begin, columns, deviation);
      }
    }
    if (axes_.writes_first) shape.front() *= 2;
    if (twice_last) shape.back() *= 2;
    std::vector<std::byte> bytes(wide.size() * sizeof(float));
    std::memcpy(bytes.data(), wide.data(), bytes.size());
    return io::OwnedTensor(io::DType::kF32, std::move(shape), std::move(bytes));
  }

 private:
  static double RootMeanSquare(const std::vector<float>& values) {
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * value;
    return values.empty() ? 0 : std::sqrt(squares / static_cast<double>(values.size()));
  }
  // Both copies of a row: half of it plus noise, half of it minus the same noise.
  void Halve(float* row, size_t columns, double deviation) {
    for (size_t i = 0; i < columns; ++i) {
      const auto noise = static_cast<float>(deviation * rng_.Normal() / 2);
      row[i] = row[i] / 2 + noise;
      row[columns + i] = row[columns + i] / 2 - noise;
    }
  }

  Axes axes_;
  Rng rng_;
  double noise_;
};

}  // namespace

WeightsFile Widen(const WeightsFile& small, const WidenOptions& options) {
  std::vector<io::NamedTensor> tensors;
  for (const io::NamedTensor& item : small.weights.tensors()) {
    tensors.push_back({item.name, Widener(item.name, options).Apply(small.weights, item)});
  }
  WeightsFile wide{.weights = io::StateDict(std::move(tensors), small.weights.place()),
                   .config = small.config,
                   .pretrained = small.pretrained};
  wide.config.embed_dim *= 2;
  wide.config.num_heads *= 2;
  wide.config.d_ff *= 2;
  return wide;
}

}  // namespace kibitz::decoder
