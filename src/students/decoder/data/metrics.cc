#include "students/decoder/data/metrics.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/check.h"

namespace kibitz::decoder {
namespace {

struct Entry {
  std::string_view name;
  Mean Metrics::*member;
  bool thinking = false;  // Finetuning only.
};

constexpr Entry kEntries[] = {
    {"total_loss", &Metrics::total_loss},
    {"final_move_loss", &Metrics::final_move_loss},
    {"thinking_move_loss", &Metrics::thinking_move_loss, true},
    {"board_loss", &Metrics::board_loss},
    {"wl_loss", &Metrics::wl_loss},
    {"d_loss", &Metrics::d_loss},
    {"instinct_loss", &Metrics::instinct_loss, true},
    {"piece_move_loss", &Metrics::piece_move_loss, true},
    {"threat_loss", &Metrics::threat_loss, true},
    {"branch_wl_loss", &Metrics::branch_wl_loss, true},
    {"early_end_loss", &Metrics::early_end_loss, true},
    {"legal_loss", &Metrics::legal_loss, true},
    {"final_move_acc", &Metrics::final_move_acc},
    {"thinking_move_acc", &Metrics::thinking_move_acc, true},
    {"instinct_acc", &Metrics::instinct_acc, true},
    {"piece_move_acc", &Metrics::piece_move_acc, true},
    {"threat_acc", &Metrics::threat_acc, true},
    {"early_end_acc", &Metrics::early_end_acc, true},
    {"legal_acc", &Metrics::legal_acc, true},
    {"board_acc", &Metrics::board_acc},
    {"board_total_acc", &Metrics::board_total_acc},
    {"board_total_acc_real_blocks", &Metrics::board_total_acc_real_blocks},
    {"board_square_acc", &Metrics::board_square_acc},
    {"board_castling_acc", &Metrics::board_castling_acc},
    {"board_stm_acc", &Metrics::board_stm_acc},
    {"end_var_acc", &Metrics::end_var_acc, true},
    {"end_think_acc", &Metrics::end_think_acc, true},
    {"continue_var_acc", &Metrics::continue_var_acc, true},
    {"new_variation_acc", &Metrics::new_variation_acc, true},
    {"final_move_acc_reordered", &Metrics::final_move_acc_reordered, true},
    {"wl_mae", &Metrics::wl_mae},
    {"d_mae", &Metrics::d_mae},
    {"branch_wl_mae", &Metrics::branch_wl_mae, true},
    {"batch_thinking_samples", &Metrics::batch_thinking_samples, true},
    {"batch_normal_samples", &Metrics::batch_normal_samples, true},
    {"n_reordered_samples", &Metrics::n_reordered_samples, true},
};
static_assert(sizeof(Metrics) == std::size(kEntries) * sizeof(Mean));

// Offsets in a board of the tokens that announce the first square, the castling rights and the
// side to move: each token is predicted from the one before it.
constexpr int32_t kBeforeSquares = 0;
constexpr int32_t kBeforeEndPos = 64;
constexpr int32_t kBeforeCastling = 65;
constexpr int32_t kBeforeSideToMove = 66;

// Counts the hits of one block, token by token.
struct BlockCount {
  int scored = 0;
  int squares = 0;
  bool all_hit = true;
  bool squares_hit = true;

