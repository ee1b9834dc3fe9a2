#include "students/policy/net/loss.h"

#include <memory>
#include <utility>

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

Tensor SoftLoss(const Tensor& logits, const TargetBatch& batch) {
  const Tensor log_p = logits.log_softmax(1).index({batch.rows, batch.moves});  // (E)
  return -(log_p * batch.shares).sum() / logits.size(0);
}

Tensor DenseSoftLoss(const Tensor& logits, const Tensor& labels) {
  return -(labels * logits.log_softmax(1)).sum(1).mean();
}

Hits CountHits(const Tensor& logits, const Tensor& best) {
  const torch::NoGradGuard no_grad;
  const Tensor own = logits.gather(1, best.unsqueeze(1));  // (B, 1)
  const Tensor above = logits.gt(own).sum(1);              // (B): moves before it.
  return {above.eq(0).sum().item<double>(), above.lt(5).sum().item<double>()};
}

}  // namespace kibitz::policy
