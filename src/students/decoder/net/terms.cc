#include "students/decoder/net/terms.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "learn/buckets.h"
#include "students/decoder/data/tokens.h"
#include "students/decoder/data/votes.h"

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

// The moves of all kinds in the order of the batch.
void MergeMoves(const Batch& batch, const Terms& terms, Scores& scores) {
  struct Kind {
    std::vector<float> loss;
    std::vector<uint8_t> hit;
    size_t next = 0;
  };
  std::array<Kind, kMoveKinds> kinds;  // By MoveKind.
  const auto add = [&](MoveKind kind, const HeadTerms& head) {
    if (!head.loss.defined()) return;
    kinds[static_cast<size_t>(kind)] = {.loss = Floats(head.loss), .hit = Flags(head.hit)};
  };
  add(MoveKind::kFinal, terms.final_move);
  add(MoveKind::kThinking, terms.thinking_move);
  add(MoveKind::kInstinct, terms.instinct);
  add(MoveKind::kPiece, terms.piece_moves);
  add(MoveKind::kThreat, terms.threats);
  for (const MoveTarget& move : batch.moves) {
    Kind& kind = kinds[static_cast<size_t>(move.kind)];
    scores.move_loss.push_back(kind.loss.at(kind.next));
    scores.move_hit.push_back(kind.hit.at(kind.next));
    ++kind.next;
  }
}

// The boards that moves are for.
class BoardFinder {
 public:
  explicit BoardFinder(const Batch& batch) : batch_(batch) {}

  // Of a move predicted at `position`: the board that ends there; in a thought, else its root. -1
  // where there is none, or not all of it.
  int64_t Of(int64_t position) const {
    const auto block = std::ranges::lower_bound(batch_.blocks, position + 1, {}, &Block::end);
    if (block != batch_.blocks.end() && block->end == position + 1) return Whole(*block);
    return RootOf(position);
  }
  int64_t RootOf(int64_t position) const {
    const auto next = std::ranges::upper_bound(batch_.starts, position);
    const auto sequence = static_cast<size_t>(next - batch_.starts.begin() - 1);
    if (batch_.thinking[sequence] == 0) return -1;
    const int32_t start = batch_.starts[sequence];
    const auto block = std::ranges::lower_bound(batch_.blocks, start, {}, &Block::begin);
    return block != batch_.blocks.end() && block->begin == start ? Whole(*block) : -1;
  }

 private:
  static int64_t Whole(const Block& block) {
    return block.end - block.begin == kBoardTokens ? block.begin : -1;
  }
  const Batch& batch_;
};

// Collects move targets, soft ones and others.
class QuestionMaker {
 public:
  explicit QuestionMaker(const Batch& batch) : batch_(batch) {}

  // `target` has the shares, if there are any.
  template <typename Target>
  void Add(int64_t position, int64_t board, int32_t move, const Target& target) {
    const auto row = static_cast<int64_t>(moves_.size());
    questions_.positions.push_back(position);
    questions_.boards.push_back(board);
    moves_.push_back(move);
    soft_ |= target.share_count > 0;
    if (target.legal) questions_.legal_rows.push_back(row);
    for (uint32_t i = 0; i < target.share_count; ++i) {
      const MoveShare& share = batch_.shares[target.first_share + i];
      AddShare(row, share.move, share.share);
    }
    if (target.share_count == 0) AddShare(row, move, 1);
  }
  // The variations that end at `position` or before it vote for the target added last.
  void AddVotesUpTo(int64_t position) {
    const auto next = std::ranges::upper_bound(batch_.starts, position);
    const auto sequence = static_cast<size_t>(next - batch_.starts.begin() - 1);
    if (batch_.thinking[sequence] == 0) return;
    const int64_t row = static_cast<int64_t>(moves_.size()) - 1;
    LineVote line{.row = row};
    for (int64_t i = batch_.starts[sequence]; i <= position; ++i) {
      const int32_t token = batch_.ids[static_cast<size_t>(i)];
      if (IsMove(static_cast<TokenId>(token))) {
        if (line.moves++ == 0) {
          line.move = token;
          line.first_wl = i + 1;
        }
        line.last_wl = i + 1;
      }
      if (token != kEndVar || line.moves == 0) continue;
      line.end = i;
      questions_.votes.push_back(line);
      line = {.row = row};
    }
  }
  MoveQuestions Finish() && {
    questions_.moves = torch::tensor(moves_, torch::kInt64);
    if (!soft_) return std::move(questions_);
    questions_.share_rows = torch::tensor(rows_, torch::kInt64);
    questions_.share_moves = torch::tensor(share_moves_, torch::kInt64);
    questions_.shares = torch::tensor(shares_, torch::kFloat32);
    return std::move(questions_);
  }

