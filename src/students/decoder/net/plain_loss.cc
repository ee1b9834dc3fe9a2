// The loss as the documents write it: dense tensors, every head at every position.
#include <algorithm>
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
          .wl_positions = mask(padded.wl_positions),
          .d_positions = mask(padded.d_positions),
          .wl_targets = floats(values.wl),
          .d_targets = floats(values.d),
          .valid = mask(values.valid)};
}

// The row of a packed position among all padded ones, B * S.
int64_t PaddedRow(const Batch& batch, int64_t position, int64_t padded_length) {
  const auto next = std::ranges::upper_bound(batch.starts, position);
  const int64_t sequence = next - batch.starts.begin() - 1;
  return sequence * padded_length + position - batch.starts[static_cast<size_t>(sequence)];
}

// What the heads of moves read: the prefix pass, (B, S, D), and what its values showed.
struct PrefixPass {
  const Batch& batch;
  const ShownValues& shown;
  torch::Tensor hidden;
};

// Adds the votes of variations. logits: (N, M).
torch::Tensor WithVotes(const DecoderNet& net, const torch::Tensor& logits, const PrefixPass& pass,
                        const MoveQuestions& questions) {
  if (!net->config.line_votes || questions.votes.empty()) return logits;
  const auto flat = pass.hidden.flatten(0, 1);
  std::vector<torch::Tensor> ends;
  for (const LineVote& line : questions.votes) {
    ends.push_back(flat[PaddedRow(pass.batch, line.end, pass.hidden.size(1))]);
  }
  auto line_vote = net->line_vote;
  auto value_vote = net->value_vote;
  auto compare_vote = net->compare_vote;
  auto votes = line_vote(torch::stack(ends));  // (votes, 1)
  if (value_vote) {
    const auto values = ValuesOfVotes(net, pass.batch, pass.shown, questions);
    votes = votes + value_vote(values);
    if (compare_vote) {
      votes = votes + compare_vote(ComparisonsOfVotes(values, logits, questions));
    }
  }
  return AddVotes(logits, votes, questions);
}

// The logits of moves whose hidden states are `at`, (N, D), with what the squares of their boards
// say.
torch::Tensor MoveLogits(const DecoderNet& net, torch::nn::Linear& head, const torch::Tensor& at,
                         const PrefixPass& pass, const MoveQuestions& questions) {
  const Batch& batch = pass.batch;
  const torch::Tensor& prefix = pass.hidden;
  auto logits = head(at);  // (N, M)
  const auto flat = prefix.flatten(0, 1);
  const bool compared = net->config.compared_votes;
  if (!compared) logits = WithVotes(net, logits, pass, questions);
  if (!net->config.square_policy) {
    return compared ? WithVotes(net, logits, pass, questions) : logits;
  }
  const auto tokens = SquareTokens();
  std::vector<torch::Tensor> rows;
  for (size_t i = 0; i < questions.boards.size(); ++i) {
    if (questions.boards[i] < 0) {
      rows.push_back(logits[static_cast<int64_t>(i)]);
      continue;
    }
    const int64_t begin = PaddedRow(batch, questions.boards[i], prefix.size(1));
    const auto hidden = [&](const std::vector<int32_t>& list) {
      const auto places = torch::tensor(list, torch::kInt64).to(prefix.device()) + begin;
      return flat.index_select(0, places);  // (M, D)
    };
    const auto squares = hidden(tokens->first) + hidden(tokens->second);
    rows.push_back(logits[static_cast<int64_t>(i)] + (squares * head->weight).sum(-1));
  }
  if (!rows.empty()) logits = torch::stack(rows);
  return compared ? WithVotes(net, logits, pass, questions) : logits;
}

// The hidden states of positions in the pack: (N, D).
torch::Tensor HiddenAt(const PrefixPass& pass, const std::vector<int64_t>& positions) {
  std::vector<int64_t> rows;
  for (int64_t position : positions) {
    rows.push_back(PaddedRow(pass.batch, position, pass.hidden.size(1)));
  }
  const auto chosen = torch::tensor(rows, torch::kInt64).to(pass.hidden.device());
  return pass.hidden.flatten(0, 1).index_select(0, chosen);
}

