#include "students/decoder/data/thinking_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "students/decoder/data/records.h"
#include "students/decoder/data/tokens.h"
#include "tests/support/decoder_records.h"
#include "tests/support/test_data.h"

namespace kibitz::decoder {
namespace {

SearchRow Read(const kibitz::testing::SearchRecord& record) {
  SkipCounter skipped;
  auto row = SearchReader("test").Read(
      {record.fen, record.variations, record.mcts_action, {record.win, record.draw, record.loss}},
      0, skipped);
  if (!row) throw Error(skipped.Text());
  return *row;
}

std::vector<SearchRow> MadeRows(uint64_t count) {
  std::vector<SearchRow> rows;
  kibitz::testing::MakeSearches({.count = count, .seed = 5},
                                [&](const auto& record) { rows.push_back(Read(record)); });
  return rows;
}

// Chance of a chi-square value at least this large, by the normal approximation of Wilson and
// Hilferty; good to a few percent from two degrees of freedom on.
double ChiSquareP(double chi_square, double degrees) {
  const double z =
      (std::cbrt(chi_square / degrees) - (1 - 2 / (9 * degrees))) / std::sqrt(2 / (9 * degrees));
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

TEST(ThinkingSequenceTest, TemperatureTable) {
  const auto tau = [](double w, double d, double l) { return Temperature(Wdl{w, d, l}, 0.3, 1.0); };
  EXPECT_NEAR(ResultVariance({0.90, 0.08, 0.02}), 0.1456,
              1e-12);  // The document's 0.148 is a slip.
  EXPECT_NEAR(tau(0.90, 0.08, 0.02), 0.344, 5e-4);
  EXPECT_NEAR(tau(0.15, 0.70, 0.15), 0.390, 5e-4);
  EXPECT_NEAR(tau(0.45, 0.10, 0.45), 0.570, 5e-4);
  EXPECT_NEAR(tau(0.50, 0.00, 0.50), 0.600, 5e-4);
  EXPECT_EQ(Temperature(std::nullopt, 0.3, 1.0), 0.3);
}

TEST(ThinkingSequenceTest, FirstMovesFollowSoftmax) {
  const std::vector<std::vector<double>> cases = {
      {0.5, 0.3, 0.2}, {0.86, 0.14, 0.0}, {0.25, 0.25, 0.25, 0.25}, {0.7, 0.1, 0.1, 0.05, 0.05}};
  uint64_t number = 0;
  for (const std::vector<double>& fractions : cases) {
    for (double tau : {0.3, 0.57}) {
      constexpr int kDraws = 100'000;
      std::vector<double> first(fractions.size());
      for (int i = 0; i < kDraws; ++i) {
        Rng rng({.seed = 11, .sample = number++, .purpose = Purpose("thought")});
        ++first[static_cast<size_t>(DrawOrder(fractions, tau, rng)[0] - 1)];
      }
      double sum = 0;
      for (double p : fractions) sum += std::exp(p / tau);
      double chi_square = 0;
      for (size_t i = 0; i < fractions.size(); ++i) {
        const double expected = kDraws * std::exp(fractions[i] / tau) / sum;
        chi_square += (first[i] - expected) * (first[i] - expected) / expected;
      }
      EXPECT_GT(ChiSquareP(chi_square, static_cast<double>(fractions.size() - 1)), 0.001)
          << "chi-square " << chi_square;
    }
  }
}

TEST(ThinkingSequenceTest, DepthsAreUniformUpToWhatThereIs) {
  const std::vector<SearchRow> rows = MadeRows(20);
  for (int max_depth : {3, 5}) {
    // By available depth and place shown, how often each depth came.
    std::map<size_t, std::vector<double>> counts;
    uint64_t row_number = 0;
    for (const SearchRow& row : rows) {
      ++row_number;
      for (uint64_t i = 0; i < 4000; ++i) {
        Rng rng({.seed = 12, .epoch = i, .sample = row_number, .purpose = Purpose("thought")});
        const ThinkingResult result =
            Think(row, {.max_seq_len = 1 << 20, .max_depth = max_depth}, rng);
        const ThinkingAttempt& attempt = result.attempts.back();
        for (size_t v = 0; v < attempt.ranking.size(); ++v) {
          const SearchVariation& variation =
              row.variations[static_cast<size_t>(attempt.ranking[v] - 1)];
          const size_t available =
              std::min<size_t>(variation.node_count, static_cast<size_t>(max_depth));
          std::vector<double>& count = counts[available];
          count.resize(available);
          ++count[static_cast<size_t>(attempt.depths[v] - 1)];
        }
      }
    }
    for (const auto& [available, count] : counts) {
      if (available < 2) continue;
      double total = 0;
      for (double n : count) total += n;
      const double expected = total / static_cast<double>(available);
      double chi_square = 0;
      for (double n : count) chi_square += (n - expected) * (n - expected) / expected;
      EXPECT_GT(ChiSquareP(chi_square, static_cast<double>(available - 1)), 0.001)
          << available << " nodes: chi-square " << chi_square;
    }
    EXPECT_EQ(counts.rbegin()->first, static_cast<size_t>(max_depth));
  }
}

Rng RngOf(uint64_t sample) {
  return Rng({.seed = 13, .sample = sample, .purpose = Purpose("thought")});
}

TEST(ThinkingSequenceTest, MinDepthWhereTheLineIsLongEnough) {
  for (const SearchRow& row : MadeRows(20)) {
    Rng rng = RngOf(1);
    const ThinkingResult result =
        Think(row, {.max_seq_len = 1 << 20, .max_depth = 3, .min_depth = 3}, rng);
    const ThinkingAttempt& attempt = result.attempts.back();
    for (size_t v = 0; v < attempt.ranking.size(); ++v) {
      const auto rank = static_cast<size_t>(attempt.ranking[v] - 1);
      EXPECT_EQ(attempt.depths[v], std::min(3, static_cast<int>(row.variations[rank].node_count)));
    }
  }
}

TEST(ThinkingSequenceTest, CandidatesAreDrawnFromAllVariations) {
  SearchRow row = MadeRows(1).front();
  ASSERT_GE(row.variations.size(), 3U);
  row.variations.resize(3);
  const double fractions[] = {0.6, 0.3, 0.1};
  const double priors[] = {0.2, 0.1, 0.7};
  for (size_t i = 0; i < 3; ++i) {
    row.variations[i].visit_fraction = fractions[i];
    row.variations[i].prior = priors[i];
  }
  for (const bool by_prior : {false, true}) {
    std::map<int, int> first;
    for (uint64_t i = 0; i < 20'000; ++i) {
      Rng rng = RngOf(i);
      const ThinkingOptions options{.max_seq_len = 1 << 20,
                                    .max_variations = 1,
                                    .draw_candidates = true,
                                    .candidates_by_prior = by_prior};
      ++first[Think(row, options, rng).attempts.back().ranking.at(0)];
    }
    for (int rank : {1, 2, 3}) {
      EXPECT_NEAR(first[rank] / 20'000.0, (by_prior ? priors : fractions)[rank - 1], 0.015);
    }
  }
}

float ShareOf(const Sequence& sequence, const MoveTarget& target, TokenId move) {
  float sum = 0;
  float result = 0;
  for (uint32_t i = 0; i < target.share_count; ++i) {
    const MoveShare& share = sequence.shares[target.first_share + i];
    sum += share.share;
    if (share.move == move) result += share.share;
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  return result;
}

TEST(ThinkingSequenceTest, SoftTargetsAreFractionsOfWhatIsLeft) {
  ThinkingOptions options{.max_seq_len = 1 << 20, .max_depth = 2};
  options.soft_targets = true;
  options.instinct_target = true;
  options.early_ends = true;
  for (const SearchRow& row : MadeRows(20)) {
    Rng rng = RngOf(2);
    const Sequence s = ThinkingSequence(row, options, rng);
    ASSERT_EQ(s.moves.front().kind, MoveKind::kInstinct);
    EXPECT_EQ(s.moves.front().position, kBoardTokens - 1);
    double left = 0;
    for (const SearchVariation& variation : row.variations) left += variation.visit_fraction;
    const double all = left;
    size_t ends = 0;
    for (const MoveTarget& target : s.moves) {
      const TokenId before = s.ids[static_cast<size_t>(target.position)];
      const bool new_line = before == kStartThink || before == kEndVar;
      if (target.kind == MoveKind::kThinking && !new_line) {
        EXPECT_EQ(target.share_count, 0U);  // The reply of the line.
        continue;
      }
      for (const SearchVariation& variation : row.variations) {
        const float share = ShareOf(s, target, variation.root_move);
        if (share == 0) continue;
        EXPECT_NEAR(share, variation.visit_fraction / (new_line ? left : all), 1e-5);
      }
      if (!new_line) continue;
      const TokenId shown = s.ids[static_cast<size_t>(target.position) + 1];
      EXPECT_EQ(before == kStartThink ? 0 : 1, static_cast<int>(before == kEndVar));
      if (before == kEndVar) {
        EXPECT_EQ(s.branches.at(ends).after, target.position);
        EXPECT_EQ(s.branches.at(ends++).final_move, row.best_move);
      }
      for (const SearchVariation& variation : row.variations) {
        if (variation.root_move == shown) left -= variation.visit_fraction;
      }
    }
    EXPECT_EQ(ends, s.branches.size());
  }
}

TEST(ThinkingSequenceTest, ARootAloneHasItsTargets) {
  ThinkingOptions options{.no_thought_prob = 1};
  options.instinct_target = true;
  options.branch_values = 2;
  for (const SearchRow& row : MadeRows(20)) {
    Rng rng = RngOf(3);
    const Sequence s = ThinkingSequence(row, options, rng);
    ASSERT_EQ(s.size(), kBoardTokens + 1);
    ASSERT_EQ(s.moves.size(), 2U);
    EXPECT_EQ(s.moves[1].kind, MoveKind::kThinking);
    for (int8_t target : s.board_targets) EXPECT_EQ(target, kIgnore);
    for (const Branch& branch : s.branches) {
      EXPECT_EQ(branch.after, kBoardTokens);
      const auto of_move = [&](const SearchVariation& v) { return v.root_move == branch.token; };
      const auto found = std::ranges::find_if(row.variations, of_move);
      ASSERT_NE(found, row.variations.end());
      EXPECT_EQ(branch.wl, row.NodesOf(*found)[0].wl);
    }
  }
}

TEST(ThinkingSequenceTest, MovesAreValuedWhereverAVariationCouldBegin) {
  ThinkingOptions options;
  options.branch_values = 8;
  options.early_ends = true;
  std::set<TokenId> before;
  for (const SearchRow& row : MadeRows(20)) {
    Rng rng = RngOf(4);
    const Sequence s = ThinkingSequence(row, options, rng);
    EXPECT_TRUE(std::ranges::is_sorted(s.branches, {}, &Branch::after));
    for (const Branch& branch : s.branches) {
      if (!branch.ends_thought()) before.insert(s.ids[static_cast<size_t>(branch.after)]);
    }
  }
  EXPECT_EQ(before, (std::set<TokenId>{kStartThink, kEndVar}));
}

TEST(ThinkingSequenceTest, AllLegalMovesHaveTheLegalShare) {
  ThinkingOptions options{.no_thought_prob = 1};
  options.soft_targets = true;
  options.legal_share = 0.4;
  for (const SearchRow& row : MadeRows(20)) {
    Rng rng = RngOf(3);
    const Sequence s = ThinkingSequence(row, options, rng);
    double all = 0;
    for (const SearchVariation& variation : row.variations) all += variation.visit_fraction;
    const chess::MoveList legal = chess::LegalMoves(row.root);
    for (const chess::Move move : legal) {
      double expected = 0.4 / static_cast<double>(legal.size());
      for (const SearchVariation& variation : row.variations) {
        if (variation.root_move == TokenOf(move)) expected += 0.6 * variation.visit_fraction / all;
      }
      EXPECT_NEAR(ShareOf(s, s.moves.at(0), TokenOf(move)), expected, 1e-5);
    }
    EXPECT_TRUE(s.moves.at(0).legal);
    EXPECT_EQ(s.moves.at(0).share_count, legal.size());  // Each move once.
  }
}

TEST(ThinkingSequenceTest, RepliesKnowTheirLegalMoves) {
  ThinkingOptions options{.min_depth = 2};
  options.soft_targets = true;
  int replies = 0;
  for (const SearchRow& row : MadeRows(20)) {
    for (const double share : {0.0, 0.4}) {
      options.legal_share = share;
      Rng rng = RngOf(3);
      const Sequence s = ThinkingSequence(row, options, rng);
      for (const MoveTarget& target : s.moves) {
        const auto at = static_cast<size_t>(target.position);
        if (target.kind != MoveKind::kThinking || s.ids[at] == kStartThink || s.ids[at] == kEndVar)
          continue;
        EXPECT_EQ(target.legal, share > 0);
        if (share == 0) continue;
        ++replies;
        const auto board = *BoardOf(std::span(s.ids).subspan(at + 1 - kBoardTokens, kBoardTokens));
        const chess::MoveList legal = chess::LegalMoves(board);
        const double each = 0.4 / static_cast<double>(legal.size());
        for (const chess::Move move : legal) {
          const double expected = each + (TokenOf(move) == target.move ? 0.6 : 0);
          EXPECT_NEAR(ShareOf(s, target, TokenOf(move)), expected, 1e-5);
        }
      }
    }
  }
  EXPECT_GT(replies, 20);
}

TEST(ThinkingSequenceTest, MirrorsAsOftenAsAsked) {
  ThinkingOptions options{.mirror_prob = 0.5};
  int swapped = 0;
  uint64_t number = 0;
  for (const SearchRow& row : MadeRows(300)) {
    Rng rng = RngOf(number++);
    const Sequence s = ThinkingSequence(row, options, rng);
    const bool white = row.root.side_to_move() == chess::Color::kWhite;
    swapped += s.ids[kBoardTokens - 1] != (white ? kWhiteToMove : kBlackToMove) ? 1 : 0;
  }
  EXPECT_NEAR(swapped, 150, 45);
}

TEST(ThinkingSequenceTest, EveryPieceThatCanMoveHasItsLegalMovesAsATarget) {
  ThinkingOptions options{.no_thought_prob = 1};
  options.piece_moves = true;
  for (const SearchRow& row : MadeRows(20)) {
    Rng rng = RngOf(3);
    const Sequence s = ThinkingSequence(row, options, rng);
    std::map<int, std::map<TokenId, double>> legal;  // By position; values are for the mover.
    for (const chess::Move move : chess::LegalMoves(row.root)) {
      legal[1 + move.from().index()][TokenOf(move)] = -2;
    }
    for (const SearchVariation& variation : row.variations) {
      for (auto& [position, moves] : legal) {
        const auto found = moves.find(variation.root_move);
        if (found != moves.end()) found->second = -row.NodesOf(variation)[0].wl;
      }
    }
    for (const MoveTarget& target : s.moves) {
      if (target.kind != MoveKind::kPiece) continue;
      const auto& moves = legal.at(target.position);
      ASSERT_EQ(target.share_count, moves.size());
      const auto best = static_cast<TokenId>(target.move);
      for (const auto& [move, value] : moves) {
        const float share = ShareOf(s, target, move);
        EXPECT_GE(share, 0.499 / static_cast<double>(moves.size()));
        EXPECT_LE(share, ShareOf(s, target, best));
        EXPECT_LE(value, moves.at(best));
      }
      legal.erase(target.position);
    }
    EXPECT_TRUE(legal.empty());
  }
}

TEST(ThinkingSequenceTest, SquaresHaveTheMovesThatEndThereAndTheOpponents) {
  ThinkingOptions options{.no_thought_prob = 1};
  options.piece_moves = true;
  options.square_moves = true;
  for (const SearchRow& row : MadeRows(20)) {
    Rng rng = RngOf(3);
    const Sequence s = ThinkingSequence(row, options, rng);
    std::map<std::pair<MoveKind, int>, std::set<TokenId>> expected;
    const auto expect = [&](MoveKind kind, const chess::Board& board) {
      for (const chess::Move move : chess::LegalMoves(board)) {
        expected[{kind, 1 + move.from().index()}].insert(TokenOf(move));
        if (move.kind() == chess::Move::Kind::kCastle) continue;
        expected[{kind, 1 + move.to().index()}].insert(TokenOf(move));
      }
    };
    expect(MoveKind::kPiece, row.root);
    if (!row.root.InCheck()) expect(MoveKind::kThreat, row.root.AfterNull());
    int last = 0;
    for (const MoveTarget& target : s.moves) {
      EXPECT_GE(target.position, last);
      last = target.position;
      if (target.kind != MoveKind::kPiece && target.kind != MoveKind::kThreat) continue;
      const auto found = expected.find({target.kind, target.position});
      ASSERT_NE(found, expected.end());
      for (const TokenId move : found->second) EXPECT_GT(ShareOf(s, target, move), 0);
      EXPECT_EQ(target.share_count, found->second.size());
      expected.erase(found);
    }
    EXPECT_TRUE(expected.empty());
  }
}

// Targets said again in the words of the document, from the tokens alone.
TEST(ThinkingSequenceTest, TargetsFollowFromTheTokens) {
  for (const SearchRow& row : MadeRows(300)) {
    Rng rng({.seed = 13});
    const Sequence s = ThinkingSequence(row, {}, rng);
    ASSERT_LE(s.size(), 1024);
    std::map<int, MoveTarget> moves;
    for (const MoveTarget& move : s.moves) moves[move.position] = move;
    for (int i = 0; i < s.size(); ++i) {
      const auto at = static_cast<size_t>(i);
      const TokenId next = i + 1 < s.size() ? s.ids[at + 1] : TokenId{kPad};
      int expected = kIgnore;
      if (i >= 68 && i + 1 < s.size()) {
        TokenId token = next;
        if (IsMove(next)) {
          token = s.ids[at] == kEndVar                                 ? kNewVariation
                  : s.ids[at] == kStartThink || s.ids[at] == kEndThink ? kGenericMove
                                                                       : kContinueVar;
        }
        expected = BoardIndex(token);
      }
      ASSERT_EQ(s.board_targets[at], expected) << "position " << i;
      ASSERT_EQ(moves.contains(i), IsMove(next)) << "position " << i;
      if (!IsMove(next)) continue;
      EXPECT_EQ(moves[i].move, next);
      EXPECT_EQ(moves[i].kind == MoveKind::kThinking, s.ids[at] != kEndThink);
    }
    for (const Block& block : s.blocks) {
      ASSERT_EQ(block.end - block.begin, kBoardTokens);
      ASSERT_TRUE(BoardOf(std::span(s.ids).subspan(static_cast<size_t>(block.begin), 68)));
    }
    EXPECT_EQ(s.first_is_not_best, s.ids[69] != row.best_move);
  }
}

TEST(ThinkingSequenceTest, LongThoughtsShrinkUntilTheyFit) {
  for (const SearchRow& row : MadeRows(100)) {
    for (int limit : {145, 200, 300, 500}) {
      Rng rng({.seed = 14});
      EXPECT_LE(ThinkingSequence(row, {.max_seq_len = limit}, rng).size(), limit);
    }
    Rng rng({.seed = 14});
    EXPECT_FALSE(Think(row, {.max_seq_len = 144}, rng).sequence);
  }
}

TEST(ThinkingSequenceTest, AMateWithoutNodesTeachesItsPosition) {
  kibitz::testing::SearchRecord record{
      .fen = "6k1/5ppp/8/8/8/8/8/R6K w - - 0 1",
      .variations = R"([{"root_move":"a1a8","visit_count":90,"visit_fraction":0.9,"nodes":[]},
                        {"root_move":"a1b1","visit_count":10,"visit_fraction":0.1,"nodes":[]}])",
      .mcts_action = "a1a8",
      .win = 1,
      .draw = 0,
      .loss = 0};
  const SearchRow row = Read(record);
  Rng rng({.seed = 1});
  const ThinkingResult with = Think(row, {}, rng, {.ranking = {1, 2}, .depths = {}});
  ASSERT_TRUE(with.sequence);
  EXPECT_EQ(with.sequence->size(), kShortestThought);
  EXPECT_EQ(with.sequence->values[0], (ValueTarget{70, -1, 0, true}));  // The mated side's view.
  EXPECT_FALSE(Think(row, {.terminal_leaves = false}, rng).sequence);

  record.fen = "7k/5K2/8/6Q1/8/8/8/8 w - - 0 1";
  record.variations = R"([{"root_move":"g5g6","visit_count":9,"nodes":[]}])";  // Stalemate.
  record.mcts_action = "g5g6";
  const Sequence draw = ThinkingSequence(Read(record), {}, rng);
  EXPECT_EQ(draw.values[0], (ValueTarget{70, 0, 1, true}));
}

TEST(ThinkingSequenceTest, FixedChoicesThatDoNotFitAreRefused) {
  SearchRow row;
  for (const SearchRow& made : MadeRows(50)) {
    if (made.variations.size() == 2) row = made;
  }
  ASSERT_EQ(row.variations.size(), 2);
  Rng rng({.seed = 1});
  const auto message = [&](const ThinkingChoices& fixed) {
    return kibitz::testing::MessageOf([&] { (void)Think(row, {}, rng, fixed); });
  };
  EXPECT_EQ(message({.ranking = {2, 1}, .depths = {1, 1}}), "");
  EXPECT_NE(message({.ranking = {1}, .depths = {}}).find("1 to 2"), std::string::npos);
  EXPECT_NE(message({.ranking = {1, 1}, .depths = {}}).find("1 to 2"), std::string::npos);
  EXPECT_NE(message({.ranking = {1, 2, 3}, .depths = {}}).find("1 to 2"), std::string::npos);
  EXPECT_NE(message({.ranking = {}, .depths = {1}}).find("1 depths"), std::string::npos);
  EXPECT_NE(message({.ranking = {}, .depths = {0, 1}}).find("at least 1"), std::string::npos);
}

}  // namespace
}  // namespace kibitz::decoder