 private:
  void AddShare(int64_t row, int32_t move, float share) {
    rows_.push_back(row);
    share_moves_.push_back(move);
    shares_.push_back(share);
  }

  const Batch& batch_;
  MoveQuestions questions_;
  std::vector<int64_t> moves_;
  std::vector<int64_t> rows_;
  std::vector<int64_t> share_moves_;
  std::vector<float> shares_;
  bool soft_ = false;
};

// The legal terms of all heads, one after another.
HeadTerms LegalTerms(const Terms& terms) {
  std::vector<torch::Tensor> losses;
  std::vector<torch::Tensor> hits;
  for (const HeadTerms* head :
       {&terms.final_move, &terms.thinking_move, &terms.instinct, &terms.early_end}) {
    if (!head->legal_loss.defined()) continue;
    losses.push_back(head->legal_loss);
    hits.push_back(head->legal_hit);
  }
  if (losses.empty()) return {};
  return {.loss = {}, .hit = {}, .legal_loss = torch::cat(losses), .legal_hit = torch::cat(hits)};
}

// Of the losses that are no MoveKind.
enum : size_t {
  kBoardLoss = kMoveKinds,
  kWlLoss,
  kDLoss,
  kBranchLoss,
  kEarlyEndLoss,
  kLegalLoss,
  kLosses
};

}  // namespace

HeadTerms ScoreChoice(const torch::Tensor& logits, const torch::Tensor& targets) {
  const auto loss = torch::nll_loss(torch::log_softmax(logits, -1), targets, {},
                                    at::Reduction::None);  // (N)
  return {loss, logits.detach().argmax(-1) == targets};
}

MoveQuestions MovesOf(const Batch& batch, MoveKind kind) {
  QuestionMaker maker(batch);
  const BoardFinder boards(batch);
  const bool on_square = kind == MoveKind::kPiece || kind == MoveKind::kThreat;
  for (const MoveTarget& target : batch.moves) {
    if (target.kind != kind) continue;
    maker.Add(target.position, on_square ? -1 : boards.Of(target.position), target.move, target);
    if (kind == MoveKind::kFinal) maker.AddVotesUpTo(target.position);
  }
  return std::move(maker).Finish();
}

torch::Tensor AddVotes(const torch::Tensor& logits, const torch::Tensor& votes,
                       const MoveQuestions& questions) {
  std::vector<int64_t> cells;  // Of the N * M.
  for (const LineVote& line : questions.votes) {
    cells.push_back(line.row * logits.size(1) + line.move);
  }
  return logits.flatten()
      .index_add(0, torch::tensor(cells, torch::kInt64).to(logits.device()), votes.flatten())
      .view_as(logits);
}

std::shared_ptr<const learn::PairRows> SquareTokens() {
  static const auto tokens = [] {
    auto made = std::make_shared<learn::PairRows>();
    for (TokenId move = 0; move < kMoveVocabularySize; ++move) {
      const MoveSquares squares = SquaresOf(move);
      made->first.push_back(1 + squares.from.index());
      made->second.push_back(1 + squares.to.index());
    }
    return made;
  }();
  return tokens;
}

MoveQuestions EarlyEndsOf(const Batch& batch) {
  QuestionMaker maker(batch);
  const BoardFinder boards(batch);
  for (size_t i = 0; i < batch.branches.size(); ++i) {
    const Branch& branch = batch.branches[i];
    if (!branch.ends_thought()) continue;
    maker.Add(static_cast<int64_t>(i), boards.RootOf(branch.after), branch.final_move, branch);
    maker.AddVotesUpTo(branch.after);
  }
  return std::move(maker).Finish();
}

static void AddSquaresOf(int32_t move, int64_t board, SquarePositions& squares) {
  const auto at = static_cast<size_t>(move);
  squares.from.push_back(board < 0 ? -1 : board + SquareTokens()->first[at]);
  squares.to.push_back(board < 0 ? -1 : board + SquareTokens()->second[at]);
}

SquarePositions ValueSquaresOf(const Batch& batch, bool valid_only) {
  SquarePositions squares;
  const BoardFinder boards(batch);
  for (const ValueTarget& value : batch.values) {
    if (valid_only && !value.valid) continue;
    const int32_t at_move = value.wl_position - 1;
    AddSquaresOf(batch.ids[static_cast<size_t>(at_move)], boards.Of(at_move - 1), squares);
  }
  return squares;
}