// The moves of a kind, by the head that predicts them.
HeadTerms ScoreKind(const DecoderNet& net, torch::nn::Linear& head, const PrefixPass& pass,
                    MoveKind kind) {
  const MoveQuestions questions = MovesOf(pass.batch, kind);
  const bool at_root = net->config.compared_votes && kind == MoveKind::kFinal;
  const auto at = HiddenAt(pass, at_root ? RootTokens(questions) : questions.positions);  // (N, D)
  return ScoreMoves(MoveLogits(net, head, at, pass, questions), questions);
}

// The wl of moves whose hidden states are `at`, (N, D), with what the squares of their boards say.
torch::Tensor WlLogits(DecoderNet& net, const torch::Tensor& at,
                       const torch::Tensor& prefix,  // (B, S, D)
                       const Batch& batch, const SquarePositions& squares) {
  ValueHead& head = net->wl_head;
  if (!net->config.square_values) return head(at);
  const auto hidden = [&](const std::vector<int64_t>& positions) {
    std::vector<torch::Tensor> rows;
    for (const int64_t position : positions) {
      rows.push_back(position < 0
                         ? torch::zeros_like(prefix[0][0])
                         : prefix.flatten(0, 1)[PaddedRow(batch, position, prefix.size(1))]);
    }
    return rows.empty() ? torch::zeros_like(at) : torch::stack(rows);  // (N, D)
  };
  const auto first = head->mlp[0]->as<torch::nn::Linear>()->forward(at) +
                     head->from(hidden(squares.from)) +
                     head->to(hidden(squares.to));  // (N, hidden)
  return head->mlp[2]->as<torch::nn::Linear>()->forward(torch::mish(first));
}

ValueInputs InputsOf(DecoderNet& net, const Batch& batch, const Inputs& in,
                     const ShownValues& shown) {
  auto wl = torch::zeros_like(in.wl_targets).cpu();  // (B, S)
  auto d = torch::zeros_like(in.d_targets).cpu();    // (B, S)
  for (size_t i = 0; i < batch.values.size(); ++i) {
    const int64_t row = PaddedRow(batch, batch.values[i].wl_position, in.ids.size(1));
    wl.data_ptr<float>()[row] = shown.wl[i];
    d.data_ptr<float>()[row + 1] = shown.d[i];
  }
  const auto device = in.ids.device();
  return {.wl_values = learn::NearestCentre(wl.to(device), net->wl_bucket_centers),
          .d_values = learn::NearestCentre(d.to(device), net->d_bucket_centers),
          .wl_positions = in.wl_positions,
          .d_positions = in.d_positions};
}

// What the value tokens show: the targets, or the network's own values.
ShownValues Shown(DecoderNet& net, const Batch& batch, const Inputs& in, int passes) {
  ShownValues shown = TargetsAsShown(batch);
  if (std::ranges::find(batch.own_values, 1) == batch.own_values.end()) return shown;
  const torch::NoGradGuard no_grad;
  const auto at_move = torch::roll(in.wl_positions, -1, 1);  // (B, S)
  for (int pass = 0; pass < passes; ++pass) {
    const auto prefix = net->forward(in.ids, PrefixBias(in.block_id),
                                     InputsOf(net, batch, in, shown), Pass::kPrefix);  // (B, S, D)
    const auto wl =
        WlLogits(net, prefix.index({at_move}), prefix, batch, ValueSquaresOf(batch, false));
    ShowOwn(batch, WrittenValue(net->config, wl, net->wl_bucket_centers),
            WrittenValue(net->config, net->d_head(prefix.index({in.wl_positions})),
                         net->d_bucket_centers),
            shown);
  }
  return shown;
}

