#include "uci/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"

namespace kibitz::uci {
namespace {

using chess::Board;
using chess::Move;
using decoder::NodeValue;
using decoder::Thought;
using decoder::Variation;
using ::testing::ElementsAre;

Move Read(const Board& board, const char* text) { return *ParseMove(board, text); }

// A variation of the moves, each with its value for the side to move after it; "?" is a move that
// the rules do not know.
Variation VariationOf(const std::vector<std::pair<const char*, float>>& nodes, bool ended = true) {
  Variation variation;
  variation.ended = ended;
  std::optional<Board> board = Board();
  for (const auto& [text, wl] : nodes) {
    decoder::ThoughtNode node;
    node.value = NodeValue{.wl = wl, .d = 0.5F};
    if (board && std::string(text) != "?") {
      node.move = Read(*board, text);
      board = board->After(*node.move);
      node.after = board;
    } else {
      board.reset();
    }
    variation.nodes.push_back(node);
  }
  return variation;
}

std::vector<decoder::Candidate> CandidatesOf(const std::vector<const char*>& moves) {
  std::vector<decoder::Candidate> candidates;
  double probability = 0.5;
  for (const char* text : moves) {
    decoder::Candidate candidate;
    candidate.move = Read(Board(), text);
    candidate.probability = probability;
    probability /= 2;
    candidates.push_back(candidate);
  }
  return candidates;
}

std::string Text(std::optional<Move> move) { return move ? ToText(Board(), *move) : "none"; }

std::vector<std::string> Texts(std::span<const Line> lines) {
  std::vector<std::string> texts;
  for (const std::string& text : InfoLines(Board(), lines, {.max_lines = 10})) {
    texts.push_back(text.substr(text.find(" pv ") + 4));
  }
  return texts;
}

TEST(ReportTest, ScoresAreThoseOfLc0) {
  EXPECT_EQ(CentipawnsOf(0), 0);
  EXPECT_EQ(CentipawnsOf(0.5), 89);
  EXPECT_EQ(CentipawnsOf(-0.5), -89);
  EXPECT_EQ(CentipawnsOf(1), 12780);
  EXPECT_EQ(CentipawnsOf(-7), -12780);
}

TEST(ReportTest, ChancesSumToThousand) {
  EXPECT_THAT(PermilleOf({1.0 / 3, 1.0 / 3, 1.0 / 3}), ElementsAre(333, 334, 333));
  EXPECT_THAT(PermilleOf({1, 0, 0}), ElementsAre(1000, 0, 0));
  EXPECT_THAT(PermilleOf({0, 0, 0}), ElementsAre(0, 1000, 0));
  for (int i = 0; i <= 100; ++i) {
    for (int j = 0; j <= 100 - i; ++j) {
      const auto [win, draw, loss] =
          PermilleOf({i * 0.00999, (100 - i - j) * 0.00999, j * 0.00999});
      ASSERT_EQ(win + draw + loss, 1000);
      ASSERT_TRUE(win >= 0 && draw >= 0 && loss >= 0);
    }
  }
}

TEST(ReportTest, PlaysTheFinalMove) {
  Thought thought;
  thought.end = decoder::ThoughtEnd::kFinished;
  thought.move = Read(Board(), "g1f3");
  thought.final_move = CandidatesOf({"g1f3"})[0];
  thought.candidates = CandidatesOf({"e2e4", "g1f3", "d2d4"});
  thought.instinct = CandidatesOf({"c2c4"});
  EXPECT_EQ(Text(MoveOf(thought, {})), "g1f3");
  const std::vector<Move> allowed = {Read(Board(), "d2d4")};
  EXPECT_EQ(Text(MoveOf(thought, allowed)), "d2d4");
  // Cut off while the final move's value was written.
  thought.end = decoder::ThoughtEnd::kCancelled;
  EXPECT_EQ(Text(MoveOf(thought, {})), "g1f3");
}

TEST(ReportTest, PlaysTheBestOfWhatWasFinished) {
  Thought thought;
  EXPECT_EQ(Text(MoveOf(thought, {})), "none");
  thought.instinct = CandidatesOf({"e2e4", "d2d4", "c2c4"});
  EXPECT_EQ(Text(MoveOf(thought, {})), "e2e4");
  // Bad for the opponent is good for us. The instinct's move was not looked at yet.
  thought.variations = {VariationOf({{"d2d4", -0.3F}}), VariationOf({{"c2c4", -0.1F}})};
  EXPECT_EQ(Text(MoveOf(thought, {})), "e2e4");
  thought.variations.push_back(VariationOf({{"e2e4", -0.2F}}, /*ended=*/false));
  EXPECT_EQ(Text(MoveOf(thought, {})), "e2e4");
  thought.variations.back().ended = true;
  EXPECT_EQ(Text(MoveOf(thought, {})), "d2d4");
  const std::vector<Move> allowed = {Read(Board(), "c2c4")};
  EXPECT_EQ(Text(MoveOf(thought, allowed)), "c2c4");
  // A variation that begins with nonsense is none.
  thought.variations.push_back(VariationOf({{"?", -0.9F}}));
  EXPECT_EQ(Text(MoveOf(thought, {})), "d2d4");
}

TEST(ReportTest, LinesAreLegalSortedAndEachFirstMoveOnce) {
  Thought thought;
  thought.variations = {VariationOf({{"e2e4", 0.1F}, {"e7e5", 0}}),
                        VariationOf({{"d2d4", -0.2F}, {"?", 0}, {"c2c4", 0}}),
                        VariationOf({{"e2e4", 0.1F}, {"e7e5", 0}, {"g1f3", 0}}),
                        VariationOf({{"?", -1}})};
  EXPECT_THAT(Texts(LinesOf(thought, {})), ElementsAre("d2d4", "e2e4 e7e5 g1f3"));
  EXPECT_EQ(NodesOf(thought), 9);
  EXPECT_EQ(MovesBeyond(thought), 3);
  EXPECT_THAT(Texts(LinesOf(thought, {}, Read(Board(), "e2e4"))),
              ElementsAre("e2e4 e7e5 g1f3", "d2d4"));
  EXPECT_THAT(Texts(LinesOf(thought, {}, Read(Board(), "a2a3"))),
              ElementsAre("a2a3", "d2d4", "e2e4 e7e5 g1f3"));
  const std::vector<Move> allowed = {Read(Board(), "d2d4")};
  EXPECT_THAT(Texts(LinesOf(thought, allowed)), ElementsAre("d2d4"));
  // The final move has a value of its own.
  thought.final_move = CandidatesOf({"e2e4"})[0];
  thought.final_value = NodeValue{.wl = 0.7F, .d = 0.1F};
  EXPECT_EQ(LinesOf(thought, {}, Read(Board(), "e2e4"))[0].value, thought.final_value);
  EXPECT_FLOAT_EQ(LinesOf(thought, {}, Read(Board(), "d2d4"))[0].value->wl, 0.2F);
}

TEST(ReportTest, WritesInfo) {
  const std::vector<Line> lines = {
      {{Read(Board(), "e2e4")}, NodeValue{.wl = 0.5F, .d = 0.3F}},
      {{Read(Board(), "d2d4"), Read(Board().After(Read(Board(), "d2d4")), "d7d5")}, {}}};
  EXPECT_THAT(
      InfoLines(Board(), lines,
                {.nodes = 5, .milliseconds = 250, .max_lines = 2, .show_wdl = true}),
      ElementsAre("info depth 1 seldepth 2 multipv 1 score cp 89 wdl 600 300 100 nodes 5 nps 20 "
                  "time 250 pv e2e4",
                  "info depth 2 seldepth 2 multipv 2 nodes 5 nps 20 time 250 pv d2d4 d7d5"));
  EXPECT_EQ(InfoLines(Board(), lines, {}).size(), 1U);
  EXPECT_TRUE(InfoLines(Board(), {}, {}).empty());
  EXPECT_THAT(PolicyLines(Board(), CandidatesOf({"e2e4", "d2d4"}), {}, 5),
              ElementsAre("info string policy e2e4 50.00%", "info string policy d2d4 25.00%"));
}

TEST(ReportTest, PredictionsBecomeLines) {
  decoder::Prediction prediction;
  EXPECT_EQ(Text(MoveOf(prediction, {})), "none");
  prediction.candidates = CandidatesOf({"e2e4", "d2d4", "c2c4"});
  prediction.chosen = prediction.candidates[1];  // Drawn at a temperature.
  prediction.value = NodeValue{.wl = 0.1F, .d = 0.5F};
  EXPECT_EQ(Text(MoveOf(prediction, {})), "d2d4");
  const auto lines = LinesOf(prediction, {}, Read(Board(), "d2d4"));
  EXPECT_THAT(Texts(lines), ElementsAre("d2d4", "e2e4", "c2c4"));
  EXPECT_EQ(lines[0].value, prediction.value);
  EXPECT_FALSE(lines[1].value);
  const std::vector<Move> allowed = {Read(Board(), "c2c4")};
  EXPECT_EQ(Text(MoveOf(prediction, allowed)), "c2c4");
  EXPECT_FALSE(LinesOf(prediction, allowed, allowed[0])[0].value);
}

}  // namespace
}  // namespace kibitz::uci