BranchQuestions BranchValuesOf(const Batch& batch) {
  BranchQuestions questions;
  const BoardFinder boards(batch);
  std::vector<float> wl;
  for (size_t i = 0; i < batch.branches.size(); ++i) {
    if (batch.branches[i].ends_thought()) continue;
    questions.branches.push_back(static_cast<int64_t>(i));
    AddSquaresOf(batch.branches[i].token, boards.Of(batch.branches[i].after), questions.squares);
    wl.push_back(batch.branches[i].wl);
  }
  questions.wl = torch::tensor(wl, torch::kFloat32);
  return questions;
}

HeadTerms ScoreMoves(const torch::Tensor& logits, const MoveQuestions& questions) {
  const auto device = logits.device();
  const auto moves = questions.moves.to(device);
  if (!questions.shares.defined()) return ScoreChoice(logits, moves);
  const auto rows = questions.share_rows.to(device);
  const auto chosen =
      torch::log_softmax(logits, -1)
          .flatten()
          .index_select(0, rows * logits.size(1) + questions.share_moves.to(device));
  const auto sum_rows = [&](const torch::Tensor& terms) {
    return torch::zeros({logits.size(0)}, logits.options()).index_add(0, rows, terms);  // (N)
  };
  const auto best = logits.detach().argmax(-1);  // (N)
  HeadTerms terms = {sum_rows(-chosen * questions.shares.to(device)), best == moves};
  if (questions.legal_rows.empty()) return terms;
  const auto legal = torch::tensor(questions.legal_rows, torch::kInt64).to(device);  // (L)
  const auto is_best = best.index_select(0, rows) == questions.share_moves.to(device);
  constexpr double kLeast = 1e-12;  // Of a probability.
  terms.legal_loss = -torch::log(sum_rows(chosen.exp()).index_select(0, legal) + kLeast);
  terms.legal_hit = sum_rows(is_best.to(logits.dtype())).index_select(0, legal) > 0;
  return terms;
}

ShownValues TargetsAsShown(const Batch& batch) {
  ShownValues shown;
  for (const ValueTarget& value : batch.values) {
    shown.wl.push_back(value.wl);
    shown.d.push_back(value.d);
  }
  return shown;
}

torch::Tensor ValuesOfVotes(const DecoderNet& net, const Batch& batch, const ShownValues& shown,
                            const MoveQuestions& questions) {
  const auto value_at = [&](int64_t position) {
    const auto value = std::ranges::lower_bound(batch.values, position, {},
                                                [](const ValueTarget& v) { return v.wl_position; });
    CHECK(value != batch.values.end() && value->wl_position == position);
    return shown.wl[static_cast<size_t>(value - batch.values.begin())];
  };
  std::vector<float> values;
  std::vector<float> views;  // A value is for the side that moves after its move.
  for (const LineVote& line : questions.votes) {
    values.insert(values.end(), {value_at(line.first_wl), value_at(line.last_wl)});
    views.insert(views.end(),
                 {-kValueVoteScale, line.moves % 2 == 1 ? -kValueVoteScale : kValueVoteScale});
  }
  const auto& centres = net->wl_bucket_centers;
  const auto written =
      learn::NearestCentre(torch::tensor(values).to(centres.device()), centres);  // (2 votes)
  return (written * torch::tensor(views).to(centres.device())).view({-1, 2});
}

std::vector<int64_t> RootTokens(const MoveQuestions& questions) {
  std::vector<int64_t> positions = questions.positions;  // In a game the board ends there anyway.
  for (size_t i = 0; i < positions.size(); ++i) {
    if (questions.boards[i] >= 0) positions[i] = questions.boards[i] + kBoardTokens - 1;
  }
  return positions;
}

torch::Tensor ComparisonsOfVotes(const torch::Tensor& values, const torch::Tensor& logits,
                                 const MoveQuestions& questions) {
  std::vector<int64_t> cells;  // Of the N * M.
  for (const LineVote& line : questions.votes) {
    cells.push_back(line.row * logits.size(1) + line.move);
  }
  const auto numbers = Floats(values);
  const auto chosen = Floats(
      logits.flatten().index_select(0, torch::tensor(cells, torch::kInt64).to(logits.device())));
  std::vector<float> compared;
  std::vector<VotingLine> lines;  // Of one target.
  for (size_t i = 0; i < questions.votes.size(); ++i) {
    lines.push_back(
        {.first_wl = numbers[2 * i], .last_wl = numbers[2 * i + 1], .logit = chosen[i]});
    if (i + 1 < questions.votes.size() && questions.votes[i + 1].row == questions.votes[i].row) {
      continue;
    }
    for (const LineComparison& line : CompareLines(lines)) {
      compared.insert(compared.end(), {line.last_wl, line.first_wl, line.logit});
    }
    lines.clear();
  }
  return torch::tensor(compared).view({-1, 3}).to(logits.device());
}

