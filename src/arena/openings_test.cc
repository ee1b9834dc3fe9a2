#include "arena/openings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "arena/named_openings.h"
#include "base/atomic_file.h"
#include "games/chess/fen.h"
#include "games/chess/san.h"
#include "tests/support/test_data.h"

namespace kibitz::arena {
namespace {

using ::testing::HasSubstr;

TEST(NamedOpeningsTest, EveryLineIsLegalAndNamedOnce) {
  std::set<std::string_view> names;
  std::set<uint64_t> positions;
  for (const NamedOpening& opening : NamedOpenings()) {
    const oracles::GameSoFar game = GameOf(opening);  // Throws for an illegal move.
    EXPECT_FALSE(game.moves.empty()) << opening.name;
    EXPECT_TRUE(names.insert(opening.name).second) << opening.name;
    EXPECT_TRUE(positions.insert(game.Current().key()).second) << opening.name;
    ASSERT_EQ(opening.eco.size(), 3u) << opening.name;
    EXPECT_TRUE(opening.eco[0] >= 'A' && opening.eco[0] <= 'E') << opening.name;
    EXPECT_TRUE(std::isdigit(opening.eco[1]) && std::isdigit(opening.eco[2])) << opening.name;
    EXPECT_EQ(OpeningOf(game), &opening) << opening.name;
  }
  EXPECT_GE(names.size(), 150u);
}

TEST(NamedOpeningsTest, CodesRiseWithTheList) {
  std::string_view before = "A00";
  for (const NamedOpening& opening : NamedOpenings()) {
    EXPECT_LE(before, opening.eco) << opening.name;
    before = opening.eco;
  }
}

TEST(NamedOpeningsTest, AGameIsNamedByItsLastKnownPositionWhateverTheOrder) {
  oracles::GameSoFar game;
  for (const char* text : {"Nf3", "d5", "d4", "Nf6", "c4", "e6", "a3"}) {
    game.moves.push_back(chess::ParseSan(game.Current(), text).OrThrow(text));
  }
  ASSERT_NE(OpeningOf(game), nullptr);
  EXPECT_EQ(OpeningOf(game)->eco[0], 'D');
  EXPECT_EQ(OpeningOf({.start = chess::ParseFen("8/8/8/4k3/8/8/4P3/4K3 w - - 0 1").OrThrow("fen")}),
            nullptr);
}

TEST(OpeningsTest, ReadsPositionsAndGames) {
  const testing::TempFolder folder;
  WriteFileAtomically(folder.File("a.epd"),
                      "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - id \"start\";\n\n"
                      "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1\n");
  const auto positions =
      LoadOpenings({.source = folder.File("a.epd"), .order = OpeningOrder::kSequential});
  ASSERT_EQ(positions.size(), 2u);
  EXPECT_EQ(positions[1].name, "a.epd:3");
  const auto games = LoadOpenings({.source = testing::SourcePath("examples/immortal.pgn"),
                                   .order = OpeningOrder::kSequential,
                                   .plies = 4});
  ASSERT_EQ(games.size(), 1u);
  EXPECT_EQ(games[0].game.moves.size(), 4u);
  EXPECT_EQ(LoadOpenings({.source = "start"}).size(), 1u);
  EXPECT_EQ(LoadOpenings({.source = "named"}).size(), NamedOpenings().size());
}

TEST(OpeningsTest, RandomOrderFollowsTheSeed) {
  const auto names = [](uint64_t seed) {
    std::string text;
    for (const Opening& opening : LoadOpenings({.source = "named", .seed = seed})) {
      text += opening.name;
    }
    return text;
  };
  EXPECT_EQ(names(1), names(1));
  EXPECT_NE(names(1), names(2));
}

TEST(OpeningsTest, WrongFilesAreExplained) {
  const testing::TempFolder folder;
  const auto message = [&](const std::string& text) {
    WriteFileAtomically(folder.File("a.epd"), text);
    return testing::MessageOf([&] { LoadOpenings({.source = folder.File("a.epd")}); });
  };
  EXPECT_THAT(message("nonsense\n"), HasSubstr("a.epd:1"));
  EXPECT_THAT(message("\n"), HasSubstr("no opening"));
  EXPECT_THAT(testing::MessageOf([] { LoadOpenings({.source = "nowhere.epd"}); }),
              HasSubstr("'named'"));
}

}  // namespace
}  // namespace kibitz::arena
