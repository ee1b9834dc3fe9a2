// kibitz decoder predict and think as their users run them, on the golden network. What a network
// says is compared with the golden rows or with the program's own JSON: another kit has another
// network.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/write_lock.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "io/weights/torch_file.h"
#include "tests/support/golden_kit.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using nlohmann::json;
using testing::Compared;
using ::testing::HasSubstr;
using testing::Ran;

Ran Decoder(const std::string& command, std::vector<std::string> words,
            const std::string& input = "") {
  words.insert(words.begin(), {testing::ProgramPath("kibitz"), "decoder", command, "--model",
                               testing::GoldenPath("decoder/tiny.pt")});
  return testing::RunCommand(words, input);
}

std::vector<json> Lines(const std::string& text) {
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

std::vector<json> Golden(const std::string& file) {
  std::ifstream in(testing::GoldenPath("decoder/" + file));
  std::stringstream text;
  text << in.rdbuf();
  return Lines(text.str());
}

// Choices nearer than this may go either way in another order of summation.
bool Safe(const json& row, const std::string& key) {
  return row[key].is_null() || row[key].get<double>() >= 1e-4;
}

// The reference takes any e1h1 for castling and has no promotion to a knight.
bool WrittenOtherwise(const std::string& move) {
  return move == "e1h1" || move == "e1a1" || move == "e8h8" || move == "e8a8" ||
         (move.size() == 5 && move.back() == 'n');
}

// The folder plays as the checkpoint, and so does the mean of a network with itself.
TEST(DecoderPlayCliTest, ExportedModelsPlayTheSame) {
  const testing::TempFolder folder;
  const std::string tiny = testing::GoldenPath("decoder/tiny.pt");
  const json expected = json::parse(Decoder("predict", {"--json"}).out);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"--model", tiny}}) {
    const std::string out = folder.File(fmt::format("model{}", more.size()));
    std::vector<std::string> words = {"--out", out, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran made = Decoder("export", words);
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_GT(json::parse(made.out)["parameters"].get<int64_t>(), 0);
    const Ran ran = testing::RunCommand(
        {testing::ProgramPath("kibitz"), "decoder", "predict", "--model", out, "--json"});
    EXPECT_EQ(json::parse(ran.out)["moves"], expected["moves"]);
    EXPECT_FALSE(expected["moves"].empty());
  }
}

