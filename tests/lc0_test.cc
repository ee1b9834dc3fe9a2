// Our reading, planes, network and search beside what lc0 itself recorded (data/maia).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "io/tables/jsonl.h"
#include "oracles/lc0/network.h"
#include "oracles/lc0/planes.h"
#include "oracles/lc0/policy_index.h"
#include "oracles/search/search.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using io::JsonLine;
using io::JsonLines;
using io::JsonValue;

// "startpos" or "fen ...", and the moves since.
GameSoFar GameOf(JsonValue line) {
  GameSoFar game;
  const std::string position(line["position"].String());
  if (position != "startpos") {
    game.start = chess::ParseFen(position.substr(4)).OrThrow("position");
  }
  chess::Board board = game.start;
  for (JsonValue word : line["moves"].Items()) {
    game.moves.push_back(chess::ParseMove(board, word.String()).OrThrow("moves"));
    board = board.After(game.moves.back());
  }
  return game;
}

Question QuestionOf(const GameSoFar& game) {
  GamePath path(game.start);
  for (chess::Move move : game.moves) path.Push(path.last().After(move));
  return {path, chess::LegalMoves(path.last())};
}

// The files of recorded results whose lines have this field: the first line tells the kind.
std::vector<std::string> RecordedWith(const std::string& field) {
  std::vector<std::string> files;
  for (const std::string& path : testing::DataFiles("maia", ".jsonl")) {
    JsonLines lines(path);
    const JsonLine* first = lines.Next();
    if (first != nullptr && first->root()[field].kind() != io::JsonKind::kMissing) {
      files.push_back(path);
    }
  }
  return files;
}

// The network that a file of results was recorded with: that whose value of the first position is
// nearest to the recorded one.
std::string NetworkOf(const std::string& path) {
  JsonLines lines(path);
  const JsonValue root = lines.Next()->root();
  const double recorded =
      root["q"].kind() != io::JsonKind::kMissing ? root["q"].Double() : root["root"]["V"].Double();
  const Question question = QuestionOf(GameOf(root));
  std::string nearest;
  double least = 1e9;
  for (const std::string& net : testing::DataFiles("maia", ".pb.gz")) {
    Lc0Network network({.network = {.path = net, .threads = 2}});
    const Lc0Output output = network.Run(std::span(&question, 1)).front();
    const double distance = std::abs(output.win - output.loss - recorded);
    if (distance < least) nearest = net, least = distance;
  }
  return nearest;
}

TEST(Lc0Test, PlanesAreLc0sBitForBit) {
  SKIP_WITHOUT(testing::DataFile("maia", ".jsonl"));
  const std::vector<std::string> files = RecordedWith("planes");
  ASSERT_FALSE(files.empty());
  const std::string& path = files.front();
  JsonLines lines(path);
  int positions = 0;
  while (const JsonLine* line = lines.Next()) {
    const JsonValue root = line->root();
    const Lc0Planes planes = MakeLc0Planes(QuestionOf(GameOf(root)));
    Lc0Planes expected;
    for (JsonValue plane : root["planes"].Items()) {
      const auto parts = plane.Items();
      auto part = parts.begin();
      const auto index = static_cast<size_t>((*part).Int());
      const std::string mask((*++part).String());
      expected.squares[index] = std::strtoull(mask.c_str(), nullptr, 16);
      expected.values[index] = static_cast<float>((*++part).Double());
    }
    EXPECT_EQ(planes.squares, expected.squares) << root["id"].String();
    EXPECT_EQ(planes.values, expected.values) << root["id"].String();
    ++positions;
  }
  EXPECT_GT(positions, 0);
}

void CompareOutputs(Lc0Network& network, const std::string& path) {
  JsonLines lines(path);
  int positions = 0;
  while (const JsonLine* line = lines.Next()) {
    const JsonValue root = line->root();
    SCOPED_TRACE(std::string(root["id"].String()));
    const Question question = QuestionOf(GameOf(root));
    const Lc0Output output = network.Run(std::span(&question, 1)).front();
    std::map<std::string, std::pair<int64_t, double>> logits;
    for (JsonValue entry : root["logits"].Fields()) {
      const auto parts = entry.Items();
      auto part = parts.begin();
      const int64_t index = (*part).Int();
      logits[std::string(entry.key())] = {index, (*++part).Double()};
    }
    ASSERT_EQ(logits.size(), question.moves().size());
    std::string best;
    std::string recorded_best;
    double max = -1e9;
    std::vector<double> recorded;
    double recorded_max = -1e9;
    for (size_t i = 0; i < question.moves().size(); ++i) {
      const chess::Move move = question.moves()[i];
      const std::string text = chess::ToText(question.board(), move);
      ASSERT_TRUE(logits.contains(text)) << text;
      EXPECT_EQ(Lc0MoveIndex(question.board().side_to_move(), move), logits[text].first) << text;
      EXPECT_NEAR(output.logits[i], logits[text].second, 2e-3) << text;
      if (output.logits[i] > max) best = text, max = output.logits[i];
      recorded.push_back(logits[text].second);
      if (recorded.back() > recorded_max) recorded_best = text, recorded_max = recorded.back();
    }
    std::ranges::sort(recorded, std::ranges::greater{});
    if (recorded.size() < 2 || recorded[0] - recorded[1] > 2 * 2e-3) {
      EXPECT_EQ(best, recorded_best);
    }
    EXPECT_NEAR(output.win - output.loss, root["q"].Double(), 2e-4);
    const std::array<float, 3> wdl = {output.win, output.draw, output.loss};
    size_t i = 0;
    for (JsonValue chance : root["wdl"].Items()) EXPECT_NEAR(wdl.at(i++), chance.Double(), 2e-4);
    ++positions;
  }
  EXPECT_GT(positions, 0);
}

