// The decoder's commands as their users run them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "games/chess/fen.h"
#include "tests/support/decoder_records.h"
#include "tests/support/golden_kit.h"

namespace kibitz {
namespace {

using nlohmann::json;
using testing::Compared;
using ::testing::HasSubstr;
using testing::Ran;

Ran Decoder(std::vector<std::string> words, const std::string& input = "") {
  words.insert(words.begin(), {testing::ProgramPath("kibitz"), "decoder"});
  return testing::RunCommand(words, input);
}

TEST(DecoderCliTest, VocabularyAsListAndJson) {
  const Ran text = Decoder({"vocab"});
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 1969);
  EXPECT_THAT(text.out, HasSubstr("1967 generic_move"));
  const json all = json::parse(Decoder({"vocab", "--json"}).out);
  EXPECT_EQ(all["tokens"].size(), 1968);
  EXPECT_EQ(all["tokens"][1947]["name"], "end_think");
  EXPECT_EQ(all["tokens"][1947]["board"], 39);
  const json board = json::parse(Decoder({"vocab", "--part", "board", "--json"}).out);
  EXPECT_EQ(board["tokens"].size(), 41);
  EXPECT_EQ(board["tokens"][40]["name"], "start_think");
}

TEST(DecoderCliTest, TokensThereAndBack) {
  const std::string fen = "r3k2r/8/8/8/8/8/8/R3K2R b Kq - 0 1";
  const json tokens = json::parse(Decoder({"tokens", "--fen", fen, "--json"}).out);
  ASSERT_EQ(tokens["ids"].size(), 68);
  EXPECT_EQ(tokens["tokens"][66], "Kq");
  std::string ids;
  for (const json& id : tokens["ids"]) ids += (ids.empty() ? "" : ",") + id.dump();
  EXPECT_EQ(Decoder({"tokens", "--ids", ids}).out, fen + "\n");
  const Ran bad = Decoder({"tokens", "--ids", ids.substr(5)});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("found 67 tokens, expected 68"));
}

TEST(DecoderCliTest, TokensOfManyPositions) {
  const std::string start(chess::kStartFen);
  const Ran ran = Decoder({"tokens", "--fens", "-"}, start + "\nnonsense\n" + start + "\n");
  EXPECT_EQ(ran.code, 1);
  std::istringstream lines(ran.out);
  std::vector<json> answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(json::parse(line));
  ASSERT_EQ(answers.size(), 3);
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_TRUE(answers[1].contains("error"));
}

// Rights that the pieces do not support are dropped, as in training.
TEST(DecoderCliTest, TokensDropWrongCastlingRights) {
  const json tokens =
      json::parse(Decoder({"tokens", "--fen", "4k3/8/8/8/8/8/8/4K3 w KQkq - 0 1", "--json"}).out);
  EXPECT_EQ(tokens["tokens"][66], "no_castling_rights");
}

// The annotated example of the documents, as a user's file.
class DumpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char variations[] = R"([
      {"root_move": "e2e4", "visit_count": 687, "visit_fraction": 0.86, "prior": 0.33, "nodes": [
        {"fen": "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1", "move": "d7d5",
         "wdl": [0.0, 0.767, 0.233], "visit_count": 687},
        {"fen": "rnbqkbnr/ppp1pppp/8/3p4/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2", "move": null,
         "wdl": [0.233, 0.767, 0.0], "visit_count": 343}]},
      {"root_move": "c2c4", "visit_count": 62, "visit_fraction": 0.08, "prior": 0.33, "nodes": [
        {"fen": "rnbqkbnr/pppppppp/8/8/2P5/8/PP1PPPPP/RNBQKBNR b KQkq - 0 1", "move": "e7e5",
         "wdl": [0.002, 0.956, 0.042], "visit_count": 61},
        {"fen": "rnbqkbnr/pppp1ppp/8/4p3/2P5/8/PP1PPPPP/RNBQKBNR w KQkq - 0 2", "move": null,
         "wdl": [0.042, 0.956, 0.002], "visit_count": 30}]}])";
    testing::WriteSearches(path_, {.count = 1}, [&](testing::SearchRecord& record) {
      record = {.fen = std::string(chess::kStartFen),
                .variations = json::parse(variations).dump(),
                .mcts_action = "e2e4",
                .win = 0.233,
                .draw = 0.767,
                .loss = 0};
    });
  }

  testing::TempFolder folder_;
  std::string path_ = folder_.File("v.parquet");
};

