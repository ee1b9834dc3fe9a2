#include "students/decoder/data/thinking_sequence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "games/chess/movegen.h"
#include "students/decoder/data/mirror.h"
#include "students/decoder/data/sequence_builder.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::decoder {
namespace {

// A variation of the sequence.
struct Shown {
  const SearchVariation* variation;
  size_t depth;  // Nodes used.
};

bool HasNodes(const SearchVariation& variation, const ThinkingOptions& options) {
  return variation.node_count > 0 && (options.terminal_leaves || !variation.synthesised);
}

size_t CountCandidates(const SearchRow& row, int max_variations) {
  return std::min(row.variations.size(), static_cast<size_t>(max_variations));
}

// Ranks of candidates drawn one after another by their fractions or priors, without those without
// nodes.
std::vector<int> DrawCandidates(const SearchRow& row, const ThinkingOptions& options,
                                const ThinkingAttempt& attempt, Rng& rng) {
  std::vector<double> utilities;  // The Gumbel noise makes this a draw by the shares.
  for (const SearchVariation& variation : row.variations) {
    const double share = options.candidates_by_prior ? variation.prior : variation.visit_fraction;
    utilities.push_back(std::log(std::max(share, 1e-12)));
  }
  std::vector<int> ranking = DrawOrder(utilities, options.candidate_temperature, rng);
  std::erase_if(ranking, [&](int rank) {
    return !HasNodes(row.variations[static_cast<size_t>(rank - 1)], options);
  });
  ranking.resize(std::min(ranking.size(), static_cast<size_t>(attempt.max_variations)));
  return ranking;
}

std::vector<int> DrawRanking(const SearchRow& row, const ThinkingOptions& options,
                             const ThinkingAttempt& attempt, Rng& rng) {
  if (options.draw_candidates) return DrawCandidates(row, options, attempt, rng);
  std::vector<double> fractions;
  for (size_t i = 0; i < CountCandidates(row, attempt.max_variations); ++i) {
    fractions.push_back(row.variations[i].visit_fraction);
  }
  return DrawOrder(fractions, Temperature(row.wdl, options.tau_base, options.tau_alpha), rng);
}

// A fixed ranking without the candidates that this attempt leaves out.
std::vector<int> FixedRanking(const SearchRow& row, const ThinkingOptions& options,
                              const ThinkingAttempt& attempt, const std::vector<int>& fixed) {
  const size_t count = CountCandidates(row, options.max_variations);
  std::vector<int> sorted = fixed;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size() || i < count; ++i) {
    if (sorted.size() == count && sorted[i] == static_cast<int>(i) + 1) continue;
    throw Error::Usage("--ranking: expected each of 1 to {} once: the row has {} variations", count,
                       count);
  }
  std::vector<int> ranking = fixed;
  std::erase_if(ranking, [&](int rank) { return rank > attempt.max_variations; });
  return ranking;
}

size_t DepthOf(size_t available, size_t min_depth, size_t shown_before,
               const ThinkingChoices& fixed, Rng& rng) {
  if (fixed.depths.empty()) {
    const size_t least = std::min(available, min_depth);
    return least + static_cast<size_t>(rng.Below(available - least + 1));
  }
  if (shown_before >= fixed.depths.size()) {
    throw Error::Usage("--depths: found {} depths, but the row has more variations",
                       fixed.depths.size());
  }
  const int depth = fixed.depths[shown_before];
  if (depth < 1) throw Error::Usage("--depths: found {}, expected at least 1", depth);
  return std::min(available, static_cast<size_t>(depth));
}

std::vector<Shown> Choose(const SearchRow& row, const ThinkingOptions& options,
                          const ThinkingChoices& fixed, ThinkingAttempt& attempt, Rng& rng) {
  attempt.ranking = fixed.ranking.empty() ? DrawRanking(row, options, attempt, rng)
                                          : FixedRanking(row, options, attempt, fixed.ranking);
  std::vector<Shown> shown;
  for (int rank : attempt.ranking) {
    const SearchVariation& variation = row.variations[static_cast<size_t>(rank - 1)];
    if (!HasNodes(variation, options)) continue;
    const auto available =
        std::min<size_t>(variation.node_count, static_cast<size_t>(attempt.max_depth));
    const size_t depth =
        DepthOf(available, static_cast<size_t>(options.min_depth), shown.size(), fixed, rng);
    attempt.depths.push_back(static_cast<int>(depth));
    shown.push_back({&variation, depth});
  }
  return shown;
}

