// The loss that computes only what is scored. Both passes use the same weights: their rows form one
// matrix, followed by the branches' rows. In the first layer both passes share their rows, unless
// squares see (square_sight, square_attacks); in the last one only the rows that a head reads are
// computed. A sequence without board targets has no causal pass. Letters: T tokens, D width, A
// tokens of the causal pass, N branches, C scored tokens of the causal pass, G rows of the prefix
// pass that a head reads.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/check.h"
#include "learn/added_rows.h"
#include "learn/buckets.h"
#include "learn/fused.h"
#include "learn/packed_attention.h"
#include "learn/recompute.h"
#include "students/decoder/data/sight.h"
#include "students/decoder/data/tokens.h"
#include "students/decoder/net/terms.h"

namespace kibitz::decoder {
namespace {

using learn::AttentionPlan;
using torch::Tensor;

Tensor Indices(const std::vector<int64_t>& values) { return torch::tensor(values, torch::kInt64); }

// The positions that the heads read, and their targets.
struct Questions {
  Questions(const Batch& batch, const NetConfig& config);

  std::vector<int64_t> board_positions;   // C
  std::vector<int64_t> prefix_positions;  // G, sorted.
  Tensor board_targets;                   // (C)
  // For each head of the prefix pass: rows among the G, and targets.
  MoveQuestions final_moves;
  MoveQuestions thinking_moves;
  MoveQuestions instinct;
  MoveQuestions piece_moves;
  MoveQuestions threats;
  MoveQuestions early_ends;  // Rows among the branches; with compared_votes as the others.
  Tensor wl_rows;
  SquarePositions wl_squares;  // With square_values, as the next.
  BranchQuestions branch_values;
  Tensor d_rows;
  Tensor wl_targets;  // Of both value heads' terms: valid values only.
  Tensor d_targets;

