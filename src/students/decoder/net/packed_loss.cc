// The loss that computes only what is scored. Both passes use the same weights: their rows form one
// matrix. In the first layer they share their rows; in the last one only the rows that a head reads
// are computed. Letters: T tokens, D width, C scored tokens of the
// causal pass, G rows of the prefix pass that a head reads.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "learn/buckets.h"
#include "learn/fused.h"
#include "learn/packed_attention.h"
#include "learn/recompute.h"
#include "students/decoder/net/terms.h"

namespace kibitz::decoder {
namespace {

using learn::AttentionPlan;
using torch::Tensor;

Tensor Indices(const std::vector<int64_t>& values) { return torch::tensor(values, torch::kInt64); }

// The positions that the heads read, and their targets.
struct Questions {
  explicit Questions(const Batch& batch);

  std::vector<int64_t> board_positions;   // C
  std::vector<int64_t> prefix_positions;  // G, sorted.
  Tensor board_targets;                   // (C)
  // For each head of the prefix pass: rows among the G, and targets.
  Tensor final_rows;
  Tensor final_targets;
  Tensor thinking_rows;
  Tensor thinking_targets;
  Tensor wl_rows;
  Tensor d_rows;
  Tensor wl_targets;  // Of both value heads' terms: valid values only.
  Tensor d_targets;

 private:
  // The row of each position among the G.
  Tensor RowsOf(const std::vector<int64_t>& positions) const;
};

Questions::Questions(const Batch& batch) {
  std::vector<int64_t> targets;
  for (int32_t i = 0; i < batch.tokens(); ++i) {
    const int target = batch.board_targets[static_cast<size_t>(i)];
    if (target == kIgnore) continue;
    board_positions.push_back(i);
    targets.push_back(target);
  }
  std::vector<int64_t> move_positions[2];  // Of the policy head, of the thinking policy head.
  std::vector<int64_t> moves[2];
  for (const MoveTarget& move : batch.moves) {
    move_positions[move.thinking].push_back(move.position);
    moves[move.thinking].push_back(move.move);
  }
  std::vector<int64_t> wl_positions;  // Of the move before it, where wl is asked.
  std::vector<int64_t> d_positions;   // Of the wl token, where d is asked.
  std::vector<float> wl;
  std::vector<float> d;
  for (const ValueTarget& value : batch.values) {
    if (!value.valid) continue;
    wl_positions.push_back(value.wl_position - 1);
    d_positions.push_back(value.wl_position);
    wl.push_back(value.wl);
    d.push_back(value.d);
  }
  for (const auto* list : {&move_positions[0], &move_positions[1], &wl_positions, &d_positions}) {
    prefix_positions.insert(prefix_positions.end(), list->begin(), list->end());
  }
  std::ranges::sort(prefix_positions);
  const auto repeated = std::ranges::unique(prefix_positions);
  prefix_positions.erase(repeated.begin(), repeated.end());
  board_targets = Indices(targets);
  final_rows = RowsOf(move_positions[0]);
  thinking_rows = RowsOf(move_positions[1]);
  final_targets = Indices(moves[0]);
  thinking_targets = Indices(moves[1]);
  wl_rows = RowsOf(wl_positions);
  d_rows = RowsOf(d_positions);
  wl_targets = torch::tensor(wl, torch::kFloat32);
  d_targets = torch::tensor(d, torch::kFloat32);
}

Tensor Questions::RowsOf(const std::vector<int64_t>& positions) const {
  std::vector<int64_t> rows;
  for (int64_t position : positions) {
    rows.push_back(std::ranges::lower_bound(prefix_positions, position) - prefix_positions.begin());
  }
  return Indices(rows);
}

// Which rows see which in a layer. With `shared` rows, both passes read the T rows of their common
// input; else the causal pass's T rows come first, then the prefix pass's. With `gathered` rows,
// queries are the C + G rows of the questions; else all.
class PlanMaker {
 public:
  PlanMaker(const Batch& batch, const Questions& questions)
      : batch_(batch), questions_(questions), block_end_(batch.ids.size()) {
    for (size_t i = 0; i < block_end_.size(); ++i) block_end_[i] = static_cast<int32_t>(i) + 1;
    for (const Block& block : batch.blocks) {
      std::fill(block_end_.begin() + block.begin, block_end_.begin() + block.end, block.end);
    }
  }