// Each branch as a sequence of its own, cut behind `after`.
torch::Tensor RunBranches(DecoderNet& net, const Batch& batch, const Inputs& in,
                          const ValueInputs& values) {
  std::vector<torch::Tensor> hidden;  // (1, D) each
  for (const Branch& branch : batch.branches) {
    const int64_t row = PaddedRow(batch, branch.after, in.ids.size(1));
    const int64_t sequence = row / in.ids.size(1);
    const int64_t at = row % in.ids.size(1) + 1;  // Of the move.
    const auto cut = [&](const torch::Tensor& x) {
      return x.narrow(0, sequence, 1).narrow(1, 0, at + 1).clone();  // (1, at + 1)
    };
    auto ids = cut(in.ids);
    ids[0][at] = branch.token;
    auto blocks = cut(in.block_id);
    blocks[0][at] = -1;
    ValueInputs shown = {cut(values.wl_values), cut(values.d_values), cut(values.wl_positions),
                         cut(values.d_positions)};
    shown.wl_positions[0][at] = false;
    shown.d_positions[0][at] = false;
    hidden.push_back(net->forward(ids, PrefixBias(blocks), shown, Pass::kPrefix).select(1, at));
  }
  return torch::cat(hidden);  // (N, D)
}

void ScoreBranches(DecoderNet& net, const torch::Tensor& hidden, const PrefixPass& pass,
                   Terms& terms) {
  const Batch& batch = pass.batch;
  const auto rows = [&](const std::vector<int64_t>& list) {
    return hidden.index_select(0, torch::tensor(list, torch::kInt64).to(hidden.device()));
  };
  if (const auto asked = BranchValuesOf(batch); !asked.branches.empty()) {
    const auto logits = WlLogits(net, rows(asked.branches), pass.hidden, batch, asked.squares);
    terms.branch_wl = ScoreValue(logits, asked.wl.to(hidden.device()), net->wl_bucket_centers);
  }
  if (const auto asked = EarlyEndsOf(batch); !asked.positions.empty()) {
    const auto at =
        net->config.compared_votes ? HiddenAt(pass, RootTokens(asked)) : rows(asked.positions);
    const auto logits = MoveLogits(net, net->policy_head, at, pass, asked);
    terms.early_end = ScoreMoves(logits, asked);
  }
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
  const ShownValues shown = Shown(net, batch, in, options.own_value_passes);
  const ValueInputs values = InputsOf(net, batch, in, shown);
  const auto causal_bias = CausalBias(padded_length).to(device);                 // (1, 1, S, S)
  const auto causal = net->forward(in.ids, causal_bias, values, Pass::kCausal);  // (B, S, D)
  const auto prefix =
      net->forward(in.ids, PrefixBias(in.block_id), values, Pass::kPrefix);  // (B, S, D)
  const PrefixPass pass = {batch, shown, prefix};

  Terms terms;
  terms.board = ScoreEverywhere(net->board_head(causal), in.board_targets, in.board_mask);
  terms.final_move = ScoreKind(net, net->policy_head, pass, MoveKind::kFinal);
  if (options.phase == Phase::kFinetune) {
    terms.thinking_move = ScoreKind(net, net->thinking_policy_head, pass, MoveKind::kThinking);
    terms.instinct = ScoreKind(net, net->policy_head, pass, MoveKind::kInstinct);
    terms.piece_moves = ScoreKind(net, net->policy_head, pass, MoveKind::kPiece);
    terms.threats = ScoreKind(net, net->thinking_policy_head, pass, MoveKind::kThreat);
  }
  if (!batch.branches.empty()) {
    ScoreBranches(net, RunBranches(net, batch, in, values), pass, terms);
  }
  // The move predicts wl, one position before the wl token; the wl token predicts d.
  const auto scored = in.wl_positions & in.valid;   // (B, S)
  const auto at_move = torch::roll(scored, -1, 1);  // (B, S)
  const auto at_d = torch::roll(scored, 1, 1);      // (B, S)
  const auto wl =
      WlLogits(net, prefix.index({at_move}), prefix, batch, ValueSquaresOf(batch, true));
  terms.wl = ScoreValue(wl, in.wl_targets.index({scored}), net->wl_bucket_centers);
  terms.d = ScoreValue(net->d_head(prefix.index({scored})), in.d_targets.index({at_d}),
                       net->d_bucket_centers);
  return Combine(batch, terms, options);
}

}  // namespace kibitz::decoder
