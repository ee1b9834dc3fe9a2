// Networks as teachers, as users run them: a small lc0 network of random weights, and the decoder's
// recorded one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tests/support/lc0_file.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Ran;
using testing::TempFolder;

Ran Oracle(std::vector<std::string> words) {
  words.insert(words.begin(), {testing::ProgramPath("kibitz"), "oracle"});
  return testing::RunCommand(words);
}

json Answer(std::vector<std::string> words) {
  words.insert(words.end(), {"--json", "--quiet"});
  const Ran ran = Oracle(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? json::parse(ran.out) : json();
}

class OracleNetTest : public ::testing::Test {
 protected:
  OracleNetTest() : net_(folder_.File("small.pb")) { testing::WriteLc0File(net_); }

  TempFolder folder_;
  std::string net_;
};

TEST_F(OracleNetTest, SearchTellsVisitsPriorsValuesAndLines) {
  const json answer = Answer({"search", "--net", net_, "--nodes", "300", "--show", "100"});
  EXPECT_EQ(answer["visits"], 300);
  EXPECT_EQ(answer["moves"].size(), 20U);
  int64_t visits = 1;
  double prior = 0;
  for (const json& move : answer["moves"]) {
    visits += move["visits"].get<int64_t>();
    prior += move["prior"].get<double>();
    if (move["visits"] == 0) continue;
    EXPECT_EQ(move["pv"][0], move["move"]);
    EXPECT_NEAR(move["wdl"][0].get<double>() - move["wdl"][2].get<double>(),
                move["q"].get<double>(), 1e-6);
  }
  EXPECT_EQ(visits, 300);
  EXPECT_NEAR(prior, 1, 1e-5);
  EXPECT_EQ(answer["move"], answer["moves"][0]["move"]);
  const Ran people = Oracle({"search", "--net", net_, "--nodes", "50", "--moves", "e2e4 e7e5"});
  EXPECT_EQ(people.code, 0);
  EXPECT_THAT(people.out, HasSubstr("visits"));
  EXPECT_THAT(people.out, HasSubstr("small.pb (2 blocks of 8 filters"));
}

TEST_F(OracleNetTest, SearchIsTheSameOnAnyNumberOfThreadsAndInAnyCompany) {
  std::vector<std::string> words = {"search", "--net", net_, "--nodes", "200", "--leaves", "8"};
  json one = Answer([&] {
    auto more = words;
    more.insert(more.end(), {"--threads", "1"});
    return more;
  }());
  json two = Answer([&] {
    auto more = words;
    more.insert(more.end(), {"--threads", "2", "--cache", "0"});
    return more;
  }());
  EXPECT_EQ(one["moves"], two["moves"]);
  words.insert(words.end(), {"--fens", "-"});
  words.insert(words.begin(), {testing::ProgramPath("kibitz"), "oracle"});
  const Ran many = testing::RunCommand(words,
                                       "8/8/8/8/8/5k2/6q1/7K w - - 0 1\n"
                                       "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n"
                                       "nonsense\n");
  EXPECT_EQ(many.code, 1);
  const auto lines = Split(many.out, '\n');
  ASSERT_GE(lines.size(), 3U);
  EXPECT_TRUE(json::parse(lines[0])["move"].is_null());  // Mated.
  EXPECT_EQ(json::parse(lines[1])["moves"], one["moves"]);
  EXPECT_TRUE(json::parse(lines[2]).contains("error"));
}

TEST_F(OracleNetTest, RefusesWhatIsNoNetwork) {
  EXPECT_THAT(Oracle({"search"}).err, HasSubstr("--net FILE or --engine CMD"));
  EXPECT_THAT(Oracle({"search", "--net", folder_.File("none.pb.gz")}).err, HasSubstr("none.pb.gz"));
  const std::string attention = folder_.File("attention.pb");
  testing::WriteLc0File(attention, {.structure = 6});
  const Ran ran = Oracle({"search", "--net", attention});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("an attention body"));
  EXPECT_EQ(
      Oracle({"games", "--net", net_, "--depth", "3", "--out", folder_.File("g.parquet")}).code, 2);
}

TEST_F(OracleNetTest, MakesRecordsThatTheDecoderReads) {
  const std::string games = folder_.File("games.parquet");
  const json played = Answer({"games", "--net", net_, "--games", "6", "--nodes", "20",
                              "--max-plies", "30", "--noise", "0.25", "--out", games});
  EXPECT_EQ(played["games"], 6);
  EXPECT_EQ(played["rows"], 6 * 30);
  const std::string searches = folder_.File("searches.parquet");
  const json searched = Answer(
      {"variations", games, "--net", net_, "--nodes", "60", "--per-game", "5", "--out", searches});
  EXPECT_GT(searched["rows"].get<int64_t>(), 20);
  // The same again changes nothing, other options are refused.
  EXPECT_TRUE(Answer({"variations", games, "--net", net_, "--nodes", "60", "--per-game", "5",
                      "--out", searches})["kept"]);
  EXPECT_EQ(Oracle({"variations", games, "--net", net_, "--nodes", "61", "--per-game", "5", "--out",
                    searches})
                .code,
            1);
  const json evals = Answer({"evals", games, "--net", net_, "--sessions",
                             "nodes=10;nodes=40,multipv=3", "--out", folder_.File("e.parquet")});
  EXPECT_GT(evals["rows"].get<int64_t>(), 400);

  for (const auto& [option, file] : {std::pair("--games", games), {"--variations", searches}}) {
    const Ran dump = testing::RunCommand(
        {testing::ProgramPath("kibitz"), "decoder", "dump", option, file, "--row", "3", "--json"});
    EXPECT_EQ(dump.code, 0) << dump.err;
    EXPECT_FALSE(dump.out.empty());
  }
}

TEST_F(OracleNetTest, DecoderAndPolicyTeachToo) {
  for (const std::string& net :
       {testing::GoldenPath("decoder/tiny.pt"), testing::SourcePath("models/policy-small")}) {
    const std::string name = std::filesystem::path(net).filename();
    const std::string games = folder_.File(name + ".games.parquet");
    const json played = Answer({"games", "--net", net, "--games", "2", "--nodes", "4",
                                "--max-plies", "8", "--out", games});
    EXPECT_EQ(played["rows"], 16);
    const json searched = Answer({"variations", games, "--net", net, "--nodes", "20", "--per-game",
                                  "4", "--out", folder_.File(name + ".searches.parquet")});
    EXPECT_EQ(searched["rows"], 8);
    EXPECT_EQ(Answer({"search", "--net", net, "--nodes", "30"})["visits"], 30);
  }
}

}  // namespace
}  // namespace kibitz