  std::shared_ptr<const AttentionPlan> Make(bool shared, bool gathered) const {
    auto plan = std::make_shared<AttentionPlan>();
    const int64_t causal_rows = gathered ? Count(questions_.board_positions) : batch_.tokens();
    const int64_t prefix_rows = gathered ? Count(questions_.prefix_positions) : batch_.tokens();
    plan->position.resize(static_cast<size_t>(causal_rows + prefix_rows));
    plan->seen.resize(plan->position.size());
    for (int32_t s = 0; s < batch_.sequences(); ++s) {
      const int32_t start = batch_.starts[static_cast<size_t>(s)];
      learn::KeyRun causal{.k_begin = start, .k_count = 0, .queries = {}};
      learn::KeyRun prefix{
          .k_begin = shared ? start : batch_.tokens() + start, .k_count = 0, .queries = {}};
      AddQueries(s, /*prefix=*/false, shared, gathered, *plan, causal);
      AddQueries(s, /*prefix=*/true, shared, gathered, *plan, shared ? causal : prefix);
      plan->keys.push_back(std::move(causal));
      if (!shared) plan->keys.push_back(std::move(prefix));
    }
    return plan;
  }

 private:
  static int64_t Count(const std::vector<int64_t>& list) {
    return static_cast<int64_t>(list.size());
  }

  void AddQueries(int32_t sequence, bool prefix, bool shared, bool gathered, AttentionPlan& plan,
                  learn::KeyRun& keys) const {
    const int64_t start = batch_.starts[static_cast<size_t>(sequence)];
    const int64_t end = batch_.starts[static_cast<size_t>(sequence) + 1];
    learn::QueryRun run;
    if (gathered) {
      const auto& positions = prefix ? questions_.prefix_positions : questions_.board_positions;
      const auto first = std::ranges::lower_bound(positions, start);
      const auto last = std::ranges::lower_bound(positions, end);
      run.out_begin =
          (prefix ? Count(questions_.board_positions) : 0) + (first - positions.begin());
      run.q_begin = run.out_begin;
      run.count = last - first;
      for (auto it = first; it != last; ++it) {
        AddQuery(run.out_begin + (it - first), *it, start, prefix, plan, keys);
      }
    } else {
      run.out_begin = (prefix ? batch_.tokens() : 0) + start;
      run.q_begin = shared ? start : run.out_begin;
      run.count = end - start;
      for (int64_t i = start; i < end; ++i) {
        AddQuery(run.out_begin + i - start, i, start, prefix, plan, keys);
      }
    }
    if (run.count > 0) keys.queries.push_back(run);
  }

  void AddQuery(int64_t row, int64_t position, int64_t start, bool prefix, AttentionPlan& plan,
                learn::KeyRun& keys) const {
    const int64_t seen =
        (prefix ? block_end_[static_cast<size_t>(position)] : position + 1) - start;
    plan.position[static_cast<size_t>(row)] = static_cast<int32_t>(position - start);
    plan.seen[static_cast<size_t>(row)] = static_cast<int32_t>(seen);
    keys.k_count = std::max(keys.k_count, seen);
  }