int32_t LengthOf(std::span<const Shown> shown) {
  int32_t length = kBoardTokens + 5;  // start_think, end_think, the final move and its values.
  for (const Shown& item : shown) {
    length += static_cast<int32_t>(item.depth) * (kBoardTokens + 3) + 1;
  }
  return length;
}

void AddVariation(const SearchRow& row, const Shown& shown, bool first, SequenceBuilder& builder) {
  TokenId move = shown.variation->root_move;
  TokenId announced_as = first ? kGenericMove : kNewVariation;
  for (const LineNode& node : row.NodesOf(*shown.variation).first(shown.depth)) {
    builder.AddMove(
        {.played = move, .target = move, .thinking = true, .announced_as = announced_as});
    builder.AddValue(node.wl, node.d, node.valid);
    builder.AddBoard(node.board);
    move = node.move;
    announced_as = kContinueVar;
  }
  builder.AddMark(kEndVar);
}

// Spreads `share` over the board's legal moves that were not shown, beside the shares from `first`
// on.
void AddLegalShare(const chess::Board& board, double share, std::span<const TokenId> without,
                   size_t first, Sequence& sequence) {
  std::vector<TokenId> legal;
  for (const chess::Move move : chess::LegalMoves(board)) {
    if (std::ranges::find(without, TokenOf(move)) == without.end()) legal.push_back(TokenOf(move));
  }
  const auto each = static_cast<float>(share / static_cast<double>(legal.size()));
  const size_t others = sequence.shares.size();
  for (const TokenId move : legal) {
    const auto begin = sequence.shares.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(others);
    const auto known = std::find_if(begin + static_cast<std::ptrdiff_t>(first), end,
                                    [move](const MoveShare& other) { return other.move == move; });
    if (known == end) {
      sequence.shares.push_back({.move = move, .share = each});
    } else {
      known->share += each;
    }
  }
}

// Adds the fractions of the row's variations, without those already shown, as a soft target. All
// legal moves have `legal_share` of it alike.
template <typename Target>
void SoftenTarget(const SearchRow& row, double legal_share, std::span<const TokenId> without,
                  Target& target, Sequence& sequence) {
  const auto first = sequence.shares.size();
  double sum = 0;
  for (const SearchVariation& variation : row.variations) {
    if (std::ranges::find(without, variation.root_move) != without.end()) continue;
    const auto share = static_cast<float>(variation.visit_fraction);
    if (share <= 0) continue;
    sequence.shares.push_back({.move = variation.root_move, .share = share});
    sum += share;
  }
  for (size_t i = first; i < sequence.shares.size(); ++i) {
    sequence.shares[i].share =
        static_cast<float>(sequence.shares[i].share * (1 - legal_share) / sum);
  }
  target.legal = legal_share > 0 && sum > 0;
  if (target.legal) AddLegalShare(row.root, legal_share, without, first, sequence);
  target.first_share = static_cast<uint32_t>(first);
  target.share_count = static_cast<uint32_t>(sequence.shares.size() - first);
}

// A move behind the board of a line: all legal moves of that board have `legal_share` alike.
void SoftenReply(double legal_share, MoveTarget& target, Sequence& sequence) {
  const auto end = static_cast<size_t>(target.position) + 1;
  const auto board = BoardOf(std::span(sequence.ids).subspan(end - kBoardTokens, kBoardTokens));
  if (!board) return;
  const size_t first = sequence.shares.size();
  sequence.shares.push_back({.move = target.move, .share = static_cast<float>(1 - legal_share)});
  AddLegalShare(*board, legal_share, {}, first, sequence);
  target.first_share = static_cast<uint32_t>(first);
  target.share_count = static_cast<uint32_t>(sequence.shares.size() - first);
  target.legal = true;
}

