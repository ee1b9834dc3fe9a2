// Units are sound as they are made, and every fault that is put into one is found.
#include "oracles/records/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using ::testing::HasSubstr;

chess::Move MoveAt(const Board& board, const std::string& text) {
  return chess::ParseMove(board, text).OrThrow("test");
}

// Moves one after the other as a line; each position is the other side's.
Variation LineOf(Board board, const std::vector<std::string>& moves, Wdl wdl) {
  Variation variation{.visits = 10, .fraction = 0.5, .prior = 0.5, .score = {}, .nodes = {}};
  variation.score.centipawns = 30;
  for (const std::string& text : moves) {
    wdl = wdl.Reversed();
    variation.nodes.push_back({MoveAt(board, text), wdl, 5});
    board = board.After(variation.nodes.back().move);
  }
  return variation;
}

Lesson LessonAtStart() {
  Lesson lesson;
  lesson.best = MoveAt(Board(), "e2e4");
  lesson.wdl = {0.233, 0.767, 0};
  lesson.depth = 7;
  lesson.nodes = 1001;
  lesson.variations = {LineOf(Board(), {"e2e4", "d7d5"}, lesson.wdl),
                       LineOf(Board(), {"c2c4"}, {0.042, 0.956, 0.002})};
  return lesson;
}

GameRecord CastlingGame() {
  Board board = *chess::ParseFen("r3k2r/8/8/8/8/8/1P6/R3K2R w KQkq - 0 9");
  GameRecord game{.id = "g", .result = "*", .plies = {}};
  for (const std::string text : {"e1g1", "e8c8", "b2b4"}) {
    const chess::Move move = MoveAt(board, text);
    game.plies.push_back({.ply = static_cast<int>(game.plies.size()),
                          .board = board,
                          .played = move,
                          .best = move,
                          .wdl = Wdl{0.5, 0.25, 0.25},
                          .played_wdl = Wdl{0.5, 0.5, 0}});
    board = board.After(move);
  }
  return game;
}

TEST(RowsTest, GamesAreWrittenInTheNetworksNotation) {
  const Json unit = GameUnit(CastlingGame());
  const Json& rows = unit["rows"];
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["played_move"], "e1h1");
  EXPECT_EQ(rows[1]["best_move"], "e8a8");
  EXPECT_EQ(rows[1]["fen"], "r3k2r/8/8/8/8/8/1P6/R4RK1 b kq - 1 9");
  EXPECT_EQ(rows[2]["win"], 0.5);
  EXPECT_EQ(rows[2]["played_q"], 0.5);
  EXPECT_EQ(rows[2]["played_d"], 0.5);
}

TEST(RowsTest, AGapMakesTwoGames) {
  GameRecord game = CastlingGame();
  game.plies.erase(game.plies.begin() + 1);
  const Json unit = GameUnit(game);
  EXPECT_EQ(unit["rows"][0]["game_id"], "g");
  EXPECT_EQ(unit["rows"][1]["game_id"], "g#2");
}

