#include "students/policy/net/loss.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "learn/parallel.h"
#include "learn/precision.h"
#include "nn/kernels/lanes.h"

namespace kibitz::policy {
namespace {

using torch::Tensor;

template <typename T>
Tensor Tensored(std::vector<T>&& numbers, std::vector<int64_t> shape, torch::ScalarType type) {
  auto owner = std::make_shared<std::vector<T>>(std::move(numbers));
  return torch::from_blob(
      owner->data(), shape, [owner](void*) {}, type);
}

}  // namespace

TargetBatch ToTensors(Batch&& batch) {
  const int64_t rows = batch.rows;
  const auto entries = static_cast<int64_t>(batch.label_rows.size());
  TargetBatch targets;
  const auto inputs = static_cast<int64_t>(batch.inputs.size()) / rows;
  targets.inputs = Tensored(std::move(batch.inputs), {rows, inputs}, torch::kFloat32);
  targets.rows = Tensored(std::move(batch.label_rows), {entries}, torch::kInt64);
  targets.moves = Tensored(std::move(batch.label_moves), {entries}, torch::kInt64);
  targets.shares = Tensored(std::move(batch.label_shares), {entries}, torch::kFloat32);
  targets.best = Tensored(std::move(batch.best), {rows}, torch::kInt64);
  return targets;
}

TargetBatch TargetBatch::To(torch::Device device) const {
  return {inputs.to(device), rows.to(device), moves.to(device), shares.to(device), best.to(device)};
}

Tensor DenseLabels(const TargetBatch& batch, int64_t moves) {
  Tensor labels = torch::zeros({batch.best.size(0), moves});
  labels.index_put_({batch.rows, batch.moves}, batch.shares);
  return labels;
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kRowsOfTask = 16;

// log(sum(e^x)) of a row.
float LogSumExp(const float* x, int64_t count) {
  nn::Lanes largest = nn::Spread(x[0]);
  int64_t i = 0;
  for (; i + nn::kLanes <= count; i += nn::kLanes) largest = nn::Larger(largest, nn::Load(x + i));
  float top = nn::Largest(largest)[0];
  for (; i < count; ++i) top = std::max(top, x[i]);
  nn::Lanes sums{};
  for (i = 0; i + nn::kLanes <= count; i += nn::kLanes) sums += nn::Exp(nn::Load(x + i) - top);
  float sum = nn::Sum(sums);
  for (; i < count; ++i) sum += std::exp(x[i] - top);
  return top + std::log(sum);
}

// to = e^(x - shift) * factor
void ScaledExp(const float* x, int64_t count, float shift, float factor, float* to) {
  int64_t i = 0;
  for (; i + nn::kLanes <= count; i += nn::kLanes) {
    nn::Store(to + i, nn::Exp(nn::Load(x + i) - shift) * factor);
  }
  for (; i < count; ++i) to[i] = std::exp(x[i] - shift) * factor;
}

// SoftLoss without a tensor of logarithms; its gradient is the softmax times the sum of a row's
// shares, less the shares.
struct SoftLossFunction : torch::autograd::Function<SoftLossFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& logits_in, const Tensor& rows,
                        const Tensor& moves, const Tensor& shares) {
    const Tensor logits = logits_in.contiguous();
    const int64_t width = logits.size(1);
    const Tensor log_sums = torch::empty({logits.size(0)});
    learn::ForEachPiece(logits.size(0), kRowsOfTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        log_sums.data_ptr<float>()[row] = LogSumExp(logits.data_ptr<float>() + row * width, width);
      }
    });
    double sum = 0;
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const int64_t row = rows.data_ptr<int64_t>()[i];
      const float logit = logits.data_ptr<float>()[row * width + moves.data_ptr<int64_t>()[i]];
      sum += shares.data_ptr<float>()[i] * (log_sums.data_ptr<float>()[row] - logit);
    }
    ctx->save_for_backward({logits, rows, moves, shares, log_sums});
    return torch::tensor(static_cast<float>(sum / static_cast<double>(logits.size(0))));
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor& logits = saved[0];
    const int64_t width = logits.size(1);
    const auto* rows = saved[1].data_ptr<int64_t>();
    const auto* moves = saved[2].data_ptr<int64_t>();
    const auto* shares = saved[3].data_ptr<float>();
    const float factor = gradients[0].item<float>() / static_cast<float>(logits.size(0));
    std::vector<float> totals(static_cast<size_t>(logits.size(0)));
    for (int64_t i = 0; i < saved[1].size(0); ++i)
      totals[static_cast<size_t>(rows[i])] += shares[i];
    Tensor result = torch::empty_like(logits);
    learn::ForEachPiece(logits.size(0), kRowsOfTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        ScaledExp(logits.data_ptr<float>() + row * width, width, saved[4].data_ptr<float>()[row],
                  factor * totals[static_cast<size_t>(row)],
                  result.data_ptr<float>() + row * width);
      }
    });
    for (int64_t i = 0; i < saved[1].size(0); ++i) {
      result.data_ptr<float>()[rows[i] * width + moves[i]] -= factor * shares[i];
    }
    return {result, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor SoftLoss(const Tensor& logits, const TargetBatch& batch) {
  if (learn::CurrentPrecision() == learn::Precision::kBfloat16) {
    return SoftLossFunction::apply(logits, batch.rows, batch.moves, batch.shares);
  }
  const Tensor log_p = logits.log_softmax(1).index({batch.rows, batch.moves});  // (E)
  return -(log_p * batch.shares).sum() / logits.size(0);
}

Tensor DenseSoftLoss(const Tensor& logits, const Tensor& labels) {
  return -(labels * logits.log_softmax(1)).sum(1).mean();
}

Hits CountHits(const Tensor& logits_in, const Tensor& best) {
  const torch::NoGradGuard no_grad;
  if (!logits_in.is_cpu()) {
    const Tensor own = logits_in.gather(1, best.unsqueeze(1));  // (B, 1)
    const Tensor above = logits_in.gt(own).sum(1);              // (B): moves before it.
    return {above.eq(0).sum().item<double>(), above.lt(5).sum().item<double>()};
  }
  const Tensor logits = logits_in.contiguous();
  std::vector<int> above(static_cast<size_t>(logits.size(0)));
  learn::ForEachPiece(logits.size(0), kRowsOfTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* x = logits.data_ptr<float>() + row * logits.size(1);
      const float own = x[best.data_ptr<int64_t>()[row]];
      int count = 0;
      for (int64_t i = 0; i < logits.size(1); ++i) count += x[i] > own ? 1 : 0;
      above[static_cast<size_t>(row)] = count;
    }
  });
  Hits hits;
  for (int count : above) {
    hits.first += count == 0;
    hits.five += count < 5;
  }
  return hits;
}

}  // namespace kibitz::policy