// The priors are the probabilities of 'predict', and nothing else changes.
TEST(DecoderPlayCliTest, PriorsAreTheNetworksOwn) {
  const testing::TempFolder folder;
  const std::string searches = testing::SourcePath("examples/decoder/searches.parquet");
  const std::string own = folder.File("own.parquet");
  const Ran made = Decoder("priors", {searches, "--out", own, "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto rows = [&](const std::string& file, const std::string& lines) {
    EXPECT_EQ(testing::RunCommand(
                  {testing::ProgramPath("kibitz"), "file", "convert", file, "--out", lines})
                  .code,
              0);
    return Lines(testing::ReadWhole(lines));
  };
  const std::vector<json> before = rows(searches, folder.File("before.jsonl"));
  const std::vector<json> after = rows(own, folder.File("after.jsonl"));
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(json::parse(made.out)["rows"], before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    json variations = json::parse(after[i]["variations"].get<std::string>());
    json expected = json::parse(before[i]["variations"].get<std::string>());
    const json predicted = json::parse(
        Decoder("predict", {"--fen", after[i]["fen"], "--show", "256", "--json"}).out)["moves"];
    for (size_t k = 0; k < variations.size(); ++k) {
      const auto found = std::ranges::find_if(
          predicted, [&](const json& move) { return move["move"] == variations[k]["root_move"]; });
      ASSERT_NE(found, predicted.end());
      EXPECT_NEAR(variations[k]["prior"], (*found)["probability"], 1e-5);
      expected[k]["prior"] = variations[k]["prior"];
    }
    EXPECT_EQ(variations, expected);
    EXPECT_EQ(after[i]["mcts_action"], before[i]["mcts_action"]);
    EXPECT_EQ(after[i].value("win", json()), before[i].value("win", json()));  // One has none.
  }
  EXPECT_THAT(
      Decoder("priors", {testing::SourcePath("examples/decoder/games.parquet"), "--out", own}).err,
      HasSubstr("has no column 'variations'"));
  const WriteLock lock = WriteLock::OfFile(own);
  const Ran second = Decoder("priors", {searches, "--out", own});
  EXPECT_EQ(second.code, 1);
  EXPECT_THAT(second.err, HasSubstr(own));
}

// Searches of random positions with a value for every legal move.
std::string JudgedPositions(int count) {
  std::string lines;
  Rng rng({.seed = 9});
  chess::Board board;
  for (int made = 0; made < count; ++made) {
    const chess::MoveList moves = chess::LegalMoves(board);
    if (moves.empty() || made % 40 == 39) {
      board = chess::Board();
      continue;
    }
    json variations = json::array();
    for (const chess::Move move : moves) {
      const double win = rng.Uniform();
      variations.push_back({{"root_move", chess::ToText(board, move)},
                            {"visit_count", 10},
                            {"visit_fraction", 1.0 / static_cast<double>(moves.size())},
                            {"prior", 0.0},
                            {"nodes",
                             {{{"fen", chess::ToFen(board.After(move))},
                               {"move", nullptr},
                               {"wdl", {1 - win, 0.0, win}},
                               {"visit_count", 10}}}}});
    }
    lines += json({{"fen", chess::ToFen(board)},
                   {"variations", variations.dump()},
                   {"mcts_action", chess::ToText(board, moves[0])},
                   {"win", 0.5},
                   {"draw", 0.0},
                   {"loss", 0.5}})
                 .dump() +
             "\n";
    board = board.After(moves[rng.Below(moves.size())]);
  }
  return lines;
}

// Only the votes change: the instinct is the same, and the final move begins with it.
TEST(DecoderPlayCliTest, VotesAreFittedToOwnThoughts) {
  const testing::TempFolder folder;
  const std::string lines = folder.File("judged.jsonl");
  const std::string searches = folder.File("judged.parquet");
  std::ofstream(lines) << JudgedPositions(90);
  ASSERT_EQ(testing::RunCommand(
                {testing::ProgramPath("kibitz"), "file", "convert", lines, "--out", searches})
                .code,
            0);
  const std::string out = folder.File("voting");
  const Ran made = Decoder("votes", {searches, "--out", out});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("held out, the move by instinct gives away"));
  const json config = json::parse(testing::ReadWhole(out + "/config.json"));
  EXPECT_EQ(config["compared_votes"], true);
  const auto answer = [](const std::string& command, const std::vector<std::string>& model) {
    std::vector<std::string> words = {testing::ProgramPath("kibitz"), "decoder", command, "--json"};
    words.insert(words.end(), model.begin(), model.end());
    return json::parse(testing::RunCommand(words).out);
  };
  EXPECT_EQ(answer("predict", {"--model", out})["moves"],
            json::parse(Decoder("predict", {"--json"}).out)["moves"]);
  EXPECT_EQ(answer("think", {"--model", out})["end"], "finished");
  const Ran few = Decoder("votes", {testing::SourcePath("examples/decoder/searches.parquet"),
                                    "--out", folder.File("few")});
  EXPECT_EQ(few.code, 1);
  EXPECT_THAT(few.err, HasSubstr("expected at least 64"));
}