  // Adds the positions of the squares that moves read.
  void AddSquares(const MoveQuestions& moves);
  void AddSquares(const SquarePositions& squares);
  // The row of each position among the G.
  Tensor RowsOf(const std::vector<int64_t>& positions) const;
  int64_t RowOf(int64_t position) const {
    return std::ranges::lower_bound(prefix_positions, position) - prefix_positions.begin();
  }
};

void Questions::AddSquares(const MoveQuestions& moves) {
  for (size_t i = 0; i < moves.boards.size(); ++i) {
    const int64_t board = moves.boards[i];
    if (board < 0 || (i > 0 && board == moves.boards[i - 1])) continue;
    for (int64_t token = 1; token <= 64; ++token) prefix_positions.push_back(board + token);
  }
}

void Questions::AddSquares(const SquarePositions& squares) {
  for (const auto* list : {&squares.from, &squares.to}) {
    std::ranges::copy_if(*list, std::back_inserter(prefix_positions),
                         [](int64_t position) { return position >= 0; });
  }
}

Questions::Questions(const Batch& batch, const NetConfig& config) {
  std::vector<int64_t> targets;
  for (int32_t i = 0; i < batch.tokens(); ++i) {
    const int target = batch.board_targets[static_cast<size_t>(i)];
    if (target == kIgnore) continue;
    board_positions.push_back(i);
    targets.push_back(target);
  }
  final_moves = MovesOf(batch, MoveKind::kFinal);
  thinking_moves = MovesOf(batch, MoveKind::kThinking);
  instinct = MovesOf(batch, MoveKind::kInstinct);
  piece_moves = MovesOf(batch, MoveKind::kPiece);
  threats = MovesOf(batch, MoveKind::kThreat);
  early_ends = EarlyEndsOf(batch);
  branch_values = BranchValuesOf(batch);
  if (config.compared_votes) {
    for (auto* moves : {&final_moves, &early_ends}) moves->positions = RootTokens(*moves);
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
  for (const auto* list :
       {&final_moves.positions, &thinking_moves.positions, &instinct.positions,
        &piece_moves.positions, &threats.positions, &wl_positions, &d_positions}) {
    prefix_positions.insert(prefix_positions.end(), list->begin(), list->end());
  }
  if (config.compared_votes) {
    prefix_positions.insert(prefix_positions.end(), early_ends.positions.begin(),
                            early_ends.positions.end());
  }
  if (config.square_policy) {
    for (const auto* moves : {&final_moves, &thinking_moves, &instinct, &early_ends}) {
      AddSquares(*moves);
    }
  }
  if (config.line_votes) {
    for (const auto* moves : {&final_moves, &early_ends}) {
      for (const LineVote& line : moves->votes) prefix_positions.push_back(line.end);
    }
  }
  if (config.square_values) {
    wl_squares = ValueSquaresOf(batch, /*valid_only=*/true);
    AddSquares(wl_squares);
    AddSquares(branch_values.squares);
  }
  std::ranges::sort(prefix_positions);
  const auto repeated = std::ranges::unique(prefix_positions);
  prefix_positions.erase(repeated.begin(), repeated.end());
  board_targets = Indices(targets);
  wl_rows = RowsOf(wl_positions);
  d_rows = RowsOf(d_positions);
  wl_targets = torch::tensor(wl, torch::kFloat32);
  d_targets = torch::tensor(d, torch::kFloat32);
}

Tensor Questions::RowsOf(const std::vector<int64_t>& positions) const {
  std::vector<int64_t> rows;
  for (int64_t position : positions) rows.push_back(RowOf(position));
  return Indices(rows);
}

// Which rows see which in a layer. With `shared` rows, both passes read the T rows of their common
// input; else the causal pass's A rows come first, then the prefix pass's T. Last come the N rows
// of the branches. With `gathered` rows, queries are the C + G + N rows of the questions; else all.
class PlanMaker {
 public:
  PlanMaker(const Batch& batch, const Questions& questions, const NetConfig& config)
      : batch_(batch), questions_(questions), block_end_(batch.ids.size()) {
    if (config.separate_lines) AddViews();
    for (size_t i = 0; i < block_end_.size(); ++i) block_end_[i] = static_cast<int32_t>(i) + 1;
    for (const Block& block : batch.blocks) {
      std::fill(block_end_.begin() + block.begin, block_end_.begin() + block.end, block.end);
    }
    for (int32_t s = 0; s < batch.sequences(); ++s) {
      const int32_t start = batch.starts[static_cast<size_t>(s)];
      const int32_t end = batch.starts[static_cast<size_t>(s) + 1];
      const auto scored = std::ranges::lower_bound(questions.board_positions, start);
      const bool causal = scored != questions.board_positions.end() && *scored < end;
      causal_start_.push_back(causal ? Count(causal_tokens_) : -1);
      for (int32_t i = start; causal && i < end; ++i) causal_tokens_.push_back(i);
    }
  }

  // The tokens that have a row in the causal pass.
  const std::vector<int64_t>& causal_tokens() const { return causal_tokens_; }

  // Rows that the heads read, of the T + N rows of the first layer's input or the A + T + N of a
  // later one's.
  std::vector<int64_t> GatheredRows(bool shared) const {
    std::vector<int64_t> rows;
    int32_t s = 0;
    for (int64_t p : questions_.board_positions) {
      while (p >= batch_.starts[static_cast<size_t>(s) + 1]) ++s;
      const auto at = static_cast<size_t>(s);
      rows.push_back(shared ? p : causal_start_[at] + p - batch_.starts[at]);
    }
    const int64_t before = shared ? 0 : Count(causal_tokens_);
    for (int64_t p : questions_.prefix_positions) rows.push_back(before + p);
    for (int64_t i = 0; i < Branches(); ++i) rows.push_back(before + batch_.tokens() + i);
    return rows;
  }

  std::shared_ptr<const AttentionPlan> Make(bool shared, bool gathered) const {
    auto plan = std::make_shared<AttentionPlan>();
    const int64_t causal_rows = CausalRows(gathered);
    const int64_t prefix_rows = gathered ? Count(questions_.prefix_positions) : batch_.tokens();
    plan->position.resize(static_cast<size_t>(causal_rows + prefix_rows + Branches()));
    plan->seen.resize(plan->position.size());
    if (!views_.empty()) {
      plan->hidden.resize(plan->position.size());
      if (!shared) {
        for (const int64_t token : causal_tokens_)
          plan->key_position.push_back(ViewOf(token).position);
      }
      for (const TokenView& view : views_) plan->key_position.push_back(view.position);
      // Branches: their own keys, which are not rotated.
      plan->key_position.resize(plan->key_position.size() + batch_.branches.size());
    }
    int64_t branch = 0;
    for (int32_t s = 0; s < batch_.sequences(); ++s) {
      const int64_t start = batch_.starts[static_cast<size_t>(s)];
      const int64_t causal_start = causal_start_[static_cast<size_t>(s)];
      learn::KeyRun prefix{
          .k_begin = shared ? start : Count(causal_tokens_) + start, .k_count = 0, .queries = {}};
      if (causal_start >= 0 && shared) AddQueries(s, false, shared, gathered, *plan, prefix);
      if (causal_start >= 0 && !shared) {
        learn::KeyRun causal{.k_begin = causal_start, .k_count = 0, .queries = {}};
        AddQueries(s, /*prefix=*/false, shared, gathered, *plan, causal);
        plan->keys.push_back(std::move(causal));
      }
      AddQueries(s, /*prefix=*/true, shared, gathered, *plan, prefix);
      branch = AddBranches(s, branch, causal_rows + prefix_rows, shared, gathered, *plan, prefix);
      plan->keys.push_back(std::move(prefix));
    }
    return plan;
  }

 private:
  static int64_t Count(const std::vector<int64_t>& list) {
    return static_cast<int64_t>(list.size());
  }
  const TokenView& ViewOf(int64_t token) const { return views_[static_cast<size_t>(token)]; }

  // Of all tokens and branches.
  void AddViews() {
    auto branch = batch_.branches.begin();
    for (int32_t s = 0; s < batch_.sequences(); ++s) {
      LineView line;
      const int32_t end = batch_.starts[static_cast<size_t>(s) + 1];
      for (int32_t i = batch_.starts[static_cast<size_t>(s)]; i < end; ++i) {
        views_.push_back(line.Next(static_cast<TokenId>(batch_.ids[static_cast<size_t>(i)])));
        for (; branch != batch_.branches.end() && branch->after == i; ++branch) {
          branch_views_.push_back(LineView(line).Next(branch->token));
        }
      }
    }
  }

  int64_t Branches() const { return static_cast<int64_t>(batch_.branches.size()); }
  int64_t CausalRows(bool gathered) const {
    return Count(gathered ? questions_.board_positions : causal_tokens_);
  }

  // The sequence's branches, from number `first` on, in the output behind `out_begin` rows. Returns
  // the number of the next sequence's first branch.
  int64_t AddBranches(int32_t sequence, int64_t first, int64_t out_begin, bool shared,
                      bool gathered, AttentionPlan& plan, learn::KeyRun& keys) const {
    const int64_t start = batch_.starts[static_cast<size_t>(sequence)];
    const int64_t end = batch_.starts[static_cast<size_t>(sequence) + 1];
    int64_t next = first;
    for (; next < Branches() && batch_.branches[static_cast<size_t>(next)].after < end; ++next) {
      const int64_t seen = batch_.branches[static_cast<size_t>(next)].after + 1 - start;
      const auto row = static_cast<size_t>(out_begin + next);
      plan.position[row] = static_cast<int32_t>(seen);
      plan.seen[row] = static_cast<int32_t>(seen);
      if (!views_.empty()) SetView(branch_views_[static_cast<size_t>(next)], row, plan);
      keys.k_count = std::max(keys.k_count, seen);
    }
    if (next == first) return next;
    // Rows of k and of q before the branches'.
    const int64_t k_before = batch_.tokens() + (shared ? 0 : Count(causal_tokens_));
    const int64_t q_before = gathered ? out_begin : k_before;
    keys.queries.push_back({.out_begin = out_begin + first,
                            .q_begin = q_before + first,
                            .count = next - first,
                            .own_begin = k_before + first});
    return next;
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
      run.out_begin =
          prefix ? Count(causal_tokens_) + start : causal_start_[static_cast<size_t>(sequence)];
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
    if (!views_.empty()) SetView(ViewOf(position), static_cast<size_t>(row), plan);
    keys.k_count = std::max(keys.k_count, seen);
  }
  static void SetView(const TokenView& view, size_t row, AttentionPlan& plan) {
    plan.position[row] = view.position;
    plan.hidden[row] = {.begin = view.hidden_begin, .end = view.hidden_end};
  }

  const Batch& batch_;
  const Questions& questions_;
  std::vector<int32_t> block_end_;  // Of the block a token is in; behind the token itself if none.
  std::vector<int64_t> causal_tokens_;   // A
  std::vector<int64_t> causal_start_;    // By sequence: its first row in the causal pass, or -1.
  std::vector<TokenView> views_;         // With separate_lines: of all tokens, ...
  std::vector<TokenView> branch_views_;  // ... and branches.
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

// The hidden states of these positions, zeros for -1: (N, D). prefix: (G, D).
Tensor HiddenAt(const Tensor& prefix, const Questions& questions,
                const std::vector<int64_t>& positions) {
  std::vector<int64_t> rows;
  std::vector<float> there;
  for (const int64_t position : positions) {
    rows.push_back(position < 0 ? 0 : questions.RowOf(position));
    there.push_back(position < 0 ? 0 : 1);
  }
  return prefix.index_select(0, Indices(rows)) * torch::tensor(there).unsqueeze(1);
}

// The wl of moves whose hidden states are `at`, (N, D). prefix: (G, D).
Tensor WlLogits(DecoderNet& net, const Tensor& at, const Tensor& prefix, const Questions& questions,
                const SquarePositions& squares) {
  ValueHead& head = net->wl_head;
  if (!net->config.square_values || at.size(0) == 0) return Affine(head, at);
  auto* first = head->mlp[0]->as<torch::nn::Linear>();
  auto* last = head->mlp[2]->as<torch::nn::Linear>();
  const auto read = [&](torch::nn::Linear& matrix, const std::vector<int64_t>& positions) {
    return learn::Project(HiddenAt(prefix, questions, positions), {matrix->weight})[0];
  };
  const auto sum = learn::Project(at, {first->weight})[0] + first->bias +
                   read(head->from, squares.from) + read(head->to, squares.to);
  return learn::Project(torch::mish(sum), {last->weight})[0] + last->bias;
}

// Adds what the tokens of boards have besides their own embeddings (PlaceRows). embedded: (T + N,
// D).
Tensor AddPlaces(DecoderNet& net, const Batch& batch, const Tensor& embedded) {
  learn::AddedRows places;
  learn::AddedRows before;
  for (int32_t s = 0; s < batch.sequences(); ++s) {
    BoardPlace place;
    for (int32_t i = batch.starts[static_cast<size_t>(s)];
         i < batch.starts[static_cast<size_t>(s) + 1]; ++i) {
      const PlaceRows found = place.Next(static_cast<TokenId>(batch.ids[static_cast<size_t>(i)]));
      for (const int row : {found.place, found.mark}) {
        if (row >= 0) places.Add(i, row);
      }
      for (const int row : {found.before, found.other}) {
        if (row >= 0) before.Add(i, row);
      }
    }
  }
  Tensor placed = embedded;
  if (net->place_embedding) placed = learn::AddRows(placed, net->place_embedding->weight, places);
  if (net->before_embedding) placed = learn::AddRows(placed, net->before_embedding->weight, before);
  return placed;
}

// Adds what the squares of boards see and what attacks them. embedded: (T + N, D).
Tensor WithSights(DecoderNet& net, const Batch& batch, const Tensor& embedded) {
  const std::vector<TokenId> tokens(batch.ids.begin(), batch.ids.end());
  const NetConfig& config = net->config;
  learn::AddedRows sights;
  learn::AddedRows attacks;
  for (const Block& block : batch.blocks) {
    const auto count = static_cast<size_t>(block.end - block.begin);
    if (count != kBoardTokens || tokens[static_cast<size_t>(block.begin)] != kStartPos) continue;
    const auto board = std::span(tokens).subspan(static_cast<size_t>(block.begin), count);
    if (config.square_sight) {
      for (const SightRow& sight : SightsOf(board)) {
        sights.Add(block.begin + 1 + sight.square, sight.row);
      }
    }
    if (config.square_attacks) {
      for (const SightRow& attack : AttacksOf(board)) {
        attacks.Add(block.begin + 1 + attack.square, attack.row);
      }
    }
  }
  Tensor seen = embedded;
  if (config.square_sight) seen = learn::AddRows(seen, net->sight_embedding->weight, sights);
  if (config.square_attacks) seen = learn::AddRows(seen, net->attack_embedding->weight, attacks);
  return seen;
}

// Embeddings of all tokens, the values' ones replaced, and of the branches: (T + N, D).
Tensor Embed(DecoderNet& net, const Batch& batch, const ShownValues& shown) {
  std::vector<int32_t> tokens = batch.ids;
  for (const Branch& branch : batch.branches) tokens.push_back(branch.token);
  const auto ids = torch::tensor(tokens, torch::kInt64);  // (T + N)
  std::vector<int64_t> rows;
  for (const ValueTarget& value : batch.values) rows.push_back(value.wl_position);
  for (const ValueTarget& value : batch.values) rows.push_back(value.wl_position + 1);
  const auto values = torch::cat(
      {learn::NearestCentre(torch::tensor(shown.wl), net->wl_bucket_centers),
       learn::NearestCentre(torch::tensor(shown.d), net->d_bucket_centers)});  // (2 values)
  auto& encoder = net->fourier_encoder;
  const auto features = encoder->Features(values);       // (2 values, 2 frequencies)
  const auto encoded = Affine(encoder->proj, features);  // (2 values, D)
  const auto embedded = net->tok_embedding(ids).index_copy(0, Indices(rows), encoded);
  return AddPlaces(net, batch, embedded);
}

// How the rows of a layer are laid out.
struct Layout {
  Tensor rows = {};    // Picks the queries' rows of x; all when not there.
  Tensor causal = {};  // First layer: the tokens of the causal pass, when not all have one.
};

// What attention reads, and what its result is added to.
struct AttentionInputs {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor onto;
};

AttentionInputs AttentionInputsOf(learn::TransformerLayerImpl& layer, const Tensor& x,
                                  const Layout& layout) {
  auto& attention = *layer.attn;
  const Tensor& q = attention.q_proj->weight;
  const Tensor& k = attention.k_proj->weight;
  const Tensor& v = attention.v_proj->weight;
  if (!layout.rows.defined()) {
    const auto all = learn::NormProject(x, layer.sa_norm->scale, {q, k, v});
    return {all.outputs[0], all.outputs[1], all.outputs[2], all.x};
  }
  const auto normed = learn::FusedRmsNorm(x, layer.sa_norm->scale);  // (rows of x, D)
  const auto both = learn::Project(normed, {k, v});
  return {learn::Project(normed.index_select(0, layout.rows), {q})[0], both[0], both[1],
          x.index_select(0, layout.rows)};
}

// x + attention(norm(x)) for the rows of the plan; x has the rows of the plan's keys.
Tensor Attend(learn::TransformerLayerImpl& layer, const Tensor& x, const Layout& layout,
              const std::shared_ptr<const AttentionPlan>& plan, const learn::RotaryTable& rotary) {
  auto [q, k, v, onto] = AttentionInputsOf(layer, x, layout);
  const auto mixed = learn::PackedAttention(q, k, v, plan, rotary, layer.attn->heads);
  if (onto.size(0) != mixed.size(0)) {  // Both passes start here.
    onto = torch::cat({layout.causal.defined() ? onto.index_select(0, layout.causal)
                                               : onto.narrow(0, 0, mixed.size(0) - x.size(0)),
                       onto});
  }
  return learn::AddProjected(onto, mixed, layer.attn->output_proj->weight);
}

// x + mlp(norm(x)).
Tensor Transform(learn::TransformerLayerImpl& layer, const Tensor& x) {
  return learn::FusedMlp(x, {.scale = layer.mlp_norm->scale,
                             .gate = layer.mlp->w1->weight,
                             .up = layer.mlp->w3->weight,
                             .down = layer.mlp->w2->weight});
}

// All layers and the final norm, at the rows of the questions: (C + G + N, D).
Tensor RunLayers(DecoderNet& net, const Batch& batch, const Questions& questions,
                 const ShownValues& shown, bool recompute) {
  const PlanMaker plans(batch, questions, net->config);
  const size_t count = net->layers->size();
  const bool sight = net->config.square_sight || net->config.square_attacks;
  const auto middle = count > (sight ? 1 : 2) ? plans.Make(false, false) : nullptr;
  auto x = Embed(net, batch, shown);  // (T + N, D)
  if (sight) {
    const auto causal = x.index_select(0, Indices(plans.causal_tokens()));  // (A, D)
    x = torch::cat({causal, WithSights(net, batch, x)});                    // (A + T + N, D)
  }
  for (size_t i = 0; i < count; ++i) {
    auto& layer = *net->layers[i]->as<learn::TransformerLayer>();
    const bool shared = i == 0 && !sight;
    const bool last = i + 1 == count;
    Layout layout;
    if (last) layout.rows = Indices(plans.GatheredRows(shared));
    const auto causal = static_cast<int32_t>(plans.causal_tokens().size());
    if (shared && causal < batch.tokens()) layout.causal = Indices(plans.causal_tokens());
    const auto plan = shared || last ? plans.Make(shared, last) : middle;
    const learn::TensorFunction body = [&layer, layout, plan,
                                        rotary = net->rotary](const Tensor& in) {
      return Transform(layer, Attend(layer, in, layout, plan, rotary));
    };
    x = recompute ? learn::Recomputed(x, layer.parameters(), body) : body(x);  // (A + T + N, D)
  }
  return learn::FusedRmsNorm(x, net->norm->scale);
}

// What the value tokens show: the targets, or the network's own values, which take extra passes.
ShownValues Shown(DecoderNet& net, const Batch& batch, int passes) {
  ShownValues shown = TargetsAsShown(batch);
  if (std::ranges::find(batch.own_values, 1) == batch.own_values.end()) return shown;
  const torch::NoGradGuard no_grad;
  Batch values = batch;  // Asks for all values and nothing else.
  std::ranges::fill(values.board_targets, kIgnore);
  values.moves.clear();
  values.branches.clear();
  for (ValueTarget& value : values.values) value.valid = true;
  const Questions questions(values, net->config);
  for (int pass = 0; pass < passes; ++pass) {
    const auto hidden = RunLayers(net, values, questions, shown, false);  // (G, D)
    const auto wl = WlLogits(net, hidden.index_select(0, questions.wl_rows), hidden, questions,
                             questions.wl_squares);
    const auto d = Affine(net->d_head, hidden.index_select(0, questions.d_rows));
    ShowOwn(batch, WrittenValue(net->config, wl, net->wl_bucket_centers),
            WrittenValue(net->config, d, net->d_bucket_centers), shown);
  }
  return shown;
}

// Adds what the squares of the moves' boards say. logits: (N, M); prefix: (G, D).
Tensor AddSquareLogits(const Tensor& logits, const Tensor& weight, const Tensor& prefix,
                       const Questions& questions, const MoveQuestions& asked) {
  std::vector<int64_t> boards;
  std::vector<int64_t> with_board;  // Of the N.
  for (size_t i = 0; i < asked.boards.size(); ++i) {
    if (asked.boards[i] < 0) continue;
    with_board.push_back(static_cast<int64_t>(i));
    boards.push_back(asked.boards[i]);
  }
  if (boards.empty()) return logits;
  std::vector<int64_t> begins = boards;
  std::ranges::sort(begins);
  const auto repeated = std::ranges::unique(begins);
  begins.erase(repeated.begin(), repeated.end());
  std::vector<int64_t> which;  // Of the begins.
  for (int64_t board : boards) {
    which.push_back(std::ranges::lower_bound(begins, board) - begins.begin());
  }
  for (int64_t& begin : begins) begin = questions.RowOf(begin + 1) - 1;
  const auto squares = learn::PairLogits(prefix, weight, std::move(begins), SquareTokens());
  return logits.index_add(0, Indices(with_board), squares.index_select(0, Indices(which)));
}

}  // namespace

LossAndMetrics PackedLoss(DecoderNet& net, const Batch& batch, const LossOptions& options) {
  const bool squares = net->config.square_policy;
  const bool compared = net->config.compared_votes;
  const Questions questions(batch, net->config);
  const ShownValues shown = Shown(net, batch, options.own_value_passes);
  const auto hidden =
      RunLayers(net, batch, questions, shown, options.recompute_layers);  // (C + G + N, D)
  const auto scored = static_cast<int64_t>(questions.board_positions.size());
  const auto branches = static_cast<int64_t>(batch.branches.size());
  const auto causal = hidden.narrow(0, 0, scored);                                   // (C, D)
  const auto prefix = hidden.narrow(0, scored, hidden.size(0) - scored - branches);  // (G, D)
  const auto rows = [&](const Tensor& list) { return prefix.index_select(0, list); };
  const auto with_votes = [&](const Tensor& logits, const MoveQuestions& asked) {
    if (!net->config.line_votes || asked.votes.empty()) return logits;
    std::vector<int64_t> ends;
    for (const LineVote& line : asked.votes) ends.push_back(questions.RowOf(line.end));
    auto votes = Affine(net->line_vote, rows(Indices(ends)));  // (votes, 1)
    if (net->value_vote) {
      const auto values = ValuesOfVotes(net, batch, shown, asked);
      votes = votes + net->value_vote(values);
      if (compared) votes = votes + net->compare_vote(ComparisonsOfVotes(values, logits, asked));
    }
    return AddVotes(logits, votes, asked);
  };
  const auto score = [&](torch::nn::Linear& head, const Tensor& at, const MoveQuestions& asked) {
    auto logits = Affine(head, at);
    if (!compared) logits = with_votes(logits, asked);
    if (squares) logits = AddSquareLogits(logits, head->weight, prefix, questions, asked);
    if (compared) logits = with_votes(logits, asked);  // They read the squares' logits too.
    return ScoreMoves(logits, asked);
  };
  const auto moves = [&](torch::nn::Linear& head, const MoveQuestions& asked) {
    return score(head, rows(questions.RowsOf(asked.positions)), asked);
  };

  Terms terms;
  terms.board = ScoreChoice(Affine(net->board_head, causal), questions.board_targets);
  terms.final_move = moves(net->policy_head, questions.final_moves);
  if (options.phase == Phase::kFinetune) {
    terms.thinking_move = moves(net->thinking_policy_head, questions.thinking_moves);
    terms.instinct = moves(net->policy_head, questions.instinct);
    terms.piece_moves = moves(net->policy_head, questions.piece_moves);
    terms.threats = moves(net->thinking_policy_head, questions.threats);
  }
  const auto behind = hidden.narrow(0, hidden.size(0) - branches, branches);  // (N, D)
  if (const auto& asked = questions.branch_values; !asked.branches.empty()) {
    const auto values = behind.index_select(0, Indices(asked.branches));
    terms.branch_wl = ScoreValue(WlLogits(net, values, prefix, questions, asked.squares), asked.wl,
                                 net->wl_bucket_centers);
  }
  if (const auto& asked = questions.early_ends; !asked.positions.empty()) {
    terms.early_end =
        compared ? moves(net->policy_head, asked)
                 : score(net->policy_head, behind.index_select(0, Indices(asked.positions)), asked);
  }
  terms.wl =
      ScoreValue(WlLogits(net, rows(questions.wl_rows), prefix, questions, questions.wl_squares),
                 questions.wl_targets, net->wl_bucket_centers);
  terms.d = ScoreValue(Affine(net->d_head, rows(questions.d_rows)), questions.d_targets,
                       net->d_bucket_centers);
  return Combine(batch, terms, options);
}

}  // namespace kibitz::decoder
