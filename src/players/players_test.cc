// What holds for every kind of player.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "oracles/search/negamax.h"
#include "players/make_player.h"
#include "players/one_ply.h"
#include "tests/support/test_data.h"

namespace kibitz::players {
namespace {

using chess::Board;
using chess::Move;
using ::testing::HasSubstr;

Board BoardOf(const char* fen) { return chess::ParseFen(fen).OrThrow(fen); }

Move ReadMove(const Board& board, const char* text) {
  return chess::ParseMove(board, text).OrThrow(text);
}

// Kinds that can be made on every machine.
std::vector<std::string> Players() {
  std::vector<std::string> names = {
      "random",
      "negamax?depth=1&eval=pieces",
      "negamax?depth=2",
      testing::ModelPath("policy-small") + "?temperature=0.5",
      testing::ModelPath("policy-small") + "?mirror=1",
      "search:" + testing::ModelPath("policy-small") + "?nodes=16",
      "decoder:" + testing::GoldenPath("decoder/tiny.pt") + "?think=0",
      "decoder:" + testing::GoldenPath("decoder/tiny.pt") + "?max_variations=2&max_depth=2",
      "search:" + testing::GoldenPath("decoder/tiny.pt") + "?nodes=8",
  };
  const std::string maia = testing::DataFile("maia", ".pb.gz");
  if (testing::Exists(maia)) {
    names.push_back(maia);
    names.push_back("search:" + maia + "?nodes=16");
  }
  if (testing::Exists("/usr/games/stockfish")) {
    names.push_back("/usr/games/stockfish?nodes=100&option=Hash=1");
  }
  return names;
}

void ExpectSound(const Request& request, const Answer& answer, const std::string& name) {
  const Board board = request.game.Current();
  ASSERT_TRUE(answer.move) << name;
  EXPECT_TRUE(chess::IsLegal(board, *answer.move)) << name;
  ASSERT_FALSE(answer.lines.empty()) << name;
  EXPECT_EQ(answer.lines.front().pv.front(), *answer.move) << name;
  EXPECT_LE(answer.lines.size(), static_cast<size_t>(std::max(1, request.lines))) << name;
  for (const Line& line : answer.lines) {
    EXPECT_TRUE(line.wdl || line.mate || line.centipawns) << name;
    Board next = board;
    for (Move move : line.pv) {
      ASSERT_TRUE(chess::IsLegal(next, move)) << name;
      next = next.After(move);
    }
  }
  double sum = 0;
  for (const MoveInfo& info : answer.moves) sum += info.probability;
  EXPECT_NEAR(sum, 1, 1e-3) << name;
}

TEST(PlayersTest, EveryKindAnswersSoundlyWithLinesAndHistory) {
  for (const std::string& name : Players()) {
    const std::unique_ptr<Player> player = MakePlayer(name);
    EXPECT_FALSE(player->name().empty());
    Request request{.lines = 3, .seed = 7};
    for (const char* text : {"e2e4", "e7e5", "g1f3", "b8c6"}) {
      ExpectSound(request, player->Play(request), name);
      request.game.moves.push_back(ReadMove(request.game.Current(), text));
    }
    ExpectSound(request, player->Play(request), name);
    player->NewGame();
    const Request mated{.game = {.start = BoardOf("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1")}};
    EXPECT_FALSE(player->Play(mated).move) << name;
  }
}

TEST(PlayersTest, TheSameRequestGetsTheSameAnswer) {
  for (const std::string& name : Players()) {
    const Request request{.game = {.start = BoardOf("r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/"
                                                    "RNB1K1NR w KQkq - 0 1")},
                          .seed = 3};
    const auto first = MakePlayer(name)->Play(request);
    const auto second = MakePlayer(name)->Play(request);
    EXPECT_EQ(first.move, second.move) << name;
  }
}

TEST(PlayersTest, SearchMovesAreHonoured) {
  const Board start;
  for (const std::string& name : Players()) {
    Request request{.lines = 2};
    request.limits.search_moves = {ReadMove(start, "a2a3"), ReadMove(start, "h2h3")};
    const Answer answer = MakePlayer(name)->Play(request);
    ASSERT_TRUE(answer.move) << name;
    EXPECT_THAT(request.limits.search_moves, ::testing::Contains(*answer.move)) << name;
  }
}

TEST(PlayersTest, AStopBeforeTheBeginningIsAnsweredAtOnce) {
  std::stop_source stop;
  stop.request_stop();
  for (const std::string& name : Players()) {
    const Answer answer = MakePlayer(name)->Play({.stop = stop.get_token()});
    EXPECT_TRUE(!answer.move || chess::IsLegal(Board(), *answer.move)) << name;
  }
}

TEST(PlayersTest, AWrongNameSaysWhatIsPossible) {
  const auto message = [](const char* name) {
    return testing::MessageOf([&] { MakePlayer(name); });
  };
  ASSERT_EQ(setenv("KIBITZ_SHARE", testing::SourcePath("").c_str(), 1), 0);
  EXPECT_THAT(message("no-such-model"), HasSubstr("policy-small"));
  EXPECT_THAT(message("negamax?dept=2"), HasSubstr("did you mean depth?"));
  EXPECT_THAT(message("negamax?depth=99"), HasSubstr("from 1 to 10"));
  EXPECT_THAT(message("search"), HasSubstr("search:PATH"));
  EXPECT_THAT(message("random:x"), HasSubstr("takes no path"));
  EXPECT_THAT(message(testing::ModelPath("twenty48-small").c_str()), HasSubstr("2048"));
}

TEST(PlayersTest, AMakerTellsItsFullName) {
  const auto maker = MakerFor(ParsePlayerName("negamax?depth=3").OrThrow("test"));
  EXPECT_EQ(maker->ToText(), "negamax?depth=3");
  EXPECT_EQ(maker->fields().Set("eval", "pieces"), "");
  EXPECT_EQ(maker->ToText(), "negamax?depth=3&eval=pieces");
  EXPECT_THAT(maker->fields().Set("eval", "nothing"), HasSubstr("pieces"));
}

TEST(NegamaxPlayerTest, ProbabilitiesAreASoftmaxOfScoresOver200) {
  const Board board = BoardOf("7k/8/8/3q4/4P3/8/8/K7 w - - 0 1");
  const Answer answer = MakePlayer("negamax?depth=1&eval=pieces")->Play({.game = {.start = board}});
  EXPECT_EQ(chess::ToText(board, *answer.move), "e4d5");
  ASSERT_GE(answer.moves.size(), 2u);
  // Taking the queen leaves a pawn (100); anything else is a queen down (-800).
  EXPECT_NEAR(answer.moves[1].probability / answer.moves[0].probability, std::exp(-900 / 200.0),
              1e-9);
}

TEST(NegamaxTest, PrefersTheShortestMate) {
  const Board mate_in_one = BoardOf("7k/8/5K2/6Q1/8/8/8/8 w - - 0 1");
  const auto result = oracles::Negamax({.start = mate_in_one}, {.depth = 3});
  EXPECT_EQ(result.moves.front().score, oracles::kMateScore - 1);
  EXPECT_EQ(result.moves.front().pv.size(), 1u);
  EXPECT_GT(result.nodes, 100);
}

TEST(NegamaxTest, AgreesWithoutCuts) {
  // The same search without alpha-beta, on small positions.
  const std::function<int(const Board&, int, int)> plain = [&](const Board& board, int depth,
                                                               int ply) {
    if (!chess::HasLegalMove(board)) return board.InCheck() ? ply - oracles::kMateScore : 0;
    if (board.halfmove_clock() >= 100 || chess::IsInsufficientMaterial(board)) return 0;
    if (depth == 0) return oracles::StaticScore(board, oracles::Material::kTables);
    int best = -2 * oracles::kMateScore;
    for (Move move : chess::LegalMoves(board)) {
      best = std::max(best, -plain(board.After(move), depth - 1, ply + 1));
    }
    return best;
  };
  for (const char* fen : {"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
                          "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1"}) {
    const Board board = BoardOf(fen);
    for (int depth = 1; depth <= 2; ++depth) {
      for (const auto& scored : oracles::Negamax({.start = board}, {.depth = depth}).moves) {
        EXPECT_EQ(scored.score, -plain(board.After(scored.move), depth - 1, 1)) << fen;
      }
    }
  }
}

TEST(OnePlyTest, DoesNotStalemateAWonGame) {
  const Board corner = BoardOf("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1");
  const Answer answer{.move = ReadMove(corner, "c1c7"), .wdl = oracles::Wdl{.win = 1}};
  ASSERT_TRUE(chess::IsStalemate(corner.After(*answer.move)));
  const Answer mended = AfterOnePlyRule({.game = {.start = corner}}, answer);
  EXPECT_TRUE(chess::IsCheckmate(corner.After(*mended.move)));  // A mate in one is there.
  EXPECT_THAT(mended.remarks.back(), HasSubstr("one-ply rule"));
}

TEST(OnePlyTest, DoesNotRepeatAWonPositionButTakesADrawWhenLosing) {
  const Board board = BoardOf("6k1/8/8/8/8/8/8/KQ6 w - - 0 1");
  oracles::GameSoFar game{.start = board};
  for (const char* text : {"b1b2", "g8f8", "b2b1", "f8g8", "b1b2", "g8f8", "b2b1", "f8g8"}) {
    game.moves.push_back(ReadMove(game.Current(), text));
  }
  const Move repeats = ReadMove(game.Current(), "b1b2");
  Answer winning{.move = repeats, .wdl = oracles::Wdl{.win = 0.9, .draw = 0.1}};
  EXPECT_NE(AfterOnePlyRule({.game = game}, winning).move, repeats);
  Answer losing{.move = repeats, .wdl = oracles::Wdl{.draw = 0.1, .loss = 0.9}};
  EXPECT_EQ(AfterOnePlyRule({.game = game}, losing).move, repeats);
}

}  // namespace
}  // namespace kibitz::players