TEST(Lc0Test, NetworksAnswerAsLc0Does) {
  SKIP_WITHOUT(testing::DataFile("maia", ".pb.gz"));
  for (const std::string& path : RecordedWith("logits")) {
    Lc0Network network({.network = {.path = NetworkOf(path), .threads = 2}});
    CompareOutputs(network, path);
  }
}

struct Distance {
  int lines = 0;
  int same_best = 0;
  double variation = 0;  // Sum of total-variation distances.
};

// All recorded searches with these options, done together: leaf by leaf, as lc0 did.
Distance CompareSearches(const std::string& options_name, Evaluator& network,
                         const TreeOptions& options) {
  struct Recorded {
    GameSoFar game;
    std::string name;
    std::string best;
    std::map<std::string, int64_t> visits;
  };
  std::map<int64_t, std::vector<Recorded>> searches;  // By the number of nodes.
  JsonLines lines(RecordedWith("root_moves").front());
  while (const JsonLine* line = lines.Next()) {
    const JsonValue root = line->root();
    if (root["options"].String() != options_name) continue;
    Recorded recorded{.game = GameOf(root),
                      .name = std::string(root["id"].String()),
                      .best = std::string(root["bestmove"].String()),
                      .visits = {}};
    for (JsonValue move : root["root_moves"].Fields()) {
      recorded.visits[std::string(move.key())] = move["N"].Int();
    }
    searches[root["nodes"].Int()].push_back(std::move(recorded));
  }
  Distance distance;
  for (const auto& [nodes, all] : searches) {
    std::vector<GameSoFar> games;
    for (const Recorded& recorded : all) games.push_back(recorded.game);
    const auto reports = SearchMany(network, games, options, {.visits = nodes});
    for (size_t i = 0; i < all.size(); ++i) {
      const chess::Board board = games[i].Current();
      EXPECT_EQ(reports[i].visits, nodes) << all[i].name;
      double difference = 0;
      for (const RootMove& move : reports[i].moves) {
        const int64_t visits = all[i].visits.at(chess::ToText(board, move.move));
        difference += std::abs(static_cast<double>(move.visits - visits));
      }
      distance.variation += difference / 2 / static_cast<double>(nodes - 1);
      const std::string best = chess::ToText(board, reports[i].moves.front().move);
      distance.same_best += best == all[i].best ? 1 : 0;
      ++distance.lines;
    }
  }
  return distance;
}

TEST(Lc0Test, SearchesAsLc0DoesWithPlainOptions) {
  SKIP_WITHOUT(testing::DataFile("maia", ".pb.gz"));
  ASSERT_FALSE(RecordedWith("root_moves").empty());
  const std::string net = NetworkOf(RecordedWith("root_moves").front());
  Lc0Network network({.network = {.path = net, .threads = 2}, .lc0_rounding = true});
  const Distance distance = CompareSearches(
      "plain", network, {.cpuct_factor = 0, .two_fold_draws = false, .certainty = false});
  ASSERT_GT(distance.lines, 0);
  const double mean = distance.variation / distance.lines;
  RecordProperty("lines", distance.lines);
  RecordProperty("same_best", distance.same_best);
  std::cout << distance.same_best << " of " << distance.lines
            << " best moves equal, mean total variation " << mean << "\n";
  EXPECT_GE(distance.same_best, 0.95 * distance.lines);
  EXPECT_LE(mean, 0.03);
}

TEST(Lc0Test, SearchesMuchAsLc0DoesWithItsDefaults) {
  SKIP_WITHOUT(testing::DataFile("maia", ".pb.gz"));
  ASSERT_FALSE(RecordedWith("root_moves").empty());
  const std::string net = NetworkOf(RecordedWith("root_moves").front());
  Lc0Network network(
      {.network = {.path = net, .threads = 2}, .policy_temperature = 1.359, .lc0_rounding = true});
  const Distance distance = CompareSearches("default", network, {});
  ASSERT_GT(distance.lines, 0);
  const double mean = distance.variation / distance.lines;
  std::cout << distance.same_best << " of " << distance.lines
            << " best moves equal, mean total variation " << mean << "\n";
  EXPECT_GE(distance.same_best, 0.9 * distance.lines);
  EXPECT_LE(mean, 0.05);
}

}  // namespace
}  // namespace kibitz::oracles
