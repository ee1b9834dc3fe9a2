#include "students/decoder/net/terms.h"

#include <vector>

#include "learn/buckets.h"

namespace kibitz::decoder {
namespace {

std::vector<float> Floats(const torch::Tensor& tensor) {
  const auto flat = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  const auto* data = flat.data_ptr<float>();
  return {data, data + flat.numel()};
}

std::vector<uint8_t> Flags(const torch::Tensor& tensor) {
  const auto flat = tensor.detach().to(torch::kCPU, torch::kUInt8).contiguous();
  const auto* data = flat.data_ptr<uint8_t>();
  return {data, data + flat.numel()};
}

// The moves of both heads in the order of the batch.
void MergeMoves(const Batch& batch, const Terms& terms, Scores& scores) {
  const auto final_loss = Floats(terms.final_move.loss);
  const auto final_hit = Flags(terms.final_move.hit);
  std::vector<float> thinking_loss;
  std::vector<uint8_t> thinking_hit;
  if (terms.thinking_move.loss.defined()) {
    thinking_loss = Floats(terms.thinking_move.loss);
    thinking_hit = Flags(terms.thinking_move.hit);
  }
  size_t finals = 0;
  size_t thoughts = 0;
  for (const MoveTarget& move : batch.moves) {
    size_t& next = move.thinking ? thoughts : finals;
    scores.move_loss.push_back((move.thinking ? thinking_loss : final_loss).at(next));
    scores.move_hit.push_back((move.thinking ? thinking_hit : final_hit).at(next));
    ++next;
  }
}

torch::Tensor MeanOf(const torch::Tensor& loss) {
  return loss.sum() / (static_cast<double>(loss.numel()) + 1e-8);
}

}  // namespace

HeadTerms ScoreChoice(const torch::Tensor& logits, const torch::Tensor& targets) {
  const auto loss = torch::nll_loss(torch::log_softmax(logits, -1), targets, {},
                                    at::Reduction::None);  // (N)
  return {loss, logits.detach().argmax(-1) == targets};
}

ValueTerms ScoreValue(const torch::Tensor& logits, const torch::Tensor& targets,
                      const torch::Tensor& centres) {
  const auto mean = learn::ExpectedCentre(logits.detach(), centres);  // (N)
  return {learn::SoftBucketLoss(logits, targets, centres), (mean - targets).abs()};
}

LossAndMetrics Combine(const Batch& batch, const Terms& terms, const LossOptions& options) {
  const LossWeights& weights = options.weights;
  auto loss = weights.final_move * MeanOf(terms.final_move.loss) +
              weights.board * MeanOf(terms.board.loss) + weights.wl * MeanOf(terms.wl.loss) +
              weights.d * MeanOf(terms.d.loss);
  if (options.phase == Phase::kFinetune) {
    loss = loss + weights.thinking_move * MeanOf(terms.thinking_move.loss);
  }
  Scores scores;
  scores.board_loss = Floats(terms.board.loss);
  scores.board_hit = Flags(terms.board.hit);
  scores.wl_loss = Floats(terms.wl.loss);
  scores.d_loss = Floats(terms.d.loss);
  scores.wl_error = Floats(terms.wl.error);
  scores.d_error = Floats(terms.d.error);
  MergeMoves(batch, terms, scores);
  LossAndMetrics result{loss, CountMetrics(batch, scores)};
  result.metrics.total_loss.Add(loss.item<double>());
  return result;
}

}  // namespace kibitz::decoder