// The soft targets of the moves that are chosen at the root and, with `legal_share`, of replies.
void SoftenTargets(const SearchRow& row, double legal_share, Sequence& sequence) {
  std::vector<TokenId> shown;
  for (MoveTarget& target : sequence.moves) {
    const TokenId before = sequence.ids[static_cast<size_t>(target.position)];
    const bool new_line = before == kStartThink || before == kEndVar;
    if (target.kind == MoveKind::kThinking && !new_line) {
      if (legal_share > 0) SoftenReply(legal_share, target, sequence);
      continue;
    }
    SoftenTarget(row, legal_share,
                 new_line ? std::span<const TokenId>(shown) : std::span<const TokenId>(), target,
                 sequence);
    // Variations come by falling visits, so the first that is left is the best.
    if (new_line && target.share_count > 0) {
      target.move = sequence.shares[target.first_share].move;
    }
    const auto next = static_cast<size_t>(target.position) + 1;
    if (new_line && next < sequence.ids.size()) shown.push_back(sequence.ids[next]);
  }
}

// Values of root moves, drawn from all variations, each where a variation could begin: behind
// start_think or behind the end of another. Else a value there would be learned of good moves only.
void AddBranches(const SearchRow& row, int count, Rng& rng, Sequence& sequence) {
  std::vector<const SearchVariation*> variations;
  for (const SearchVariation& variation : row.variations) {
    if (variation.node_count > 0 && row.NodesOf(variation)[0].valid) {
      variations.push_back(&variation);
    }
  }
  std::vector<int32_t> places = {kBoardTokens};
  for (int32_t i = kBoardTokens; i + 1 < sequence.size(); ++i) {
    if (sequence.ids[static_cast<size_t>(i)] == kEndVar) places.push_back(i);
  }
  for (int i = 0; i < count && !variations.empty(); ++i) {
    const auto drawn = static_cast<size_t>(rng.Below(variations.size()));
    const auto place = places.size() == 1 ? 0 : static_cast<size_t>(rng.Below(places.size()));
    sequence.branches.push_back({.after = places[place],
                                 .token = variations[drawn]->root_move,
                                 .wl = row.NodesOf(*variations[drawn])[0].wl});
    std::swap(variations[drawn], variations.back());
    variations.pop_back();
  }
}

// The final move behind every variation but the last, which has it anyway.
void AddEarlyEnds(const SearchRow& row, const ThinkingOptions& options, Sequence& sequence) {
  for (size_t i = 0; i + 1 < sequence.ids.size(); ++i) {
    if (sequence.ids[i] != kEndVar || sequence.ids[i + 1] == kEndThink) continue;
    Branch& branch = sequence.branches.emplace_back();
    branch = {.after = static_cast<int32_t>(i), .token = kEndThink, .final_move = row.best_move};
    if (options.soft_targets) SoftenTarget(row, options.legal_share, {}, branch, sequence);
  }
}

// How much the better moves of a piece weigh more: by exp(wl / this).
constexpr double kPieceTemperature = 0.15;

// Targets at squares of the root, one of each kind at most.
class SquareTargets {
 public:
  // A move with its weight: at the square where it begins or, `to`, where it ends.
  void Add(chess::Move move, bool to, double weight) {
    const chess::Square square = to ? move.to() : move.from();
    squares_[static_cast<size_t>(square.index())].push_back(
        {.move = TokenOf(move), .share = static_cast<float>(weight)});
  }
  // Half of a target is alike for all its moves, half by the weights, if there are any.
  void Finish(MoveKind kind, std::vector<MoveTarget>& targets, Sequence& sequence) {
    for (size_t square = 0; square < squares_.size(); ++square) {
      std::vector<MoveShare>& moves = squares_[square];
      if (moves.empty()) continue;
      const auto best = std::ranges::max_element(moves, {}, &MoveShare::share);
      targets.push_back({.position = 1 + static_cast<int32_t>(square),
                         .move = best->move,
                         .kind = kind,
                         .first_share = static_cast<uint32_t>(sequence.shares.size()),
                         .share_count = static_cast<uint32_t>(moves.size())});
      float sum = 0;
      for (const MoveShare& share : moves) sum += share.share;
      const float alike = (sum > 0 ? 0.5F : 1.0F) / static_cast<float>(moves.size());
      for (MoveShare& share : moves) {
        share.share = alike + (sum > 0 ? 0.5F * share.share / sum : 0.0F);
        sequence.shares.push_back(share);
      }
    }
  }

