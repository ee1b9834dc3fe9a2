#include "players/player_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kibitz::players {
namespace {

using ::testing::HasSubstr;

TEST(PlayerNameTest, ReadsEveryForm) {
  const struct {
    const char* text;
    PlayerName name;
  } cases[] = {
      {"models/policy-small", {.path = "models/policy-small"}},
      {"stockfish", {.path = "stockfish"}},
      {"random", {.kind = "random"}},
      {"negamax?depth=2", {.kind = "negamax", .options = {{"depth", "2"}}}},
      {"decoder:m.pt?think=1&temperature=0.1",
       {.kind = "decoder", .path = "m.pt", .options = {{"think", "1"}, {"temperature", "0.1"}}}},
      {"search:maia-1500.pb.gz?nodes=800",
       {.kind = "search", .path = "maia-1500.pb.gz", .options = {{"nodes", "800"}}}},
      {"engine:/opt/a%3fb?option=Skill%20Level=5",
       {.kind = "engine", .path = "/opt/a?b", .options = {{"option", "Skill Level=5"}}}},
      {"/abs:olute/file.pt", {.path = "/abs:olute/file.pt"}},
      {"%20a%20?x=y%20", {.path = " a ", .options = {{"x", "y "}}}},
      {"%72andom", {.path = "random"}},
  };
  for (const auto& item : cases) {
    const auto name = ParsePlayerName(item.text);
    ASSERT_TRUE(name) << item.text << ": " << name.reason();
    EXPECT_EQ(*name, item.name) << item.text;
    const auto again = ParsePlayerName(ToText(*name));
    ASSERT_TRUE(again) << ToText(*name);
    EXPECT_EQ(*again, item.name) << ToText(*name);
  }
}

TEST(PlayerNameTest, SaysWhatIsWrongAndWhatIsPossible) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty"},
      {"?depth=2", "neither a kind nor a path"},
      {"serch:a.pb.gz", "there are decoder, policy"},
      {"negamax?depth", "key=value"},
      {"negamax?=2", "key=value"},
      {"a%zz", "hexadecimal"},
      {"a%4", "hexadecimal"},
  };
  for (const auto& [text, expected] : cases) {
    const auto name = ParsePlayerName(text);
    ASSERT_FALSE(name) << text;
    EXPECT_THAT(name.reason(), HasSubstr(expected)) << text;
  }
}

}  // namespace
}  // namespace kibitz::players
