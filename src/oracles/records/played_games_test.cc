// Games of teachers that know little chess, but always the same: what belongs to playing itself.
#include "oracles/records/played_games.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "oracles/records/join.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using chess::Board;

// Chances are those given for White; candidates are two legal moves that hang on the position.
class SteadyTeacher : public Teacher {
 public:
  explicit SteadyTeacher(const Wdl& for_white) : for_white_(for_white) {}

  std::vector<std::optional<Lesson>> Teach(std::span<const GameSoFar> games) override {
    std::vector<std::optional<Lesson>> lessons;
    for (const GameSoFar& game : games) lessons.push_back(LessonOn(game.Current()));
    max_ = std::max(max_, games.size());
    return lessons;
  }
  nlohmann::ordered_json OptionsJson() const override { return {{"kind", "steady"}}; }

  size_t max() const { return max_; }                                  // Asked at a time.
  const std::vector<chess::Color>& colors() const { return colors_; }  // It was asked for.

 private:
  Lesson LessonOn(const Board& board) {
    colors_.push_back(board.side_to_move());
    const chess::MoveList moves = chess::LegalMoves(board);
    Lesson lesson;
    const bool white = board.side_to_move() == chess::Color::kWhite;
    lesson.wdl = white ? for_white_ : for_white_.Reversed();
    for (size_t i = 0; i < std::min<size_t>(2, moves.size()); ++i) {
      Variation variation{.visits = 1, .fraction = 0.5, .prior = 0.5, .score = {}, .nodes = {}};
      const chess::Move move = moves[(board.key() + i) % moves.size()];
      variation.nodes = {{.move = move, .wdl = lesson.wdl.Reversed(), .visits = 1}};
      lesson.variations.push_back(variation);
    }
    lesson.best = lesson.variations[0].nodes[0].move;
    return lesson;
  }

  Wdl for_white_;
  size_t max_ = 0;
  std::vector<chess::Color> colors_;
};

class PlayedGamesTest : public ::testing::Test {
 protected:
  // All units of a run, one a line.
  std::string Play(const PlayOptions& options, const std::vector<GameSoFar>& openings = {},
                   int at_once = 4) {
    PartStore parts(folder_.File(std::to_string(runs_++)), {});
    Progress progress("games", 0, {.mode = Progress::Options::Mode::kSilent, .write = {}});
    asked_ = PlayGames({.first = first_, .second = second_, .at_once = at_once}, options, openings,
                       parts, progress);
    std::string units;
    parts.ForEachUnit([&](const io::JsonLine& line) { units += std::string(line.text()) + "\n"; });
    return units;
  }
  nlohmann::json FirstGame(const PlayOptions& options) {
    const std::string units = Play(options);
    return nlohmann::json::parse(units.substr(0, units.find('\n')));
  }

  testing::TempFolder folder_;
  int runs_ = 0;
  int64_t asked_ = 0;
  SteadyTeacher first_{{0.5, 0.25, 0.25}};
  Teacher* second_ = nullptr;
};

TEST_F(PlayedGamesTest, GamesDoNotDependOnHowTheyAreCut) {
  PlayOptions options{.games = 11, .max_plies = 30};
  const std::string games = Play(options);
  EXPECT_EQ(first_.max(), 4U);
  options.part_games = 3;
  EXPECT_EQ(Play(options, {}, 1), games);
  EXPECT_EQ(Play(options, {}, 50), games);
  options.seed = 2;
  EXPECT_NE(Play(options), games);
}

TEST_F(PlayedGamesTest, FinishedPartsAreNotPlayedAgain) {
  const PlayOptions options{.games = 6, .max_plies = 20, .part_games = 2};
  PartStore parts(folder_.File("a"), {});
  Progress progress("games", 0, {.mode = Progress::Options::Mode::kSilent, .write = {}});
  EXPECT_GT(PlayGames({.first = first_}, options, {}, parts, progress), 0);
  std::filesystem::remove(folder_.File("a.parts/part-00000001.jsonl.zst"));
  const int64_t asked = PlayGames({.first = first_}, options, {}, parts, progress);
  EXPECT_GT(asked, 0);
  EXPECT_LE(asked, 40);
  EXPECT_EQ(PlayGames({.first = first_}, options, {}, parts, progress), 0);
}

TEST_F(PlayedGamesTest, GamesEndAsAsked) {
  EXPECT_EQ(FirstGame({.games = 1, .max_plies = 9})["result"], "*");
  EXPECT_EQ(FirstGame({.games = 1, .max_plies = 9})["rows"].size(), 9U);
  const auto won = FirstGame({.games = 1, .resign_win = 0.5});
  EXPECT_EQ(won["result"], "1-0");  // For White, whoever is asked.
  EXPECT_EQ(won["rows"].size(), 8U);
  const auto drawn = FirstGame({.games = 1, .draw_chance = 0.25});
  EXPECT_EQ(drawn["result"], "1/2-1/2");
  // By the rules at last.
  EXPECT_NE(FirstGame({.games = 1, .max_plies = 100000})["result"], "*");
}

TEST_F(PlayedGamesTest, EqualGamesAreDropped) {
  PartStore parts(folder_.File("a.parquet"), {});
  Progress progress("games", 0, {.mode = Progress::Options::Mode::kSilent, .write = {}});
  PlayGames({.first = first_}, {.games = 5, .temperature = 0, .max_plies = 20}, {}, parts,
            progress);
  const Joined joined = JoinGames(parts);
  EXPECT_EQ(joined.units, 1);
  EXPECT_EQ(joined.duplicates, 4);
  EXPECT_EQ(joined.rows, 20);
}

TEST_F(PlayedGamesTest, TwoTeachersPlayAnOpeningWithBothColours) {
  SteadyTeacher other({0, 1, 0});
  second_ = &other;
  const GameSoFar opening{.start = *chess::ParseFen("4k3/4p3/8/8/8/8/4P3/4K3 b - - 0 1"),
                          .moves = {}};
  const std::string units = Play({.games = 2, .temperature = 0, .max_plies = 1}, {opening});
  ASSERT_EQ(std::count(units.begin(), units.end(), '\n'), 2);
  // Black moves first: one game each.
  EXPECT_THAT(first_.colors(), ::testing::ElementsAre(chess::Color::kBlack));
  EXPECT_THAT(other.colors(), ::testing::ElementsAre(chess::Color::kBlack));
}

TEST_F(PlayedGamesTest, RandomPliesComeBeforeTheRecord) {
  const auto game = FirstGame({.games = 1, .random_plies = 5, .max_plies = 3});
  EXPECT_EQ(game["rows"][0]["ply"], 0);
  const Board board = *chess::ParseFen(game["rows"][0]["fen"].get<std::string>());
  EXPECT_EQ(board.side_to_move(), chess::Color::kBlack);
  EXPECT_EQ(board.fullmove_number(), 3);
}

}  // namespace
}  // namespace kibitz::oracles