 private:
  std::array<std::vector<MoveShare>, 64> squares_;  // Shares are weights until the end.
};

// At each piece that can move, its moves. With `square_moves`, at the other squares the moves that
// end there, and the same of the opponent.
void AddPieceMoves(const SearchRow& row, const ThinkingOptions& options, Sequence& sequence) {
  std::vector<double> weights(kMoveVocabularySize, 0);
  for (const SearchVariation& variation : row.variations) {
    if (variation.node_count == 0 || !row.NodesOf(variation)[0].valid) continue;
    const double wl = -row.NodesOf(variation)[0].wl;  // For the side that moves.
    weights[static_cast<size_t>(variation.root_move)] = std::exp(wl / kPieceTemperature);
  }
  SquareTargets own;
  SquareTargets threats;
  for (const chess::Move move : chess::LegalMoves(row.root)) {
    const double weight = weights[static_cast<size_t>(TokenOf(move))];
    own.Add(move, false, weight);
    // Castling ends on a square of an own piece, which has its own moves.
    const bool castling = move.kind() == chess::Move::Kind::kCastle;
    if (options.square_moves && !castling) own.Add(move, true, weight);
  }
  if (options.square_moves && !row.root.InCheck()) {
    for (const chess::Move move : chess::LegalMoves(row.root.AfterNull())) {
      threats.Add(move, false, 0);
      if (move.kind() != chess::Move::Kind::kCastle) threats.Add(move, true, 0);
    }
  }
  std::vector<MoveTarget> targets;
  own.Finish(MoveKind::kPiece, targets, sequence);
  threats.Finish(MoveKind::kThreat, targets, sequence);
  std::ranges::stable_sort(targets, {}, &MoveTarget::position);
  sequence.moves.insert(sequence.moves.begin(), targets.begin(), targets.end());
}

// The targets that the options add to a sequence of the row.
void AddRichTargets(const SearchRow& row, const ThinkingOptions& options, Rng& rng,
                    Sequence& sequence) {
  if (options.instinct_target) {
    sequence.moves.insert(
        sequence.moves.begin(),
        {.position = kBoardTokens - 1, .move = row.best_move, .kind = MoveKind::kInstinct});
  }
  if (options.soft_targets) SoftenTargets(row, options.legal_share, sequence);
  if (options.piece_moves) AddPieceMoves(row, options, sequence);
  if (options.branch_values > 0) AddBranches(row, options.branch_values, rng, sequence);
  if (options.early_ends) AddEarlyEnds(row, options, sequence);
  std::ranges::stable_sort(sequence.branches, {}, &Branch::after);
  if (options.own_values_prob > 0) sequence.own_values = rng.Uniform() < options.own_values_prob;
  if (options.board_target_prob < 1 && rng.Uniform() >= options.board_target_prob) {
    std::ranges::fill(sequence.board_targets, static_cast<int8_t>(kIgnore));
  }
}

// The root and start_think alone.
Sequence WriteRoot(const SearchRow& row) {
  SequenceBuilder builder;
  builder.AddBoard(row.root);
  builder.AddMark(kStartThink);
  Sequence sequence = std::move(builder).Finish(kBoardTokens + 1);
  sequence.thinking = true;
  sequence.moves.push_back(
      {.position = kBoardTokens, .move = row.best_move, .kind = MoveKind::kThinking});
  return sequence;
}