TEST(RowsTest, SearchesHaveTheSeedsShape) {
  const Json unit = SearchUnit(Board(), LessonAtStart());
  EXPECT_EQ(unit["mcts_action"], "e2e4");
  EXPECT_EQ(unit["draw"], 0.767);
  const Json variations = Json::parse(unit["variations"].get<std::string>());
  const Json& nodes = variations[0]["nodes"];
  // The recorded example: the first node is the position after the root move, for its mover.
  EXPECT_EQ(nodes[0]["fen"], "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
  EXPECT_EQ(nodes[0]["move"], "d7d5");
  EXPECT_EQ(nodes[0]["wdl"], Json({0.0, 0.767, 0.233}));
  EXPECT_EQ(nodes[1]["wdl"], Json({0.233, 0.767, 0.0}));
  EXPECT_TRUE(nodes[1]["move"].is_null());
}

TEST(RowsTest, EvalsAreForWhiteAndRoundUpNodes) {
  const Board board = Board().After(MoveAt(Board(), "e2e4"));
  Lesson lesson;
  lesson.best = MoveAt(board, "e7e5");
  lesson.depth = 9;
  lesson.nodes = 1001;
  lesson.variations = {LineOf(board, {"e7e5"}, {0, 1, 0}), LineOf(board, {"g8f6"}, {})};
  lesson.variations[1].score = {};
  lesson.variations[1].score.mate = Mate{true, 3};
  const Json unit = EvalUnit(board, std::vector{lesson});
  EXPECT_EQ(unit.dump(),
            R"({"fen":"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -","evals":[{"pvs":[)"
            R"({"cp":-30,"line":"e7e5"},{"mate":-3,"line":"g8f6"}],"knodes":2,"depth":9}]})");
}

TEST(RowsTest, FaultsOfGamesAreFound) {
  const auto fault = [](const std::function<void(Json&)>& spoil) {
    Json unit = GameUnit(CastlingGame());
    spoil(unit["rows"]);
    return FaultOfGame(unit);
  };
  EXPECT_EQ(fault([](Json&) {}), "");
  EXPECT_THAT(fault([](Json& rows) { rows[1]["best_move"] = "e8e1"; }), HasSubstr("e8e1"));
  EXPECT_THAT(fault([](Json& rows) { rows[0]["played_move"] = "e1g1"; }),
              HasSubstr("not in the expected notation"));
  EXPECT_THAT(fault([](Json& rows) { rows[1]["fen"] = rows[2]["fen"]; }), HasSubstr("follow"));
  EXPECT_THAT(fault([](Json& rows) { rows[2]["win"] = 0.6; }), HasSubstr("sum to 1"));
  EXPECT_THAT(fault([](Json& rows) { rows[2]["fen"] = "8/8 w - -"; }), HasSubstr("8/8"));
  EXPECT_THAT(fault([](Json& rows) { rows[2]["ply"] = 1; }), HasSubstr("ply 1 follows ply 1"));
  EXPECT_THAT(fault([](Json& rows) { rows.erase(1); }), HasSubstr("ply 2 follows ply 0"));
}

TEST(RowsTest, FaultsOfSearchesAreFound) {
  const auto fault = [](const std::function<void(Json&, Json&)>& spoil) {
    Json unit = SearchUnit(Board(), LessonAtStart());
    Json variations = Json::parse(unit["variations"].get<std::string>());
    spoil(unit, variations);
    unit["variations"] = variations.dump();
    return FaultOfSearch(unit);
  };
  EXPECT_EQ(fault([](Json&, Json&) {}), "");
  EXPECT_THAT(fault([](Json&, Json& v) { v[0]["root_move"] = "d2d4"; }), HasSubstr("follow"));
  EXPECT_THAT(fault([](Json&, Json& v) { v[0]["nodes"][0]["move"] = "d7d1"; }), HasSubstr("d7d1"));
  EXPECT_THAT(fault([](Json&, Json& v) { v[0]["nodes"][0]["move"] = nullptr; }),
              HasSubstr("after its end"));
  EXPECT_THAT(fault([](Json&, Json& v) { v[0]["nodes"].erase(1); }), HasSubstr("has a move"));
  EXPECT_THAT(fault([](Json&, Json& v) { v[0]["nodes"][1]["wdl"][1] = 0.7; }), HasSubstr("sum"));
  EXPECT_THAT(fault([](Json& u, Json&) { u["mcts_action"] = "a2a3"; }), HasSubstr("best move"));
  EXPECT_THAT(fault([](Json&, Json& v) { v[1]["nodes"] = Json::array(); }), HasSubstr("without"));
  EXPECT_THAT(fault([](Json&, Json& v) { v = Json::array(); }), HasSubstr("no variation"));
}

TEST(RowsTest, FaultsOfEvalsAreFound) {
  const auto fault = [](const std::function<void(Json&)>& spoil) {
    Json unit = EvalUnit(Board(), std::vector{LessonAtStart()});
    spoil(unit);
    return FaultOfEval(unit);
  };
  EXPECT_EQ(fault([](Json&) {}), "");
  EXPECT_THAT(fault([](Json& u) { u["evals"][0]["pvs"][0]["line"] = "e2e4 e2e4"; }),
              HasSubstr("e2e4"));
  EXPECT_THAT(fault([](Json& u) { u["evals"][0]["pvs"][0]["mate"] = 2; }), HasSubstr("or both"));
  EXPECT_THAT(fault([](Json& u) { u["evals"][0]["pvs"] = Json::array(); }), HasSubstr("a line"));
  EXPECT_THAT(fault([](Json& u) { u["evals"] = Json::array(); }), HasSubstr("no evaluation"));
}

}  // namespace
}  // namespace kibitz::oracles
