#include "players/thought_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"

namespace kibitz::players {
namespace {

using chess::Board;
using chess::Move;
using decoder::NodeValue;
using decoder::Thought;
using Variation = decltype(Thought::variations)::value_type;
using ::testing::ElementsAre;

Move Read(const Board& board, const char* text) { return *ParseMove(board, text); }

std::vector<Move> All() {
  const chess::MoveList moves = chess::LegalMoves(Board());
  return {moves.begin(), moves.end()};
}

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

std::string TextOf(std::optional<Move> move) { return move ? ToText(Board(), *move) : "none"; }

std::vector<std::string> Texts(const std::vector<Line>& lines) {
  std::vector<std::string> texts;
  for (const Line& line : lines) {
    Board board;
    std::string text;
    for (Move move : line.pv) {
      text += (text.empty() ? "" : " ") + ToText(board, move);
      board = board.After(move);
    }
    texts.push_back(text);
  }
  return texts;
}

TEST(ThoughtLinesTest, PlaysTheFinalMove) {
  Thought thought;
  thought.end = decoder::ThoughtEnd::kFinished;
  thought.move = Read(Board(), "g1f3");
  thought.final_move = CandidatesOf({"g1f3"})[0];
  thought.candidates = CandidatesOf({"e2e4", "g1f3", "d2d4"});
  thought.instinct = CandidatesOf({"c2c4"});
  EXPECT_EQ(TextOf(MoveOf(thought, All())), "g1f3");
  const std::vector<Move> allowed = {Read(Board(), "d2d4")};
  EXPECT_EQ(TextOf(MoveOf(thought, allowed)), "d2d4");
  // Cut off while the final move's value was written.
  thought.end = decoder::ThoughtEnd::kCancelled;
  EXPECT_EQ(TextOf(MoveOf(thought, All())), "g1f3");
}

TEST(ThoughtLinesTest, PlaysTheBestOfWhatWasFinished) {
  Thought thought;
  EXPECT_EQ(TextOf(MoveOf(thought, All())), "none");
  thought.instinct = CandidatesOf({"e2e4", "d2d4", "c2c4"});
  EXPECT_EQ(TextOf(MoveOf(thought, All())), "e2e4");
  // Bad for the opponent is good for us. The instinct's move was not looked at yet.
  thought.variations = {VariationOf({{"d2d4", -0.3F}}), VariationOf({{"c2c4", -0.1F}})};
  EXPECT_EQ(TextOf(MoveOf(thought, All())), "e2e4");
  thought.variations.push_back(VariationOf({{"e2e4", -0.2F}}, /*ended=*/false));
  EXPECT_EQ(TextOf(MoveOf(thought, All())), "e2e4");
  thought.variations.back().ended = true;
  EXPECT_EQ(TextOf(MoveOf(thought, All())), "d2d4");
  const std::vector<Move> allowed = {Read(Board(), "c2c4")};
  EXPECT_EQ(TextOf(MoveOf(thought, allowed)), "c2c4");
  // A variation that begins with nonsense is none.
  thought.variations.push_back(VariationOf({{"?", -0.9F}}));
  EXPECT_EQ(TextOf(MoveOf(thought, All())), "d2d4");
}

TEST(ThoughtLinesTest, LinesAreLegalSortedAndEachFirstMoveOnce) {
  Thought thought;
  thought.variations = {VariationOf({{"e2e4", 0.1F}, {"e7e5", 0}}),
                        VariationOf({{"d2d4", -0.2F}, {"?", 0}, {"c2c4", 0}}),
                        VariationOf({{"e2e4", 0.1F}, {"e7e5", 0}, {"g1f3", 0}}),
                        VariationOf({{"?", -1}})};
  EXPECT_THAT(Texts(LinesOf(thought, All(), {})), ElementsAre("d2d4", "e2e4 e7e5 g1f3"));
  EXPECT_EQ(NodesOf(thought), 9);
  EXPECT_THAT(Texts(LinesOf(thought, All(), Read(Board(), "e2e4"))),
              ElementsAre("e2e4 e7e5 g1f3", "d2d4"));
  EXPECT_THAT(Texts(LinesOf(thought, All(), Read(Board(), "a2a3"))),
              ElementsAre("a2a3", "d2d4", "e2e4 e7e5 g1f3"));
  const std::vector<Move> allowed = {Read(Board(), "d2d4")};
  EXPECT_THAT(Texts(LinesOf(thought, allowed, {})), ElementsAre("d2d4"));
  // The final move has a value of its own.
  thought.final_move = CandidatesOf({"e2e4"})[0];
  thought.final_value = NodeValue{.wl = 0.7F, .d = 0.1F};
  const auto wl = [&](const char* move) {
    const oracles::Wdl wdl = *LinesOf(thought, All(), Read(Board(), move))[0].wdl;
    return wdl.win - wdl.loss;
  };
  EXPECT_NEAR(wl("e2e4"), 0.7, 1e-6);
  EXPECT_NEAR(wl("d2d4"), 0.2, 1e-6);
}

TEST(ThoughtLinesTest, ALineThatEndsWithMateIsAMate) {
  const Board root = *chess::ParseFen("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1");
  Line line{.pv = {Read(root, "d1d8")}, .wdl = oracles::Wdl{0.4, 0.3, 0.3}};
  MarkMate(root, line);
  EXPECT_EQ(line.mate, (oracles::Mate{.wins = true, .moves = 1}));
  Line other{.pv = {Read(root, "d1d7")}};
  MarkMate(root, other);
  EXPECT_FALSE(other.mate);
}

}  // namespace
}  // namespace kibitz::players