Sequence Write(const SearchRow& row, std::span<const Shown> shown, int32_t length) {
  SequenceBuilder builder;
  builder.Reserve(static_cast<size_t>(length));
  builder.AddBoard(row.root);
  builder.AddMark(kStartThink);
  for (const Shown& item : shown) AddVariation(row, item, &item == shown.data(), builder);
  builder.AddMark(kEndThink);
  builder.AddMove({.played = row.best_move, .target = row.best_move});
  const Wdl wdl = row.wdl.value_or(Wdl{});
  builder.AddValue(static_cast<float>(wdl.win - wdl.loss), static_cast<float>(wdl.draw),
                   row.wdl.has_value());
  CHECK(builder.size() == length);
  Sequence sequence = std::move(builder).Finish(length);
  sequence.thinking = true;
  sequence.first_is_not_best = shown[0].variation->root_move != row.best_move;
  return sequence;
}

// If the first candidates have no nodes, uses one node of the first that has some.
void ShowShortest(const SearchRow& row, const ThinkingOptions& options, ThinkingResult& result) {
  if (options.max_seq_len < kShortestThought) return;
  for (size_t i = 0; i < row.variations.size(); ++i) {
    if (!HasNodes(row.variations[i], options)) continue;
    result.attempts.push_back({.max_variations = 1,
                               .max_depth = 1,
                               .ranking = {static_cast<int>(i) + 1},
                               .depths = {1},
                               .length = kShortestThought});
    const Shown shown{&row.variations[i], 1};
    result.sequence = Write(row, std::span(&shown, 1), kShortestThought);
    return;
  }
}

}  // namespace

Fields FieldsOf(ThinkingOptions& options) {
  Fields fields;
  fields.Add("max_variations", options.max_variations, "max variations in a thinking sequence",
             {.min = 1, .max = 256});
  fields.Add("max_depth", options.max_depth, "max positions in a variation",
             {.min = 1, .max = 256});
  fields.Add("tau_base", options.tau_base, "temperature that draws the order of variations",
             {.min = 1e-6});
  fields.Add("tau_alpha", options.tau_alpha, "how much the variance of the result raises tau_base",
             {.min = 0});
  fields.Add("terminal_leaves", options.terminal_leaves,
             "include root moves that end the game, which records list without nodes");
  fields.Add("mirror_prob", options.mirror_prob,
             "probability of swapping colours, and of mirroring files without castling rights",
             {.min = 0, .max = 1});
  fields.Add("min_depth", options.min_depth, "min positions in a variation, if it has as many",
             {.min = 1, .max = 256});
  fields.Add("fewer_variations_prob", options.fewer_variations_prob,
             "probability of showing fewer than max_variations", {.min = 0, .max = 1});
  fields.Add("draw_candidates", options.draw_candidates,
             "draw the variations by their fractions of visits; else take the most visited");
  fields.Add("candidates_by_prior", options.candidates_by_prior,
             "draw them by the records' priors instead, which 'decoder priors' writes");
  fields.Add("candidate_temperature", options.candidate_temperature, "temperature of that draw",
             {.min = 1e-3, .max = 1000});
  fields.Add("soft_targets", options.soft_targets,
             "the target of a root move is the distribution of visits; else one move");
  fields.Add("legal_share", options.legal_share,
             "share of a soft target that all legal moves have alike, also in replies",
             {.min = 0, .max = 1});
  fields.Add("instinct_target", options.instinct_target,
             "the policy head also predicts at the root of a thought, before it begins");
  fields.Add("piece_moves", options.piece_moves,
             "at each piece of the root that can move, the policy head predicts the piece's moves");
  fields.Add("square_moves", options.square_moves,
             "with piece_moves: also the moves to each square, and the opponent's, as if it could "
             "move");
  fields.Add("branch_values", options.branch_values,
             "root moves whose value the wl head predicts wherever a variation could begin",
             {.min = 0, .max = 256});
  fields.Add("early_ends", options.early_ends,
             "the policy head predicts the final move behind every variation, not only the last");
  fields.Add("no_thought_prob", options.no_thought_prob,
             "probability that a sequence ends behind start_think, for the root's targets alone",
             {.min = 0, .max = 1});
  fields.Add("board_target_prob", options.board_target_prob,
             "probability that the boards of a thought are scored; else it has no causal pass",
             {.min = 0, .max = 1});
  fields.Add("own_values_prob", options.own_values_prob,
             "probability that a thought shows the network its own values, not the teacher's",
             {.min = 0, .max = 1});
  return fields;
}