  const Batch& batch_;
  const Questions& questions_;
  std::vector<int32_t> block_end_;  // Of the block a token is in; behind the token itself if none.
};

// A linear layer with bias.
Tensor Affine(torch::nn::Linear& linear, const Tensor& x) {
  return learn::Project(x, {linear->weight})[0] + linear->bias;
}

Tensor Affine(ValueHead& head, const Tensor& x) {
  auto* first = head->mlp[0]->as<torch::nn::Linear>();
  auto* last = head->mlp[2]->as<torch::nn::Linear>();
  const auto hidden = torch::mish(learn::Project(x, {first->weight})[0] + first->bias);
  return learn::Project(hidden, {last->weight})[0] + last->bias;
}

// Embeddings of all tokens, the values' ones replaced: (T, D).
Tensor Embed(DecoderNet& net, const Batch& batch) {
  std::vector<int64_t> rows;
  std::vector<float> wl;
  std::vector<float> d;
  for (const ValueTarget& value : batch.values) {
    rows.push_back(value.wl_position);
    wl.push_back(value.wl);
    d.push_back(value.d);
  }
  for (size_t i = 0; i < wl.size(); ++i) rows.push_back(rows[i] + 1);
  const auto values =
      torch::cat({learn::NearestCentre(torch::tensor(wl), net->wl_bucket_centers),
                  learn::NearestCentre(torch::tensor(d), net->d_bucket_centers)});  // (2 values)
  auto& encoder = net->fourier_encoder;
  const auto features = encoder->Features(values);           // (2 values, 2 frequencies)
  const auto encoded = Affine(encoder->proj, features);      // (2 values, D)
  const auto ids = torch::tensor(batch.ids, torch::kInt64);  // (T)
  return net->tok_embedding(ids).index_copy(0, Indices(rows), encoded);
}

// x + attention(norm(x)) for the rows of the plan; x has the rows of the plan's keys. `rows` picks
// the queries' rows of x, all when not given.
Tensor Attend(learn::TransformerLayerImpl& layer, const Tensor& x, const Tensor& rows,
              const std::shared_ptr<const AttentionPlan>& plan, const learn::RotaryTable& rotary) {
  auto& attention = *layer.attn;
  const auto normed = learn::FusedRmsNorm(x, layer.sa_norm->scale);  // (rows of x, D)
  Tensor q;
  Tensor k;
  Tensor v;
  if (rows.defined()) {
    q = learn::Project(normed.index_select(0, rows), {attention.q_proj->weight})[0];
    const auto both = learn::Project(normed, {attention.k_proj->weight, attention.v_proj->weight});
    k = both[0];
    v = both[1];
  } else {
    const auto all = learn::Project(
        normed, {attention.q_proj->weight, attention.k_proj->weight, attention.v_proj->weight});
    q = all[0];
    k = all[1];
    v = all[2];
  }
  const auto mixed = learn::PackedAttention(q, k, v, plan, rotary, attention.heads);
  Tensor onto = rows.defined() ? x.index_select(0, rows) : x;
  if (onto.size(0) != mixed.size(0)) onto = torch::cat({onto, onto});  // Both passes start here.
  return learn::AddProjected(onto, mixed, attention.output_proj->weight);
}

// x + mlp(norm(x)).
Tensor Transform(learn::TransformerLayerImpl& layer, const Tensor& x) {
  auto& mlp = *layer.mlp;
  const auto normed = learn::FusedRmsNorm(x, layer.mlp_norm->scale);
  const auto hidden = learn::Project(normed, {mlp.w1->weight, mlp.w3->weight});
  return learn::AddProjected(x, learn::FusedSwiGlu(hidden[0], hidden[1]), mlp.w2->weight);
}

// All layers and the final norm, at the rows of the questions: (C + G, D).
Tensor RunLayers(DecoderNet& net, const Batch& batch, const Questions& questions, bool recompute) {
  const PlanMaker plans(batch, questions);
  const size_t count = net->layers->size();
  const auto middle = count > 2 ? plans.Make(false, false) : nullptr;
  auto x = Embed(net, batch);  // (T, D)
  for (size_t i = 0; i < count; ++i) {
    auto& layer = *net->layers[i]->as<learn::TransformerLayer>();
    const bool first = i == 0;
    const bool last = i + 1 == count;
    Tensor rows;  // (C + G)
    if (last) {
      std::vector<int64_t> list = questions.board_positions;
      for (int64_t p : questions.prefix_positions) list.push_back(first ? p : batch.tokens() + p);
      rows = Indices(list);
    }
    const auto plan = first || last ? plans.Make(first, last) : middle;
    const learn::TensorFunction body = [&layer, rows, plan,
                                        rotary = net->rotary](const Tensor& in) {
      return Transform(layer, Attend(layer, in, rows, plan, rotary));
    };
    x = recompute ? learn::Recomputed(x, layer.parameters(), body) : body(x);  // (2 T, D)
  }
  return learn::FusedRmsNorm(x, net->norm->scale);
}

}  // namespace

LossAndMetrics PackedLoss(DecoderNet& net, const Batch& batch, const LossOptions& options) {
  const Questions questions(batch);
  const auto hidden = RunLayers(net, batch, questions, options.recompute_layers);  // (C + G, D)
  const auto scored = static_cast<int64_t>(questions.board_positions.size());
  const auto causal = hidden.narrow(0, 0, scored);                        // (C, D)
  const auto prefix = hidden.narrow(0, scored, hidden.size(0) - scored);  // (G, D)
  const auto rows = [&](const Tensor& list) { return prefix.index_select(0, list); };

  Terms terms;
  terms.board = ScoreChoice(Affine(net->board_head, causal), questions.board_targets);
  terms.final_move =
      ScoreChoice(Affine(net->policy_head, rows(questions.final_rows)), questions.final_targets);
  if (options.phase == Phase::kFinetune) {
    terms.thinking_move =
        ScoreChoice(Affine(net->thinking_policy_head, rows(questions.thinking_rows)),
                    questions.thinking_targets);
  }
  terms.wl = ScoreValue(Affine(net->wl_head, rows(questions.wl_rows)), questions.wl_targets,
                        net->wl_bucket_centers);
  terms.d = ScoreValue(Affine(net->d_head, rows(questions.d_rows)), questions.d_targets,
                       net->d_bucket_centers);
  return Combine(batch, terms, options);
}

}  // namespace kibitz::decoder
