#include "students/policy/net/mixed_layer.h"

#include <optional>
#include <utility>

#include "learn/parallel.h"

namespace kibitz::policy {
namespace {

using torch::Tensor;

Tensor PadLast(const Tensor& x) {
  const int64_t width = x.size(-1);
  return torch::constant_pad_nd(x, {0, nn::PaddedPiece(width) - width}).contiguous();
}

// (I, 8, 8) to (64, Ip).
Tensor NormBySquare(const Tensor& norm) { return PadLast(norm.reshape({-1, 64}).t()); }

int64_t TapsOf(const Tensor& weight) { return weight.dim() == 2 ? 1 : 9; }

nn::WindowWeights WeightsOf(const Tensor& weight) {
  return {.weight = weight.data_ptr<float>(),
          .outputs = weight.size(0),
          .inputs = weight.size(1),
          .taps = TapsOf(weight)};
}

}  // namespace

MixedLayer::MixedLayer(const LayerTensors& tensors, nn::ConvPass pass)
    : bias_(tensors.bias.defined() ? PadLast(tensors.bias) : Tensor()),
      weights_(WeightsOf(tensors.weight.contiguous()), pass) {
  if (!tensors.norm_weight.defined()) return;
  norm_weight_ = NormBySquare(tensors.norm_weight);
  norm_bias_ = tensors.norm_bias.defined() ? NormBySquare(tensors.norm_bias)
                                           : torch::zeros_like(norm_weight_);
  norm_ = {.weight = norm_weight_.data_ptr<float>(),
           .bias = norm_bias_.data_ptr<float>(),
           .has_mean = tensors.norm_bias.defined(),
           .channels = norm_weight_.size(1),
           .count = tensors.norm_weight.numel(),
           .epsilon = static_cast<float>(tensors.epsilon)};
}

template <typename T>
nn::NormBackwardSums MixedLayer::Backward(const nn::PieceSums& sums, const T* x, MixedShare& share,
                                          const MixedRoom& room,
                                          std::array<const nn::Bf16*, 2> soon) const {
  const int64_t channels = norm_.channels;
  nn::NormaliseTransposed(norm_, sums, x, room.columns());
  nn::AddWeightGradients({.x = room.columns(),
                          .dz = room.pairs(),
                          .inputs = channels,
                          .outputs = weights_.inputs(),
                          .taps = weights_.taps(),
                          .add = !share.empty},
                         share.taps);
  share.empty = false;
  nn::NormBackwardSums totals;
  for (int64_t square = 0; square < 64; ++square) {
    const int64_t at = square * nn::kPieceBoards * channels;
    for (const nn::Bf16* piece : soon) {
      nn::PrefetchRows(piece == nullptr ? nullptr : piece + at, channels);
    }
    nn::ConvolveSquare(weights_, room.rows(), square, room.gradients() + at);
    nn::SumNormBackward({norm_, sums, square}, room.gradients() + at, x + at, totals,
                        share.norm_weight, share.norm_bias);
  }
  return totals;
}
template nn::NormBackwardSums MixedLayer::Backward(const nn::PieceSums&, const float*, MixedShare&,
                                                   const MixedRoom&,
                                                   std::array<const nn::Bf16*, 2>) const;
template nn::NormBackwardSums MixedLayer::Backward(const nn::PieceSums&, const nn::Bf16*,
                                                   MixedShare&, const MixedRoom&,
                                                   std::array<const nn::Bf16*, 2>) const;

std::vector<MixedLayer> PackLayers(const std::vector<LayerTensors>& tensors, nn::ConvPass pass) {
  std::vector<std::optional<MixedLayer>> packed(tensors.size());
  learn::ForEachTask(static_cast<int64_t>(tensors.size()), [&](int64_t i) {
    packed[static_cast<size_t>(i)].emplace(tensors[static_cast<size_t>(i)], pass);
  });
  std::vector<MixedLayer> layers;
  for (std::optional<MixedLayer>& layer : packed) layers.push_back(std::move(*layer));
  return layers;
}

MixedGradients::MixedGradients(const LayerTensors& tensors, int64_t shares) {
  const int64_t inputs = nn::PaddedPiece(tensors.weight.size(1));
  const int64_t outputs = nn::PaddedPiece(tensors.weight.size(0));
  taps_ = torch::empty({shares, TapsOf(tensors.weight), inputs, outputs});
  if (tensors.bias.defined()) bias_ = torch::zeros({shares, outputs});
  if (!tensors.norm_weight.defined()) return;
  norm_weight_ = torch::zeros({shares, 64, inputs});
  norm_bias_ = torch::zeros_like(norm_weight_);
}

MixedShare MixedGradients::Share(int64_t share) const {
  const auto part = [share](const Tensor& shares) {
    return shares.defined() ? shares.data_ptr<float>() + share * shares.stride(0) : nullptr;
  };
  return {.taps = part(taps_),
          .bias = part(bias_),
          .norm_weight = part(norm_weight_),
          .norm_bias = part(norm_bias_)};
}

LayerTensors MixedGradients::Total(const LayerTensors& tensors) const {
  const int64_t inputs = tensors.weight.size(1);
  const int64_t outputs = tensors.weight.size(0);
  const auto norm_total = [&](const Tensor& shares, const Tensor& parameter) {
    return parameter.defined() ? ByChannel(SumOfShares(shares), inputs).view(parameter.sizes())
                               : Tensor();
  };
  LayerTensors total;
  total.weight = SumOfShares(taps_)
                     .narrow(1, 0, inputs)
                     .narrow(2, 0, outputs)
                     .permute({2, 1, 0})
                     .contiguous()
                     .view(tensors.weight.sizes());
  if (bias_.defined()) total.bias = SumOfShares(bias_).narrow(0, 0, outputs).contiguous();
  total.norm_weight = norm_total(norm_weight_, tensors.norm_weight);
  total.norm_bias = norm_total(norm_bias_, tensors.norm_bias);
  return total;
}

}  // namespace kibitz::policy
