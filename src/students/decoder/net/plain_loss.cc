// The loss as the documents write it: dense tensors, every head at every position.
#include <vector>

#include "learn/buckets.h"
#include "students/decoder/net/terms.h"

namespace kibitz::decoder {
namespace {

// Letters: B sequences, S padded length, D width.
struct Inputs {
  torch::Tensor ids;            // (B, S)
  torch::Tensor block_id;       // (B, S)
  torch::Tensor board_targets;  // (B, S)
  torch::Tensor board_mask;     // (B, S) bool, as all masks and positions.
  torch::Tensor move_targets;   // (B, S)
  torch::Tensor move_mask;      // (B, S)
  torch::Tensor thinking_mask;  // (B, S)
  torch::Tensor wl_positions;   // (B, S)
  torch::Tensor d_positions;    // (B, S)
  torch::Tensor wl_targets;     // (B, S)
  torch::Tensor d_targets;      // (B, S)
  torch::Tensor valid;          // (B, S)
};

// Values at their own tokens. Not the padded batch's: as in the reference, where a board is left
// out the copy for the next move lies on the d token.
struct DenseValues {
  explicit DenseValues(size_t cells) : wl(cells), d(cells), valid(cells) {}
  std::vector<float> wl;
  std::vector<float> d;
  std::vector<uint8_t> valid;  // At both.
};
DenseValues SpreadValues(const Batch& batch, int32_t padded_length) {
  const auto length = static_cast<size_t>(padded_length);
  DenseValues dense(static_cast<size_t>(batch.sequences()) * length);
  size_t row = 0;
  for (const ValueTarget& value : batch.values) {
    while (value.wl_position >= batch.starts[row + 1]) ++row;
    const size_t cell = row * length + static_cast<size_t>(value.wl_position - batch.starts[row]);
    dense.wl[cell] = value.wl;
    dense.d[cell + 1] = value.d;
    dense.valid[cell] = dense.valid[cell + 1] = value.valid;
  }
  return dense;
}

Inputs ToTensors(const Batch& batch, int32_t padded_length, torch::Device device) {
  const PaddedBatch padded = Pad(batch, padded_length);
  const DenseValues values = SpreadValues(batch, padded_length);
  const std::vector<int64_t> shape = {padded.rows, padded.max_seq_len};
  const auto copy = [&](const auto& values, torch::ScalarType type) {
    // from_blob takes no const pointer but does not write.
    auto* data = const_cast<void*>(static_cast<const void*>(values.data()));
    return torch::from_blob(data, shape, type).clone().to(device);
  };
  const auto numbers = [&](const std::vector<int64_t>& v) { return copy(v, torch::kInt64); };
  const auto mask = [&](const std::vector<uint8_t>& v) {
    return copy(v, torch::kUInt8).to(torch::kBool);
  };
  const auto floats = [&](const std::vector<float>& v) { return copy(v, torch::kFloat32); };
  return {.ids = numbers(padded.input_ids),
          .block_id = numbers(padded.block_id),
          .board_targets = numbers(padded.board_target_ids),
          .board_mask = mask(padded.board_mask),
          .move_targets = numbers(padded.move_target_ids),
          .move_mask = mask(padded.move_mask),
          .thinking_mask = mask(padded.thinking_move_mask),
          .wl_positions = mask(padded.wl_positions),
          .d_positions = mask(padded.d_positions),
          .wl_targets = floats(values.wl),
          .d_targets = floats(values.d),
          .valid = mask(values.valid)};
}

// Scores every position, then keeps those of the mask, row by row.
HeadTerms ScoreEverywhere(const torch::Tensor& logits,  // (B, S, vocabulary)
                          const torch::Tensor& targets, const torch::Tensor& mask) {
  const auto known = targets.clamp_min(0).flatten();  // (B * S) Ignored ones as 0.
  const HeadTerms dense = ScoreChoice(logits.flatten(0, 1), known);
  const auto kept = mask.flatten();  // (B * S)
  return {dense.loss.index({kept}), dense.hit.index({kept})};
}

}  // namespace

LossAndMetrics PlainLoss(DecoderNet& net, const Batch& batch, const LossOptions& options,
                         int32_t padded_length) {
  const auto device = net->wl_bucket_centers.device();
  const Inputs in = ToTensors(batch, padded_length, device);
  const ValueInputs values = {
      .wl_values = learn::NearestCentre(in.wl_targets, net->wl_bucket_centers),
      .d_values = learn::NearestCentre(in.d_targets, net->d_bucket_centers),
      .wl_positions = in.wl_positions,
      .d_positions = in.d_positions};
  const auto causal_bias = CausalBias(padded_length).to(device);              // (1, 1, S, S)
  const auto causal = net->forward(in.ids, causal_bias, values);              // (B, S, D)
  const auto prefix = net->forward(in.ids, PrefixBias(in.block_id), values);  // (B, S, D)

  Terms terms;
  terms.board = ScoreEverywhere(net->board_head(causal), in.board_targets, in.board_mask);
  terms.final_move = ScoreEverywhere(net->policy_head(prefix), in.move_targets, in.move_mask);
  if (options.phase == Phase::kFinetune) {
    terms.thinking_move =
        ScoreEverywhere(net->thinking_policy_head(prefix), in.move_targets, in.thinking_mask);
  }
  // The move predicts wl, one position before the wl token; the wl token predicts d.
  const auto scored = in.wl_positions & in.valid;   // (B, S)
  const auto at_move = torch::roll(scored, -1, 1);  // (B, S)
  const auto at_d = torch::roll(scored, 1, 1);      // (B, S)
  terms.wl = ScoreValue(net->wl_head(prefix.index({at_move})), in.wl_targets.index({scored}),
                        net->wl_bucket_centers);
  terms.d = ScoreValue(net->d_head(prefix.index({scored})), in.d_targets.index({at_d}),
                       net->d_bucket_centers);
  return Combine(batch, terms, options);
}

}  // namespace kibitz::decoder
