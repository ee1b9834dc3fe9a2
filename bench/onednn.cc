// Our matrix products beside those of oneDNN, for the layers of the decoder's real size. Built only
// where oneDNN is installed (scripts/debian-packages-onednn.txt); docs/DECISIONS.md has the table.
//
// Both take rows of floats and return rows of floats. oneDNN's weights are packed in the order it
// asks for. Its int8 product gets one scale for all rows and one for each output, ours one for each
// 128 numbers of both; quantising the rows is in both times.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <dnnl.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "bench/bench.h"
#include "nn/kernels/linear.h"

namespace kibitz::bench {
namespace {

using dnnl::memory;
using nn::Precision;

constexpr int64_t kInputs = 1024;
constexpr int64_t kOutputs = 3072;  // Queries, keys and values of one layer.
constexpr int kLayers = 12;         // Products in a round, each with weights of its own.

std::vector<float> RandomFloats(int64_t count, uint64_t seed) {
  Rng rng({.seed = seed});
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = static_cast<float>(2 * rng.Uniform() - 1);
  return numbers;
}

// y = W x for each layer in turn, by oneDNN.
class OneDnn {
 public:
  OneDnn(const std::vector<std::vector<float>>& weights, int64_t rows, Precision precision)
      : int8_(precision == Precision::kInt8), rows_(rows) {
    const auto type = int8_ ? memory::data_type::u8 : memory::data_type::f32;
    const auto weight_type = int8_ ? memory::data_type::s8 : memory::data_type::f32;
    dnnl::primitive_attr attributes;
    if (int8_) {
      attributes.set_output_scales(2, std::vector<float>(kOutputs, kWeightScale * kRowScale));
      attributes.set_zero_points(DNNL_ARG_SRC, 0, {kZero});
    }
    const memory::desc x({rows, kInputs}, type, memory::format_tag::ab);
    const memory::desc w({kInputs, kOutputs}, weight_type, memory::format_tag::any);
    const memory::desc y({rows, kOutputs}, memory::data_type::f32, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc description({x, w, y}, attributes, engine_);
    name_ = description.impl_info_str();
    product_ = dnnl::matmul(description);
    x_ = memory(x, engine_);
    y_ = memory(y, engine_);
    for (const std::vector<float>& weight : weights) {
      weights_.push_back(Packed(weight, description.weights_desc()));
    }
  }

  const std::string& name() const { return name_; }

  const float* Run(const std::vector<float>& x) {
    for (memory& weights : weights_) {
      Quantise(x);
      product_.execute(stream_,
                       {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y_}});
    }
    stream_.wait();
    return static_cast<const float*>(y_.get_data_handle());
  }

 private:
  static constexpr float kWeightScale = 1.0F / 127;
  static constexpr float kRowScale = 1.0F / 127;
  static constexpr int kZero = 128;

  // (outputs, inputs) as oneDNN wants it.
  memory Packed(const std::vector<float>& weight, const memory::desc& wanted) {
    memory packed(wanted, engine_);
    const auto type = int8_ ? memory::data_type::s8 : memory::data_type::f32;
    const memory::desc plain({kInputs, kOutputs}, type, memory::format_tag::ba);
    std::vector<int8_t> numbers;
    void* from = const_cast<float*>(weight.data());
    if (int8_) {
      for (float w : weight) numbers.push_back(static_cast<int8_t>(std::lrint(w / kWeightScale)));
      from = numbers.data();
    }
    memory source(plain, engine_, from);
    dnnl::reorder(source, packed).execute(stream_, source, packed);
    stream_.wait();
    return packed;
  }
  void Quantise(const std::vector<float>& x) {
    if (!int8_) {
      std::copy(x.begin(), x.end(), static_cast<float*>(x_.get_data_handle()));
      return;
    }
    auto* to = static_cast<uint8_t*>(x_.get_data_handle());
    for (size_t i = 0; i < x.size(); ++i) {
      to[i] = static_cast<uint8_t>(static_cast<int>(std::nearbyintf(x[i] / kRowScale)) + kZero);
    }
  }

  bool int8_;
  int64_t rows_;
  std::string name_;
  dnnl::engine engine_ = dnnl::engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream_ = dnnl::stream(engine_);
  dnnl::matmul product_;
  memory x_;
  memory y_;
  std::vector<memory> weights_;
};

// The same by ours.
class Ours {
 public:
  Ours(const std::vector<std::vector<float>>& weights, int64_t rows, Precision precision)
      : rows_(rows), team_(HardwareThreads()), y_(static_cast<size_t>(rows * kOutputs)) {
    for (const std::vector<float>& weight : weights) {
      layers_.emplace_back(
          nn::LinearWeights{.weight = weight, .outputs = kOutputs, .inputs = kInputs}, precision);
    }
  }

  const float* Run(const std::vector<float>& x) {
    for (const nn::Linear& layer : layers_) {
      packed_.Pack(team_, rows_, layer, x.data(), kInputs);
      layer.Run(team_, packed_, {.to = y_.data(), .row = kOutputs});
    }
    return y_.data();
  }

 private:
  int64_t rows_;
  nn::Team team_;
  std::vector<nn::Linear> layers_;
  nn::PackedRows packed_;
  std::vector<float> y_;
};

void Compare(Bench& bench, const std::vector<std::vector<float>>& weights, int64_t rows,
             Precision precision) {
  const std::vector<float> x = RandomFloats(rows * kInputs, 3);
  Ours ours(weights, rows, precision);
  OneDnn theirs(weights, rows, precision);
  const float* y = ours.Run(x);
  const float* z = theirs.Run(x);
  double largest = 0;
  for (int64_t i = 0; i < rows * kOutputs; ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(y[i] - z[i])));
  }
  const bool int8 = precision == Precision::kInt8;
  if (largest > (int8 ? 2 : 1e-3)) bench.Fail(fmt::format("results differ by {:.3g}", largest));
  std::vector<double> our_rates;
  std::vector<double> their_rates;
  const double flops = 2.0 * kLayers * static_cast<double>(rows * kInputs * kOutputs);
  for (int round = 0; round < (bench.quick() ? 3 : 9); ++round) {
    our_rates.push_back(flops / SecondsOf([&] { ours.Run(x); }) / 1e9);
    their_rates.push_back(flops / SecondsOf([&] { theirs.Run(x); }) / 1e9);
  }
  bench.Report({.name = fmt::format("{} rows, {}", rows, int8 ? "int8" : "f32"),
                .value = Median(our_rates),
                .unit = "GFLOP/s",
                .yardstick = Median(their_rates),
                .yardstick_name = "oneDNN " + theirs.name(),
                .signature = static_cast<uint64_t>(rows)});
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  using namespace kibitz;
  bench::Bench bench("onednn", argc, argv);
  std::vector<std::vector<float>> weights;
  for (uint64_t i = 0; i < bench::kLayers; ++i) {
    weights.push_back(bench::RandomFloats(bench::kInputs * bench::kOutputs, 10 + i));
  }
  for (const auto precision : {nn::Precision::kF32, nn::Precision::kInt8}) {
    for (const int64_t rows : {1, 6, 68, 140, 1000}) {
      bench::Compare(bench, weights, rows, precision);
    }
  }
  return bench.Finish();
}
