// The terms of the five losses and their weighted sum. Shared by both versions of the loss.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "learn/pair_logits.h"
#include "students/decoder/net/loss.h"

namespace kibitz::decoder {

// Of one head: the loss of each term, and whether its argmax is the target.
struct HeadTerms {
  torch::Tensor loss;  // (N)
  torch::Tensor hit;   // (N) bool
  // Of the targets that are `legal`: -log of the probability of all legal moves together, and
  // whether the argmax is one of them. Not there without any.
  torch::Tensor legal_loss = {};
  torch::Tensor legal_hit = {};
};
// Cross-entropy over a vocabulary. logits: (N, vocabulary); targets: (N).
HeadTerms ScoreChoice(const torch::Tensor& logits, const torch::Tensor& targets);

// A variation that votes for its first move. Positions are in the pack.
struct LineVote {
  int64_t end = 0;   // Of its end_var.
  int64_t row = 0;   // The target that it votes on.
  int64_t move = 0;  // Its first.
  int64_t first_wl = 0;
  int64_t last_wl = 0;
  int moves = 0;
};

// The targets of one kind of move, in the order of the batch.
struct MoveQuestions {
  std::vector<int64_t> positions;  // (N) In the pack; of EarlyEndsOf, among the branches.
  torch::Tensor moves;             // (N)
  // (N) Where the board begins whose squares its move reads (NetConfig::square_policy); -1: none.
  std::vector<int64_t> boards;
  std::vector<LineVote> votes;  // Of the variations before a move after a thought.
  // Of soft targets: share `shares[i]` of target `share_rows[i]` is for `share_moves[i]`. Not there
  // when every target is one move.
  torch::Tensor share_rows;
  torch::Tensor share_moves;
  torch::Tensor shares;
  std::vector<int64_t> legal_rows;  // Targets whose shares are of all legal moves.
};
MoveQuestions MovesOf(const Batch& batch, MoveKind kind);
// Adds the votes of the variations, in their order. logits: (N, M).
torch::Tensor AddVotes(const torch::Tensor& logits, const torch::Tensor& votes,
                       const MoveQuestions& questions);
// The squares of a move token as tokens of a board.
std::shared_ptr<const learn::PairRows> SquareTokens();
// The final moves of branches that end the thought.
MoveQuestions EarlyEndsOf(const Batch& batch);
// The squares of moves on their boards, in the pack; -1 for a move without a whole board.
struct SquarePositions {
  std::vector<int64_t> from;
  std::vector<int64_t> to;
};
// Of all values, or of the valid ones.
SquarePositions ValueSquaresOf(const Batch& batch, bool valid_only);
// The branches that are moves, and their values.
struct BranchQuestions {
  std::vector<int64_t> branches;  // Among the batch's.
  SquarePositions squares;
  torch::Tensor wl;  // (N)
};
BranchQuestions BranchValuesOf(const Batch& batch);
// Cross-entropy with one move or with a distribution. logits: (N, moves).
HeadTerms ScoreMoves(const torch::Tensor& logits, const MoveQuestions& questions);

struct ValueTerms {
  torch::Tensor loss;   // (N)
  torch::Tensor error;  // (N) Absolute, of the distribution's mean.
};
ValueTerms ScoreValue(const torch::Tensor& logits, const torch::Tensor& targets,
                      const torch::Tensor& centres);

// In the order of the batch's lists.
struct Terms {
  HeadTerms board;  // Scored tokens.
  HeadTerms final_move;
  HeadTerms thinking_move;  // Not there in pretraining, as the next.
  HeadTerms instinct;
  HeadTerms piece_moves;
  HeadTerms threats;
  ValueTerms wl;  // Values that are `valid`.
  ValueTerms d;
  ValueTerms branch_wl;  // Branches that are moves; not there without any, as the next.
  HeadTerms early_end;   // Branches that end the thought.
};

// What the wl and d tokens show, in the order of the batch's values.
struct ShownValues {
  std::vector<float> wl;
  std::vector<float> d;
};
ShownValues TargetsAsShown(const Batch& batch);
// What value_vote reads of each vote's variation, scaled: (votes, 2).
torch::Tensor ValuesOfVotes(const DecoderNet& net, const Batch& batch, const ShownValues& shown,
                            const MoveQuestions& questions);
// With compared_votes: the moves are predicted by the last token of the root, not behind the
// thought. In the pack.
std::vector<int64_t> RootTokens(const MoveQuestions& questions);
// What compare_vote reads of each vote's variation, scaled: (votes, 3). values: of ValuesOfVotes;
// logits: (N, M), before the votes.
torch::Tensor ComparisonsOfVotes(const torch::Tensor& values, const torch::Tensor& logits,
                                 const MoveQuestions& questions);
// The value that the network writes itself. logits: (N, K).
torch::Tensor WrittenValue(const NetConfig& config, const torch::Tensor& logits,
                           const torch::Tensor& centres);  // (N)
// Replaces the values of sequences with `own_values` by the network's, in the order of the batch's
// values.
void ShowOwn(const Batch& batch, const torch::Tensor& wl, const torch::Tensor& d,
             ShownValues& shown);

LossAndMetrics Combine(const Batch& batch, const Terms& terms, const LossOptions& options);

}  // namespace kibitz::decoder