// 2 kB of Parquet that hold 200,000 brackets used to end the program.
TEST(DecoderPlayCliTest, PriorsRefuseVariationsNestedDeep) {
  const testing::TempFolder folder;
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const json row = {{"fen", chess::kStartFen},
                    {"variations", R"([{"root_move":"e2e4","x":)" + deep + "}]"},
                    {"mcts_action", "e2e4"},
                    {"win", 0.3},
                    {"draw", 0.4},
                    {"loss", 0.3}};
  std::ofstream(folder.File("deep.jsonl")) << row.dump() << "\n";
  const std::string searches = folder.File("deep.parquet");
  ASSERT_EQ(testing::RunCommand({testing::ProgramPath("kibitz"), "file", "convert",
                                 folder.File("deep.jsonl"), "--out", searches})
                .code,
            0);
  const Ran refused = Decoder("priors", {searches, "--out", folder.File("own.parquet")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("row 0: its variations are no JSON list"));
}

TEST(DecoderPlayCliTest, PredictForPeople) {
  const json answer = json::parse(Decoder("predict", {"--value", "--json"}).out);
  const std::string move = answer["move"];
  ASSERT_FALSE(move.empty());
  const Ran ran = Decoder("predict", {"--value", "--show", "2"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr(" " + move + " "));
  EXPECT_THAT(ran.out, HasSubstr("for the side to move"));
}

TEST(DecoderPlayCliTest, PredictManyInOrderWithBadLines) {
  std::string fens;
  std::vector<json> expected;
  for (const json& row : Golden("predict.jsonl")) {
    if (row["kind"] != "single") continue;
    fens += row["fen"].get<std::string>() + "\n";
    expected.push_back(row);
    if (expected.size() == 1) fens += "nonsense\n";
  }
  ASSERT_FALSE(expected.empty());
  const Ran ran = Decoder("predict", {"--fens", "-", "--value"}, fens);
  EXPECT_EQ(ran.code, 1);
  std::vector<json> answers = Lines(ran.out);
  ASSERT_EQ(answers.size(), expected.size() + 1);
  EXPECT_EQ(answers[1]["fen"], "nonsense");
  EXPECT_TRUE(answers[1].contains("error"));
  answers.erase(answers.begin() + 1);
  int compared = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool safe =
        std::ranges::all_of(std::vector<std::string>{"margin_legal", "margin_wl", "margin_d"},
                            [&](const std::string& key) { return Safe(expected[i], key); });
    if (!safe) continue;
    EXPECT_EQ(answers[i]["fen"], expected[i]["fen"]);
    const std::string move = answers[i]["move"];
    if (!WrittenOtherwise(move)) {
      EXPECT_EQ(move, expected[i]["predict_move_legal"]);
    }
    EXPECT_NEAR(answers[i]["value"]["win"].get<double>(), expected[i]["win"].get<double>(), 1e-6);
    ++compared;
  }
  Compared(compared, std::ssize(expected), "predictions");
}

TEST(DecoderPlayCliTest, PredictAfterMoves) {
  const json answer = json::parse(Decoder("predict", {"--moves", "e2e4 e7e5 g1f3", "--json"}).out);
  ASSERT_EQ(answer["history"].size(), 3);
  EXPECT_EQ(answer["history"][2]["move"], "g1f3");
  EXPECT_TRUE(answer["legal"].get<bool>());
  EXPECT_THAT(answer["fen"], HasSubstr("5N2"));

  const Ran illegal = Decoder("predict", {"--moves", "e2e4 e7e6 e4e6"});
  EXPECT_EQ(illegal.code, 1);
  EXPECT_THAT(illegal.err, HasSubstr("e4e6"));
  std::string shuffle;
  for (int i = 0; i < 200; ++i) shuffle += "g1f3 g8f6 f3g1 f6g8 ";
  const Ran full = Decoder("predict", {"--moves", shuffle});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("at most "));
  for (const json& row : Golden("predict.jsonl")) {
    if (row["kind"] != "history_error") continue;
    EXPECT_THAT(full.err, HasSubstr("at most " + row["max_history"].dump() + " moves"));
  }
}

void ExpectGoldenThinking(const json& row) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"--no-draft"}}) {
    std::vector<std::string> words = {"--fen", row["fen"], "--json", "--max-seq-len",
                                      row["max_seq_len"].dump()};
    words.insert(words.end(), more.begin(), more.end());
    const json answer = json::parse(Decoder("think", words).out);
    EXPECT_EQ(answer["token_ids"], row["token_ids"]);
    EXPECT_EQ(answer["block_ids"], row["block_ids"]);
    EXPECT_EQ(answer["end"] == "finished", row["ended_thinking"].get<bool>());
    EXPECT_EQ(answer["wl_entries"].size(), row["wl_entries"].size());
    EXPECT_GT(answer["timings"]["tokens_per_second"].get<double>(), 0);
    for (const json& variation : answer["variations"]) {
      for (const json& node : variation["nodes"]) EXPECT_TRUE(node.contains("fen"));
    }
  }
}

TEST(DecoderPlayCliTest, ThinkAsJsonIsTheGoldenThinking) {
  int compared = 0;
  for (const json& row : Golden("think.jsonl")) {
    if (compared == 4) break;  // Each runs the program twice.
    if (!Safe(row, "min_margin")) continue;
    ExpectGoldenThinking(row);
    ++compared;
  }
  Compared(compared, "thoughts");
}