double ResultVariance(const Wdl& wdl) {
  const double mean = wdl.win - wdl.loss;
  return wdl.win + wdl.loss - mean * mean;
}

double Temperature(const std::optional<Wdl>& wdl, double tau_base, double tau_alpha) {
  return tau_base * (1 + tau_alpha * (wdl ? ResultVariance(*wdl) : 0));
}

std::vector<int> OrderByUtility(std::span<const double> fractions, double tau,
                                std::span<const double> noise) {
  CHECK(fractions.size() == noise.size());
  std::vector<int> order(fractions.size());
  std::iota(order.begin(), order.end(), 1);
  const auto utility = [&](int rank) {
    const auto i = static_cast<size_t>(rank - 1);
    return fractions[i] / tau + noise[i];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return utility(a) > utility(b); });
  return order;
}

std::vector<int> DrawOrder(std::span<const double> fractions, double tau, Rng& rng) {
  std::vector<double> noise(fractions.size());
  for (double& value : noise) value = rng.Gumbel();
  return OrderByUtility(fractions, tau, noise);
}

ThinkingResult Think(const SearchRow& row, const ThinkingOptions& options, Rng& rng,
                     const ThinkingChoices& fixed) {
  ThinkingResult result;
  // True when no further attempt is needed.
  const auto attempt = [&](int max_variations, int max_depth) {
    ThinkingAttempt& tried = result.attempts.emplace_back();
    tried.max_variations = max_variations;
    tried.max_depth = max_depth;
    const std::vector<Shown> shown = Choose(row, options, fixed, tried, rng);
    tried.length = LengthOf(shown);
    if (shown.empty() || tried.length > options.max_seq_len) return false;
    result.sequence = Write(row, shown, tried.length);
    return true;
  };
  if (attempt(options.max_variations, options.max_depth)) return result;
  // A single variation can only get shorter.
  for (int variations = std::max(1, options.max_variations - 1); variations > 0; --variations) {
    for (int depth = options.max_depth; depth > 0; --depth) {
      if (attempt(variations, depth)) return result;
    }
  }
  ShowShortest(row, options, result);
  return result;
}

bool HasThought(const SearchRow& row, const ThinkingOptions& options) {
  return std::any_of(
      row.variations.begin(), row.variations.end(),
      [&](const SearchVariation& variation) { return HasNodes(variation, options); });
}

namespace {

Sequence UnmirroredSequence(const SearchRow& row, const ThinkingOptions& options, Rng& rng) {
  if (options.no_thought_prob > 0 && rng.Uniform() < options.no_thought_prob) {
    Sequence root = WriteRoot(row);
    AddRichTargets(row, options, rng, root);
    return root;
  }
  ThinkingOptions drawn = options;
  if (options.fewer_variations_prob > 0 && options.max_variations > 1 &&
      rng.Uniform() < options.fewer_variations_prob) {
    const auto fewer = static_cast<uint64_t>(options.max_variations - 1);
    drawn.max_variations = 1 + static_cast<int>(rng.Below(fewer));
  }
  ThinkingResult result = Think(row, drawn, rng);
  CHECK(result.sequence.has_value());
  Sequence sequence = *std::move(result.sequence);
  AddRichTargets(row, options, rng, sequence);
  return sequence;
}

}  // namespace

Sequence ThinkingSequence(const SearchRow& row, const ThinkingOptions& options, Rng& rng) {
  if (options.mirror_prob == 0) return UnmirroredSequence(row, options, rng);
  const bool swap = rng.Uniform() < options.mirror_prob;
  const bool files = rng.Uniform() < options.mirror_prob && CanMirrorFiles(row);
  if (!swap && !files) return UnmirroredSequence(row, options, rng);
  const SearchRow mirrored = swap ? SwapColours(row) : row;
  return UnmirroredSequence(files ? MirrorFiles(mirrored) : mirrored, options, rng);
}

}  // namespace kibitz::decoder
