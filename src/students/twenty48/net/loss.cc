#include "students/twenty48/net/loss.h"

#include "students/twenty48/net/encoder.h"

namespace kibitz::twenty48 {
namespace {

using torch::Tensor;

constexpr double kMasked = -1e9;    // Added to the logits of illegal moves.
constexpr double kMinShare = 1e-8;  // Min of a target inside a logarithm.

Tensor Masked(const Tensor& logits, const Tensor& legal) {
  return logits + legal.logical_not().to(logits.scalar_type()) * kMasked;
}

// -log p of the column named by `index`, along the last axis.
Tensor CrossEntropy(const Tensor& logits, const Tensor& index) {
  return -logits.log_softmax(-1).gather(-1, index.unsqueeze(-1)).squeeze(-1);
}

// The mean of `values` where `where` is true, along the first axis; 0 where it never is. With
// `count`, the sum divided by it.
Tensor MeanWhere(const Tensor& values, const Tensor& where, const Tensor& count = {}) {
  const Tensor weights = where.to(values.scalar_type());
  const Tensor divisor = count.defined() ? count.to(values.options()) : weights.sum(0);
  return (values * weights).sum(0) / divisor.clamp_min(1);
}

// The mean over the rows of all ranks.
Tensor MeanOf(const Tensor& values, const TargetRows& rows) {
  return rows.all ? values.sum() / rows.all->rows : values.mean();
}

// (4), or not there.
Tensor LegalCounts(const TargetRows& rows) {
  if (!rows.all) return {};
  return torch::tensor(std::vector<double>(rows.all->legal.begin(), rows.all->legal.end()));
}

}  // namespace

TargetRows ToTensors(const Batch& batch, const TargetOptions& target, const Binner& binner) {
  const int64_t count = batch.rows();
  TargetRows rows;
  rows.tokens = TokenTensor(batch.tokens);
  rows.legal = torch::empty({count, 4}, torch::kBool);
  rows.moves = torch::empty({count}, torch::kInt64);
  const bool binned = target.mode == TargetMode::kBinnedEv;
  const bool soft = target.mode == TargetMode::kTsadSoft;
  if (binned) rows.bins = torch::empty({count, 4}, torch::kInt64);
  if (soft) rows.soft = torch::empty({count, 4}, torch::kFloat32);
  for (int64_t row = 0; row < count; ++row) {
    const Judged& judged = batch.judged[static_cast<size_t>(row)];
    rows.moves.data_ptr<int64_t>()[row] = judged.move;
    std::array<float, 4> values{};
    if (binned) values = Normalised(judged);
    if (soft) values = SoftTargets(judged, target);
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t at = 4 * row + i;
      rows.legal.data_ptr<bool>()[at] = (judged.legal >> i & 1U) != 0;
      if (binned) rows.bins.data_ptr<int64_t>()[at] = binner.BinOf(values[static_cast<size_t>(i)]);
      if (soft) rows.soft.data_ptr<float>()[at] = values[static_cast<size_t>(i)];
    }
  }
  return rows;
}

RowCounts CountRows(const Batch& batch) {
  RowCounts counts;
  for (const Judged& judged : batch.judged) {
    const auto legal = [&](int move) { return (judged.legal >> move & 1U) != 0; };
    for (int move = 0; move < 4; ++move) counts.legal[static_cast<size_t>(move)] += legal(move);
    counts.sound += legal(judged.move);
    ++counts.rows;
  }
  return counts;
}

TargetRows TargetRows::To(torch::Device device) const {
  const auto move = [&](const Tensor& tensor) {
    return tensor.defined() ? tensor.to(device) : tensor;
  };
  return {move(tokens), move(legal), move(moves), move(bins), move(soft), all};
}

Losses BinnedLoss(const Tensor& logits, const TargetRows& rows) {
  Losses losses;
  losses.head_losses =
      MeanWhere(CrossEntropy(logits, rows.bins), rows.legal, LegalCounts(rows));  // (4)
  losses.total = losses.head_losses.sum();
  return losses;
}

Losses HardMoveLoss(const Tensor& logits, const TargetRows& rows, bool mask) {
  const Tensor each = CrossEntropy(mask ? Masked(logits, rows.legal) : logits, rows.moves);  // (B)
  const Tensor sound = rows.legal.gather(1, rows.moves.unsqueeze(1)).squeeze(1);             // (B)
  const Tensor made = torch::one_hot(rows.moves, 4).to(torch::kBool);  // (B, 4)
  Losses losses;
  losses.total = MeanWhere(each, sound, rows.all ? torch::tensor(rows.all->sound) : Tensor());
  losses.head_losses = MeanWhere(each.unsqueeze(1).expand({-1, 4}), made);  // (4)
  return losses;
}

Losses TsadLoss(const Tensor& logits, const TargetRows& rows, const TargetOptions& options) {
  const Tensor log_student = Masked(logits, rows.legal).log_softmax(1);  // (B, 4)
  const Tensor& teacher = rows.soft;
  Losses losses;
  if (options.tsad_kl == KlDirection::kTeacherStudent) {
    losses.kl = (torch::xlogy(teacher, teacher) - teacher * log_student).sum(1);
  } else {
    const Tensor log_teacher = teacher.clamp_min(kMinShare).log();
    const Tensor each = log_student.exp() * (log_student - log_teacher);
    losses.kl = each.masked_fill(rows.legal.logical_not(), 0).sum(1);
  }
  losses.kd = MeanOf(losses.kl, rows);
  losses.total = losses.kd;
  if (options.tsad_aux_ce_weight > 0) {
    losses.aux = MeanOf(CrossEntropy(logits, rows.moves), rows);
    losses.total = losses.total + options.tsad_aux_ce_weight * losses.aux;
  }
  return losses;
}

Losses LossOf(const Tensor& logits, const TargetRows& rows, const TargetOptions& options) {
  switch (options.mode) {
    case TargetMode::kBinnedEv:
      return BinnedLoss(logits, rows);
    case TargetMode::kHardMove:
      return HardMoveLoss(logits, rows, options.mask_illegal);
    case TargetMode::kTsadSoft:
      return TsadLoss(logits, rows, options);
  }
  return {};
}

Tensor Played(const Tensor& logits, const Tensor& legal) {
  const Tensor scores =
      logits.dim() == 2 ? logits : logits.log_softmax(2).select(2, logits.size(2) - 1);  // (B, 4)
  return Masked(scores, legal).argmax(1);
}

}  // namespace kibitz::twenty48