TEST(DecoderPlayCliTest, ThinkForPeople) {
  const std::vector<std::string> small = {"--max-variations", "1", "--max-depth", "1"};
  std::vector<std::string> words = small;
  words.push_back("--json");
  const json answer = json::parse(Decoder("think", words).out);
  words = small;
  words.push_back("--boards");
  const Ran ran = Decoder("think", words);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("(" + answer["move"].get<std::string>() + ")"));
  EXPECT_THAT(ran.out, HasSubstr(fmt::format("drafted {} board tokens, {} held",
                                             answer["timings"]["drafted_tokens"].get<int>(),
                                             answer["timings"]["accepted_tokens"].get<int>())));
  const Ran cut = Decoder("think", {"--max-seq-len", "100"});
  EXPECT_EQ(cut.code, 0);
  EXPECT_THAT(cut.out, HasSubstr("the sequence reached 100 tokens without a final move"));
  const Ran tokens = Decoder("think", {"--tokens", "--max-seq-len", "72"});
  EXPECT_THAT(tokens.out, HasSubstr("start_pos white_rook white_knight"));
  EXPECT_THAT(tokens.out, HasSubstr("wl_value d_value"));
}

TEST(DecoderPlayCliTest, ThinkManyWithSeedsLikeOneByOne) {
  const std::string start(chess::kStartFen);
  const std::vector<std::string> draws = {"--thinking-temperature", "1", "--final-temperature",
                                          "1"};
  std::vector<std::string> words = {"--fens", "-", "--seed", "5"};
  words.insert(words.end(), draws.begin(), draws.end());
  const std::vector<json> many = Lines(Decoder("think", words, start + "\n" + start + "\n").out);
  ASSERT_EQ(many.size(), 2);
  for (size_t i = 0; i < many.size(); ++i) {
    std::vector<std::string> one = {"--json", "--seed", std::to_string(5 + i)};
    one.insert(one.end(), draws.begin(), draws.end());
    EXPECT_EQ(json::parse(Decoder("think", one).out)["token_ids"], many[i]["token_ids"]);
  }
}

TEST(DecoderPlayCliTest, ThinkManyAnswersInOrderAndContinuesBehindWhatIsSkipped) {
  // More than share passes, of different lengths, with lines that are no positions between them.
  std::string fens;
  for (int i = 0; i < 11; ++i) {
    if (i % 4 == 1) fens += "nonsense\n\n";
    fens += i % 3 == 0 ? "7k/6pp/8/8/8/8/8/R3K3 w Q - 0 1\n" : std::string(chess::kStartFen) + "\n";
  }
  const std::vector<std::string> words = {"--fens", "-",      "--thinking-temperature",
                                          "1",      "--seed", "3"};
  const Ran ran = Decoder("think", words, fens);
  EXPECT_EQ(ran.code, 1);  // For the lines that are no positions.
  const std::vector<json> all = Lines(ran.out);
  ASSERT_EQ(all.size(), 14);
  EXPECT_TRUE(all[1].contains("error"));
  EXPECT_EQ(all[0]["fen"], "7k/6pp/8/8/8/8/8/R3K3 w Q - 0 1");
  EXPECT_EQ(all[2]["fen"], chess::kStartFen);
  std::vector<std::string> again = words;
  again.insert(again.end(), {"--skip", "6"});
  const std::vector<json> rest = Lines(Decoder("think", again, fens).out);
  ASSERT_EQ(rest.size(), 8);
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i].value("token_ids", json()), all[i + 6].value("token_ids", json())) << i;
    EXPECT_EQ(rest[i]["fen"], all[i + 6]["fen"]) << i;
  }
}

TEST(DecoderPlayCliTest, BareWeightsNeedTheNumberOfHeads) {
  const testing::TempFolder folder;
  const std::string kibitz = testing::ProgramPath("kibitz");
  const std::string bare = folder.File("bare.safetensors");
  ASSERT_EQ(testing::RunCommand({kibitz, "decoder", "migrate",
                                 testing::GoldenPath("decoder/tiny.pt"), "--out", bare})
                .code,
            0);
  const Ran refused = testing::RunCommand({kibitz, "decoder", "predict", "--model", bare});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--num-heads"));
  const io::Value whole = io::ReadPt(testing::GoldenPath("decoder/tiny.pt"));
  const std::string heads = std::to_string(whole.Get("config.model.num_heads").AsInt());
  const Ran told = testing::RunCommand(
      {kibitz, "decoder", "predict", "--model", bare, "--num-heads", heads, "--json"});
  EXPECT_EQ(told.code, 0);
  EXPECT_EQ(json::parse(told.out)["moves"],
            json::parse(Decoder("predict", {"--json"}).out)["moves"]);
}

}  // namespace
}  // namespace kibitz