TEST_F(DumpTest, ShowsTheAnnotatedExample) {
  const Ran ran =
      Decoder({"dump", "--variations", path_, "--row", "0", "--ranking", "1,2", "--depths", "2,1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* line : {"  68  start_think         generic_move [O]        e2e4",
                           " 139  black_to_move       continue_var [O]        d7d5",
                           " 210  white_to_move       end_var [N]             -",
                           " 211  end_var             new_variation [O]       c2c4",
                           " 283  end_var             end_think [N]           -",
                           " 284  end_think           generic_move [O]        e2e4"}) {
    EXPECT_THAT(ran.out, HasSubstr(line));
  }
}

// The golden rows as a user's file.
void WriteGolden(const std::vector<json>& golden, const std::string& path) {
  size_t next = 0;
  testing::WriteSearches(path, {.count = golden.size()}, [&](testing::SearchRecord& record) {
    const json& row = golden[next++]["row"];
    record.fen = row["fen"];
    record.variations = row["variations"].is_string() ? row["variations"].get<std::string>()
                                                      : row["variations"].dump();
    record.mcts_action = row["mcts_action"];
    const auto number = [&](const char* key) {
      return row[key].is_null() ? std::nullopt : std::optional(row[key].get<double>());
    };
    record.win = number("win");
    record.draw = number("draw");
    record.loss = number("loss");
  });
}

std::string WithCommas(const json& numbers) {
  std::string text;
  for (const json& number : numbers) text += (text.empty() ? "" : ",") + number.dump();
  return text;
}

TEST_F(DumpTest, JsonEqualsTheGoldenRows) {
  std::vector<json> golden_rows;
  std::ifstream in(testing::GoldenPath("decoder/finetune/variations.jsonl"));
  for (std::string line; std::getline(in, line);) golden_rows.push_back(json::parse(line));
  const std::string path = folder_.File("golden.parquet");
  WriteGolden(golden_rows, path);
  int compared = 0;
  for (size_t row = 0; row < golden_rows.size(); ++row) {
    const json& golden = golden_rows[row];
    const json& options = golden["settings"];
    if (golden.value("skipped", false) || !options["ranking"].is_array()) continue;
    const Ran ran =
        Decoder({"dump", "--json", "--variations", path, "--row", std::to_string(row), "--ranking",
                 WithCommas(options["ranking"]), "--depths", WithCommas(options["depths"]),
                 "--max-seq-len", options["max_seq_len"].dump(), "--no-terminal-leaves"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const json ours = json::parse(ran.out);
    for (const char* key :
         {"seq_len", "ids", "board_mask", "move_target_ids", "move_mask", "thinking_move_mask",
          "wl_positions", "d_positions", "block_id", "board_blocks", "continue_var_mask",
          "new_variation_mask", "attempts", "ranking", "depths_used", "first_is_not_best",
          "wdl_valid_at_wl_positions"}) {
      EXPECT_EQ(ours[key], golden[key]) << golden["name"] << " " << key;
    }
    ++compared;
  }
  Compared(compared, "rows");
}

TEST_F(DumpTest, TheSeedDecidesTheOrder) {
  std::set<std::string> seen;
  for (int seed = 0; seed < 12; ++seed) {
    const Ran ran = Decoder({"dump", "--variations", path_, "--seed", std::to_string(seed)});
    EXPECT_EQ(ran.out,
              Decoder({"dump", "--variations", path_, "--seed", std::to_string(seed)}).out);
    seen.insert(ran.out);
  }
  EXPECT_GT(seen.size(), 2);
}

TEST_F(DumpTest, MistakesAreExplained) {
  EXPECT_EQ(Decoder({"dump"}).code, 2);
  EXPECT_THAT(Decoder({"dump", "--variations", path_, "--row", "999"}).err,
              HasSubstr("has no row 999"));
  EXPECT_THAT(Decoder({"dump", "--variations", path_, "--ranking", "3,1"}).err,
              HasSubstr("each of 1 to 2 once"));
  EXPECT_THAT(Decoder({"dump", "--variations", path_, "--max-seq-len", "100"}).err,
              HasSubstr("raise --max-seq-len"));
  EXPECT_EQ(Decoder({"dump", "--games", path_}).code, 1);
}

TEST_F(DumpTest, GamesToo) {
  const std::string path = folder_.File("g.parquet");
  testing::WriteGames(path, {.count = 3, .max_plies = 30});
  const json game = json::parse(Decoder({"dump", "--games", path, "--row", "2", "--json"}).out);
  EXPECT_EQ(game["thinking"], false);
  EXPECT_EQ(game["move_mask"][0], 67);
  EXPECT_THAT(Decoder({"dump", "--games", path, "--row", "3"}).err, HasSubstr("found no game 3"));
}

}  // namespace
}  // namespace kibitz
