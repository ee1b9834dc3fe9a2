#include "tests/support/made_sequences.h"

#include <algorithm>

namespace kibitz::testing {
namespace {

using decoder::BoardIndex;
using decoder::kBoardTokens;
using decoder::kIgnore;
using decoder::Sequence;
using decoder::TokenId;

constexpr int32_t kTokensPerMove = 3 + kBoardTokens;  // move wl d board

// Writes one sequence token by token.
class Maker {
 public:
  explicit Maker(Rng& rng) : rng_(rng) {}

  int32_t size() const { return sequence_.size(); }

  void AddBoard() {
    const int32_t begin = size();
    Add(decoder::kStartPos);
    for (int i = 0; i < 64; ++i) {
      const auto piece = static_cast<TokenId>(decoder::kWhiteKing + rng_.Below(12));
      Add(rng_.Below(2) == 0 ? piece : TokenId{decoder::kEmpty});
    }
    Add(decoder::kEndPos);
    Add(static_cast<TokenId>(decoder::kFirstCastling + rng_.Below(16)));
    Add(rng_.Below(2) == 0 ? decoder::kWhiteToMove : decoder::kBlackToMove);
    sequence_.blocks.push_back({begin, size()});
  }
  // Predicted from the token before it, whose board target becomes `announced`.
  void AddMove(TokenId announced, bool thinking) {
    const auto move = static_cast<TokenId>(rng_.Below(decoder::kMoveVocabularySize));
    sequence_.moves.push_back({size() - 1, move, thinking});
    announced_.emplace_back(size() - 1, announced);
    Add(move);
    const double win = rng_.Uniform();
    const double draw = (1 - win) * rng_.Uniform();
    const bool valid = rng_.Below(20) != 0;
    sequence_.values.push_back({.wl_position = size(),
                                .wl = valid ? static_cast<float>(2 * win + draw - 1) : 0.0F,
                                .d = valid ? static_cast<float>(draw) : 0.0F,
                                .valid = valid});
    Add(decoder::kWlValue);
    Add(decoder::kDValue);
  }
  void Add(TokenId token) { sequence_.ids.push_back(token); }

  Sequence Finish(bool thinking) {
    const auto count = sequence_.ids.size();
    sequence_.board_targets.assign(count, int8_t{kIgnore});
    for (size_t i = 0; i + 1 < count; ++i) SetTarget(i, sequence_.ids[i + 1]);
    for (const auto& [position, token] : announced_) {
      SetTarget(static_cast<size_t>(position), token);
    }
    std::fill_n(sequence_.board_targets.begin(), sequence_.moves.front().position, int8_t{kIgnore});
    sequence_.thinking = thinking;
    sequence_.first_is_not_best = thinking && rng_.Below(2) == 0;
    return std::move(sequence_);
  }

 private:
  void SetTarget(size_t position, TokenId token) {
    const int index = BoardIndex(token);
    sequence_.board_targets[position] = static_cast<int8_t>(index < 0 ? kIgnore : index);
  }

  Rng& rng_;
  Sequence sequence_;
  std::vector<std::pair<int32_t, TokenId>> announced_;
};

}  // namespace

Sequence MadeThinking(const MadeOptions& options, Rng& rng) {
  Maker maker(rng);
  maker.AddBoard();
  maker.Add(decoder::kStartThink);
  constexpr int32_t kEnd = 4;  // end_think, final move, wl, d
  for (int variation = 0; variation < options.max_variations; ++variation) {
    const int32_t room = options.max_seq_len - maker.size() - kEnd - 1;
    const auto fitting = std::min<int32_t>(options.max_depth, room / kTokensPerMove);
    if (fitting < 1) break;
    const auto depth = 1 + static_cast<int32_t>(rng.Below(static_cast<uint64_t>(fitting)));
    for (int32_t node = 0; node < depth; ++node) {
      const TokenId announced = node > 0         ? decoder::kContinueVar
                                : variation == 0 ? decoder::kGenericMove
                                                 : decoder::kNewVariation;
      maker.AddMove(announced, /*thinking=*/true);
      maker.AddBoard();
    }
    maker.Add(decoder::kEndVar);
  }
  maker.Add(decoder::kEndThink);
  maker.AddMove(decoder::kGenericMove, /*thinking=*/false);
  return maker.Finish(/*thinking=*/true);
}

Sequence MadeGame(const MadeOptions& options, Rng& rng) {
  const auto plies = 20 + static_cast<int>(rng.Below(101));
  const auto start = static_cast<int>(rng.Below(static_cast<uint64_t>(plies)));
  Maker maker(rng);
  maker.AddBoard();
  for (int ply = start; ply < plies; ++ply) {
    if (maker.size() + 3 > options.max_seq_len) break;
    maker.AddMove(decoder::kGenericMove, /*thinking=*/false);
    if (ply + 1 == plies || maker.size() + kBoardTokens > options.max_seq_len) break;
    maker.AddBoard();
  }
  return maker.Finish(/*thinking=*/false);
}

std::vector<Sequence> MadeSequences(int count, double variation_ratio, const MadeOptions& options,
                                    Rng& rng) {
  std::vector<Sequence> sequences;
  for (int i = 0; i < count; ++i) {
    const bool thinking = rng.Uniform() < variation_ratio;
    sequences.push_back(thinking ? MadeThinking(options, rng) : MadeGame(options, rng));
  }
  return sequences;
}

}  // namespace kibitz::testing