  void Add(int32_t offset, bool hit, Metrics& metrics) {
    ++scored;
    all_hit &= hit;
    if (offset >= kBeforeSquares && offset < kBeforeEndPos) {
      ++squares;
      squares_hit &= hit;
    }
    if (offset == kBeforeCastling) metrics.board_castling_acc.Add(hit);
    if (offset == kBeforeSideToMove) metrics.board_stm_acc.Add(hit);
  }
  void Finish(Metrics& metrics) const {
    if (scored > 0) metrics.board_total_acc.Add(all_hit);
    if (scored <= 1) return;
    metrics.board_total_acc_real_blocks.Add(all_hit);
    if (squares > 0) metrics.board_square_acc.Add(squares_hit);
  }
};

void CountBoards(const Batch& batch, const Scores& scores, Metrics& metrics) {
  const struct {
    int target;
    Mean& mean;
  } signals[] = {
      {BoardIndex(kEndVar), metrics.end_var_acc},
      {BoardIndex(kEndThink), metrics.end_think_acc},
      {BoardIndex(kContinueVar), metrics.continue_var_acc},
      {BoardIndex(kNewVariation), metrics.new_variation_acc},
  };
  size_t term = 0;
  auto block = batch.blocks.begin();
  BlockCount count;
  for (int32_t position = 0; position < batch.tokens(); ++position) {
    if (block != batch.blocks.end() && position == block->end) {
      count.Finish(metrics);
      count = {};
      ++block;
    }
    const int target = batch.board_targets[static_cast<size_t>(position)];
    if (target == kIgnore) continue;
    const bool hit = scores.board_hit.at(term) != 0;
    metrics.board_loss.Add(scores.board_loss.at(term++));
    metrics.board_acc.Add(hit);
    for (const auto& signal : signals) {
      if (target == signal.target) signal.mean.Add(hit);
    }
    if (block != batch.blocks.end() && position >= block->begin) {
      count.Add(position - block->begin, hit, metrics);
    } else {
      metrics.board_total_acc.Add(hit);
    }
  }
  count.Finish(metrics);
  CHECK(term == scores.board_hit.size());
}

// The loss and the accuracy of a kind of move.
std::pair<Mean*, Mean*> MeansOf(MoveKind kind, Metrics& metrics) {
  switch (kind) {
    case MoveKind::kThinking:
      return {&metrics.thinking_move_loss, &metrics.thinking_move_acc};
    case MoveKind::kInstinct:
      return {&metrics.instinct_loss, &metrics.instinct_acc};
    case MoveKind::kPiece:
      return {&metrics.piece_move_loss, &metrics.piece_move_acc};
    case MoveKind::kThreat:
      return {&metrics.threat_loss, &metrics.threat_acc};
    case MoveKind::kFinal:
      break;
  }
  return {&metrics.final_move_loss, &metrics.final_move_acc};
}

void CountMoves(const Batch& batch, const Scores& scores, Metrics& metrics) {
  int32_t sequence = 0;
  for (size_t i = 0; i < batch.moves.size(); ++i) {
    const MoveTarget& move = batch.moves[i];
    while (move.position >= batch.starts[static_cast<size_t>(sequence) + 1]) ++sequence;
    const bool hit = scores.move_hit.at(i) != 0;
    const auto [loss, acc] = MeansOf(move.kind, metrics);
    loss->Add(scores.move_loss.at(i));
    acc->Add(hit);
    if (move.kind == MoveKind::kFinal &&
        batch.first_is_not_best[static_cast<size_t>(sequence)] != 0) {
      metrics.final_move_acc_reordered.Add(hit);
    }
  }
}

}  // namespace

Metrics& Metrics::operator+=(const Metrics& other) {
  for (const Entry& entry : kEntries) {
    (this->*entry.member).sum += (other.*entry.member).sum;
    (this->*entry.member).count += (other.*entry.member).count;
  }
  return *this;
}

std::vector<std::pair<std::string, Mean>> NamedMeans(const Metrics& metrics, Phase phase) {
  constexpr std::string_view kFinal = "final_";
  std::vector<std::pair<std::string, Mean>> means;
  for (const Entry& entry : kEntries) {
    const Mean& mean = metrics.*entry.member;
    if (mean.count == 0 || (entry.thinking && phase == Phase::kPretrain)) continue;
    std::string_view name = entry.name;
    if (phase == Phase::kPretrain && name.starts_with(kFinal)) name.remove_prefix(kFinal.size());
    means.emplace_back(name, mean);
  }
  return means;
}

std::vector<std::pair<std::string, double>> NamedValues(const Metrics& metrics, Phase phase) {
  std::vector<std::pair<std::string, double>> values;
  for (const auto& [name, mean] : NamedMeans(metrics, phase)) {
    values.emplace_back(name, mean.Value());
  }
  return values;
}

Metrics CountMetrics(const Batch& batch, const Scores& scores) {
  Metrics metrics;
  CountBoards(batch, scores, metrics);
  CountMoves(batch, scores, metrics);
  for (size_t i = 0; i < scores.wl_loss.size(); ++i) {
    metrics.wl_loss.Add(scores.wl_loss[i]);
    metrics.d_loss.Add(scores.d_loss.at(i));
    metrics.wl_mae.Add(scores.wl_error.at(i));
    metrics.d_mae.Add(scores.d_error.at(i));
  }
  for (size_t i = 0; i < scores.branch_loss.size(); ++i) {
    metrics.branch_wl_loss.Add(scores.branch_loss[i]);
    metrics.branch_wl_mae.Add(scores.branch_error.at(i));
  }
  for (size_t i = 0; i < scores.early_end_loss.size(); ++i) {
    metrics.early_end_loss.Add(scores.early_end_loss[i]);
    metrics.early_end_acc.Add(scores.early_end_hit.at(i));
  }
  for (size_t i = 0; i < scores.legal_loss.size(); ++i) {
    metrics.legal_loss.Add(scores.legal_loss[i]);
    metrics.legal_acc.Add(scores.legal_hit.at(i));
  }
  const auto thinking =
      std::ranges::count_if(batch.thinking, [](uint8_t flag) { return flag != 0; });
  const auto reordered =
      std::ranges::count_if(batch.first_is_not_best, [](uint8_t flag) { return flag != 0; });
  metrics.batch_thinking_samples.Add(static_cast<double>(thinking));
  metrics.batch_normal_samples.Add(static_cast<double>(batch.sequences() - thinking));
  metrics.n_reordered_samples.Add(static_cast<double>(reordered));
  return metrics;
}

}  // namespace kibitz::decoder