torch::Tensor WrittenValue(const NetConfig& config, const torch::Tensor& logits,
                           const torch::Tensor& centres) {
  if (config.mean_values) return learn::ExpectedCentre(logits, centres);
  return centres.index_select(0, logits.argmax(-1));
}

void ShowOwn(const Batch& batch, const torch::Tensor& wl, const torch::Tensor& d,
             ShownValues& shown) {
  const auto own_wl = Floats(wl);
  const auto own_d = Floats(d);
  CHECK(own_wl.size() == batch.values.size() && own_d.size() == batch.values.size());
  size_t sequence = 0;
  for (size_t i = 0; i < batch.values.size(); ++i) {
    while (batch.values[i].wl_position >= batch.starts[sequence + 1]) ++sequence;
    if (batch.own_values[sequence] == 0) continue;
    shown.wl[i] = own_wl[i];
    shown.d[i] = own_d[i];
  }
}

ValueTerms ScoreValue(const torch::Tensor& logits, const torch::Tensor& targets,
                      const torch::Tensor& centres) {
  const auto mean = learn::ExpectedCentre(logits.detach(), centres);  // (N)
  return {learn::SoftBucketLoss(logits, targets, centres), (mean - targets).abs()};
}

std::vector<double> CountTargets(const Batch& batch) {
  std::vector<double> counts(kLosses);
  for (const MoveTarget& move : batch.moves) {
    ++counts[static_cast<size_t>(move.kind)];
    counts[kLegalLoss] += move.legal ? 1 : 0;
  }
  for (const int32_t target : batch.board_targets) counts[kBoardLoss] += target == kIgnore ? 0 : 1;
  for (const ValueTarget& value : batch.values) counts[kWlLoss] += value.valid ? 1 : 0;
  counts[kDLoss] = counts[kWlLoss];
  for (const Branch& branch : batch.branches) {
    ++counts[branch.ends_thought() ? kEarlyEndLoss : kBranchLoss];
    counts[kLegalLoss] += branch.legal ? 1 : 0;
  }
  return counts;
}

LossAndMetrics Combine(const Batch& batch, const Terms& terms, const LossOptions& options) {
  const LossWeights& weights = options.weights;
  const auto mean = [&](size_t kind, const torch::Tensor& loss) {
    const double count =
        options.targets.empty() ? static_cast<double>(loss.numel()) : options.targets.at(kind);
    return loss.sum() / (count + 1e-8);
  };
  const auto of = [](MoveKind kind) { return static_cast<size_t>(kind); };
  auto loss = weights.final_move * mean(of(MoveKind::kFinal), terms.final_move.loss) +
              weights.board * mean(kBoardLoss, terms.board.loss) +
              weights.wl * mean(kWlLoss, terms.wl.loss) + weights.d * mean(kDLoss, terms.d.loss);
  if (options.phase == Phase::kFinetune) {
    const auto add = [&](MoveKind kind, double weight, const torch::Tensor& part) {
      if (part.numel() > 0) loss = loss + weight * mean(of(kind), part);
    };
    loss = loss + weights.thinking_move * mean(of(MoveKind::kThinking), terms.thinking_move.loss);
    add(MoveKind::kInstinct, weights.instinct, terms.instinct.loss);
    add(MoveKind::kPiece, weights.piece_moves, terms.piece_moves.loss);
    add(MoveKind::kThreat, weights.threats, terms.threats.loss);
  }
  Scores scores;
  if (terms.branch_wl.loss.defined()) {
    loss = loss + weights.branch_wl * mean(kBranchLoss, terms.branch_wl.loss);
    scores.branch_loss = Floats(terms.branch_wl.loss);
    scores.branch_error = Floats(terms.branch_wl.error);
  }
  if (terms.early_end.loss.defined()) {
    loss = loss + weights.early_end * mean(kEarlyEndLoss, terms.early_end.loss);
    scores.early_end_loss = Floats(terms.early_end.loss);
    scores.early_end_hit = Flags(terms.early_end.hit);
  }
  if (const HeadTerms legal = LegalTerms(terms); legal.legal_loss.defined()) {
    if (weights.legal > 0) loss = loss + weights.legal * mean(kLegalLoss, legal.legal_loss);
    scores.legal_loss = Floats(legal.legal_loss);
    scores.legal_hit = Flags(legal.legal_hit);
  }
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
