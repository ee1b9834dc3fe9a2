// The policy commands as their users run them: from evaluations to a player.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/random.h"
#include "base/text.h"
#include "io/tables/parquet.h"
#include "tests/support/golden_kit.h"
#include "tests/support/policy_rows.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::GoldenPath;
using ::testing::HasSubstr;
using testing::Ran;
using testing::ReadWhole;
using testing::TempFolder;

const std::string kProgram = testing::ProgramPath("kibitz");

Ran Policy(std::vector<std::string> words) {
  words.insert(words.begin(), {kProgram, "policy"});
  return testing::RunCommand(words);
}

json Answer(std::vector<std::string> words) {
  words.emplace_back("--json");
  words.emplace_back("--quiet");
  const Ran ran = Policy(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? json::parse(ran.out) : json();
}

std::string GoldenRows() { return GoldenPath("policy/rows/lichess_db_eval.jsonl.zst"); }

// The rows of the repository, whichever kit is set: for tests that say how well something learns or
// plays.
std::string RepositoryRows() {
  return testing::SourcePath("tests/golden/policy/rows/lichess_db_eval.jsonl.zst");
}

std::string BytesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::string bytes;
  for (const std::string& name : names) bytes += name + ReadWhole(folder + "/" + name);
  return bytes;
}

// Twenty kills at random moments, each followed by a new start: what comes out in the end is what
// comes out without.
TEST(PolicyCli, KilledAndStartedAgainGivesTheSameBytes) {
  const TempFolder folder;
  const std::string rows = folder.File("rows.parquet");
  testing::WriteEvaluations({.rows = 250'000, .positions = 100'000}, rows,
                            folder.File("rows.jsonl.zst"));
  const auto words = [&](const std::string& out) {
    return std::vector<std::string>{kProgram,   "policy", "precompute",      rows,
                                    "--out",    out,      "--flush-seconds", "0.05",
                                    "--memory", "128M",   "--quiet"};
  };
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(testing::RunCommand(words(folder.File("whole"))).code, 0);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::string expected = BytesIn(folder.File("whole"));
  Rng rng({.seed = 12});
  const std::string out = folder.File("killed");
  int finished = 0;
  for (int kills = 0; kills < 20;) {
    std::vector<std::string> killed = {"timeout", "-s", "KILL",
                                       fmt::format("{:.3f}", 0.02 + rng.Uniform() * seconds)};
    for (const std::string& word : words(out)) killed.push_back(word);
    const Ran ran = testing::RunCommand(killed);
    if (ran.code == 137) {
      ++kills;
      continue;
    }
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(BytesIn(out) == expected);
    fs::remove_all(out);
    ++finished;
  }
  const Ran last = testing::RunCommand(words(out));
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_TRUE(BytesIn(out) == expected) << finished;
  EXPECT_FALSE(fs::exists(out + "/work"));
  // The other layout holds the same rows: all but the name of the input is the same.
  const json parquet = json::parse(ReadWhole(out + "/manifest.json"));
  Answer({"precompute", folder.File("rows.jsonl.zst"), "--out", folder.File("lines")});
  EXPECT_EQ(json::parse(ReadWhole(folder.File("lines") + "/manifest.json"))["files"],
            parquet["files"]);
}

TEST(PolicyCli, MakesLooksAtAndConvertsADataSet) {
  const TempFolder folder;
  const std::string data = folder.File("data");
  const json made = Answer({"precompute", GoldenRows(), "--out", data});
  const std::string fens = ReadWhole(GoldenPath("policy/expected/full/fens.txt"));
  const auto positions = std::count(fens.begin(), fens.end(), '\n');
  EXPECT_EQ(made["rows"],
            io::ParquetReader({GoldenPath("policy/rows/chess_position_evaluations.parquet")})
                .CountRows());
  EXPECT_EQ(made["positions"], positions);
  const json odd = Answer(
      {"precompute", GoldenPath("policy/rows/edge_rows.parquet"), "--out", folder.File("odd")});
  EXPECT_GT(odd["skipped"]["rows without a move"]["count"], 0);
  const json verified = Answer({"verify", data});
  EXPECT_EQ(verified["good"], true);
  EXPECT_EQ(verified["soft_labels"].get<int>() + verified["hard_labels"].get<int>(), positions);
  const Ran table = Policy({"verify", data, "--quiet"});
  EXPECT_THAT(table.out, HasSubstr("min-depth"));

  // Labels by number and by FEN are the same, and those of the kit.
  const json label = Answer({"labels", data, "--index", "0"});
  EXPECT_EQ(Answer({"labels", data, "--fen", label["fen"].get<std::string>()}), label);
  const std::string lines = ReadWhole(GoldenPath("policy/expected/soft_labels.jsonl"));
  int compared = 0;
  for (std::string_view line : Split(lines, '\n')) {
    if (compared == 20) break;  // Each runs the program.
    if (line.empty()) continue;
    const json expected = json::parse(line);
    const json ours = Answer(
        {"labels", data, "--fen", expected["fen"].get<std::string>(), "--temperature", "120"});
    EXPECT_EQ(ours["max_depth"], expected["max_depth"]);
    const bool castles = std::ranges::any_of(
        std::vector<std::string>{"e1g1", "e1c1", "e8g8", "e8c8"},
        [&](const std::string& move) { return expected["T120"].contains(move); });
    if (castles) continue;  // The reference keeps both ways to write it apart.
    for (const auto& [move, share] : expected["T120"].items()) {
      EXPECT_NEAR(ours["label"][move].get<double>(), share.get<double>(), 1e-9);
    }
    ++compared;
  }
  testing::Compared(compared, "labels");
  EXPECT_EQ(Policy({"labels", data, "--index", "999999"}).code, 2);
  const std::string lone = "8/8/8/8/8/8/8/K1k5 w - - 0 1";  // No kit has an analysis of it.
  EXPECT_EQ(Policy({"labels", data, "--fen", lone}).code, 1);

  const json arrays =
      Answer({"export", data, "--out", folder.File("planes"), "--format", "planes"});
  EXPECT_EQ(arrays["positions"], positions);
  EXPECT_EQ(Answer({"verify", folder.File("planes")})["good"], true);
  EXPECT_EQ(Answer({"vocab"})["size"], 1968);
  const json small = Answer({"vocab", data, "--out", folder.File("vocab.npy")});
  EXPECT_EQ(Answer({"vocab", GoldenRows()})["moves"], small["moves"]);
  EXPECT_LT(small["size"], 1968);
}

TEST(PolicyCli, SaysWhatIsWrong) {
  const TempFolder folder;
  const Ran missing = Policy({"precompute", folder.File("no"), "--out", folder.File("a")});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("no such file"));
  EXPECT_EQ(
      Policy({"precompute", RepositoryRows(), "--out", folder.File("a"), "--memory", "much"}).code,
      2);
  EXPECT_EQ(Policy({"precompute", RepositoryRows(), "--out", folder.File("a"), "--shards", "3",
                    "--shard", "3"})
                .code,
            2);
  EXPECT_THAT(Policy({"verify", folder.path()}).err, HasSubstr("precompute"));
  const Ran damaged = [&] {
    Answer({"precompute", RepositoryRows(), "--out", folder.File("b")});
    const std::string path = folder.File("b") + "/train_analyses.npy";
    fs::resize_file(path, fs::file_size(path) - 12);
    return Policy({"verify", folder.File("b")});
  }();
  EXPECT_EQ(damaged.code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("train_analyses.npy"));
}

TEST(PolicyCli, PredictsWithTheKitsModels) {
  const std::string model = testing::PolicyModels("legal_distribution.json").front();
  const json answer = Answer({"predict", "--model", model, "--show", "3"});
  EXPECT_EQ(answer["moves"].size(), 3);
  const Ran many =
      testing::RunCommand({kProgram, "policy", "predict", "--model", model, "--fens", "-"},
                          "8/8/8/8/8/5k2/6q1/7K w - - 0 1\nnonsense\n8/8/8/8/8/8/5k2/7K w - -\n");
  EXPECT_EQ(many.code, 1);
  const auto lines = Split(Trim(many.out), '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(json::parse(lines[0])["move"].is_null());  // Mate.
  EXPECT_TRUE(json::parse(lines[1]).contains("error"));
  EXPECT_EQ(json::parse(lines[2])["move"], "h1h2");
}

TEST(PolicyCli, EvaluatesAModel) {
  const TempFolder folder;
  const std::string data = folder.File("data");
  const std::string model = testing::ModelPath("policy-small");
  Answer({"precompute", RepositoryRows(), "--out", data, "--test-share", "0.5"});
  const json eval = Answer({"eval", "--model", model, data});
  EXPECT_EQ(eval["split"], "test");
  EXPECT_EQ(eval["complete"], true);
  EXPECT_GT(eval["positions"], 0);
  EXPECT_GT(eval["deep"]["positions"], 0);
  EXPECT_LT(eval["deep"]["positions"], eval["positions"]);
  for (const char* name : {"move_acc", "top5_acc", "loss"}) {
    EXPECT_LT(eval[name]["low"], eval[name]["value"]);
    EXPECT_LT(eval[name]["value"], eval[name]["high"]);
  }
  EXPECT_GT(eval["move_acc"]["value"], 0.1);  // A random legal move has 0.03.
  EXPECT_GT(eval["top5_acc"]["value"], eval["move_acc"]["value"]);
  EXPECT_EQ(
      Answer({"eval", "--model", model, data, "--threads", "1", "--batch-size", "7"})["move_acc"],
      eval["move_acc"]);
  EXPECT_EQ(Answer({"eval", "--model", model, data, "--positions", "50"})["positions"], 50);
  const Ran text = Policy({"eval", "--model", model, data, "--quiet"});
  EXPECT_THAT(text.out, HasSubstr("top-1 accuracy"));
  EXPECT_THAT(text.out, HasSubstr("depth 30 or more"));

  const Ran empty = Policy({"eval", "--model", model, data, "--split", "nowhere"});
  EXPECT_EQ(empty.code, 2);
  // A network with another vocabulary has other numbers for its moves.
  Answer({"vocab", data, "--out", folder.File("vocab.npy")});
  Answer({"export", data, "--out", folder.File("small"), "--format", "planes", "--vocab",
          folder.File("vocab.npy")});
  const Ran other = Policy({"eval", "--model", model, folder.File("small")});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("--vocab"));
  const Ran none = [&] {
    Answer({"precompute", RepositoryRows(), "--out", folder.File("b"), "--test-share", "0"});
    return Policy({"eval", "--model", model, folder.File("b")});
  }();
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("--test-share"));
}

// Ctrl-C reports what was measured before it.
TEST(PolicyCli, AnInterruptedEvaluationReports) {
  const TempFolder folder;
  const std::string rows = folder.File("rows.parquet");
  testing::WriteEvaluations({.rows = 100'000, .positions = 60'000}, rows,
                            folder.File("rows.jsonl.zst"));
  const std::string data = folder.File("data");
  Answer({"precompute", rows, "--out", data});
  const Ran ran =
      testing::RunCommand({"timeout", "--preserve-status", "-s", "INT", "0.7", kProgram, "policy",
                           "eval", "--model", testing::ModelPath("policy-small"), data, "--split",
                           "train", "--threads", "1", "--json", "--quiet"});
  ASSERT_EQ(ran.code, 130) << ran.err;
  const json eval = json::parse(ran.out);
  EXPECT_EQ(eval["complete"], false);
  EXPECT_LT(eval["positions"], 59'000);
}

#ifdef KIBITZ_HAS_TORCH
TEST(PolicyCli, TrainsResumesExportsAndPlays) {
  const TempFolder folder;
  const std::string data = folder.File("data");
  Answer({"precompute", RepositoryRows(), "--out", data, "--val-share", "0.1"});
  Answer({"export", data, "--out", folder.File("planes")});
  const auto train = [&](const std::string& name, const std::string& from, const std::string& steps,
                         std::vector<std::string> more) {
    std::vector<std::string> words = {
        "train", "--data-dir",        from,          "--run-name",
        name,    "--checkpoint-dir",  folder.path(), "--validate-every-n-steps",
        "10",    "--max-steps",       steps,         "--num-epochs",
        "0",     "--hidden-channels", "4",           "--num-layers",
        "1",     "--hidden-size",     "16",          "--batch-size",
        "64",    "--eval-rows",       "64",          "--threads",
        "1",     "--eval-min-depth",  "25"};
    words.insert(words.end(), more.begin(), more.end());
    return Answer(words);
  };
  const std::vector<std::vector<std::string>> kinds = {
      {"--cls", "PolicyMLP"}, {"--flip-board", "--norm", "RMSNorm"}, {"--min-depth", "22"}};
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::string name = "run" + std::to_string(i);
    const json whole = train(name, data, "20", kinds[i]);
    EXPECT_EQ(whole["steps"], 20);
    EXPECT_TRUE(whole["validation"].contains("deep_acc"));
    EXPECT_TRUE(whole["validation"].contains("top5_acc"));
    train(name + "-parts", data, "7", kinds[i]);
    const json rest = train(name + "-parts", data, "20", kinds[i]);
    EXPECT_EQ(rest["resumed"], true);
    EXPECT_EQ(rest["metrics"], whole["metrics"]);
    EXPECT_EQ(rest["validation"], whole["validation"]);
    // Planes teach what packed rows teach.
    EXPECT_EQ(train(name + "-planes", folder.File("planes"), "20", kinds[i])["metrics"],
              whole["metrics"]);
    const std::string out = folder.File(name + "-model");
    Answer({"export", "--model", whole["checkpoint"].get<std::string>(), "--out", out});
    // Without torch, and from either storage, the same numbers as training's own validation.
    const json& validation = whole["validation"];
    for (const std::string& from : {data, folder.File("planes")}) {
      const json eval =
          Answer({"eval", "--model", out, from, "--split", "val", "--deep-min-depth", "25"});
      EXPECT_NEAR(eval["move_acc"]["value"], validation["move_acc"], 1e-6);
      EXPECT_NEAR(eval["top5_acc"]["value"], validation["top5_acc"], 1e-6);
      EXPECT_NEAR(eval["loss"]["value"], validation["total_loss"], 1e-4);
      EXPECT_NEAR(eval["deep"]["move_acc"]["value"], validation["deep_acc"], 1e-6);
      EXPECT_NEAR(eval["deep"]["loss"]["value"], validation["deep_loss"], 1e-4);
    }
    EXPECT_EQ(Answer({"predict", "--model", out, "--show", "20"})["moves"].size(), 20);
  }
}

TEST(PolicyCli, AWarmStartTakesTheModelOfTheWeights) {
  const TempFolder folder;
  const std::string data = folder.File("data");
  Answer({"precompute", RepositoryRows(), "--out", data, "--val-share", "0.1"});
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words = {kProgram,      "policy",       "train", "--data-dir",
                                      data,          "--run-name",   name,    "--checkpoint-dir",
                                      folder.path(), "--num-layers", "1",     "--threads",
                                      "1",           "--batch-size", "64",    "--eval-rows",
                                      "64",          "--max-steps",  "3",     "--log-every-n-steps",
                                      "1",           "--json"};
    words.insert(words.end(), more.begin(), more.end());
    if (name == "no-bf16") words.insert(words.begin(), {"env", "KIBITZ_BF16=off"});
    return testing::RunCommand(words);
  };
  const Ran first = train("first", {"--hidden-channels", "4"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_TRUE(testing::Exists(folder.File("first/best.pt")));  // Though no validation was due.
  const std::string weights = folder.File("first/best.pt");
  const Ran taken = train("taken", {"--init", weights});
  ASSERT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("model from " + weights));
  const Ran other = train("other", {"--init", weights, "--hidden-channels", "8"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("model.hidden_channels is 8, but the weights to start from, " +
                                   weights + ", have 4"));
  // Options that change how it computes, not what.
  const Ran again = train("again", {"--hidden-channels", "4", "--gradient-checkpointing"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NEAR(json::parse(again.out)["metrics"]["total_loss"].get<double>(),
              json::parse(first.out)["metrics"]["total_loss"].get<double>(), 1e-4);
  EXPECT_EQ(train("x", {"--cls", "PolicyMLP", "--gradient-checkpointing"}).code, 2);
  const Ran nowhere = train("y", {"--device", "cuda:99"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("use --device cpu"));
  EXPECT_THAT(train("no-bf16", {"--use-amp"}).err, HasSubstr("use_amp has no effect here"));
  const Ran mixed = train("mixed", {"--hidden-channels", "4", "--use-amp"});
  ASSERT_EQ(mixed.code, 0) << mixed.err;
  EXPECT_NEAR(json::parse(mixed.out)["metrics"]["total_loss"].get<double>(),
              json::parse(first.out)["metrics"]["total_loss"].get<double>(), 1e-2);
}

// A network that sees few positions again and again learns them by heart.
TEST(PolicyCli, LearnsByHeart) {
  const TempFolder folder;
  const std::string data = folder.File("data");
  Answer({"precompute", RepositoryRows(), "--out", data, "--rows", "120", "--val-share", "0"});
  const json run =
      Answer({"train",   "--data-dir",        data,          "--run-name",
              "heart",   "--checkpoint-dir",  folder.path(), "--validate-every-n-steps",
              "10",      "--max-steps",       "150",         "--num-epochs",
              "0",       "--hidden-channels", "8",           "--num-layers",
              "1",       "--batch-size",      "32",          "--learning-rate",
              "0.005",   "--threads",         "1",           "--log-every-n-steps",
              "10",      "--strategy",        "best",        "--schedule",
              "constant"});
  EXPECT_GT(run["metrics"]["move_acc"].get<double>(), 0.95);
}
#endif

// What no untrained network knows: the rules, and that a queen that can be had for nothing is
// taken.
TEST(PolicyCli, TheModelThatShipsHasLearned) {
  const std::string model = testing::ModelPath("policy-small");
  const std::string queen = "rnb1kbnr/pppp1ppp/8/4p1q1/4P3/3P4/PPP2PPP/RNBQKBNR w KQkq - 1 3";
  const json taken = Answer({"predict", "--model", model, "--fen", queen});
  EXPECT_EQ(taken["move"], "c1g5");
  EXPECT_GT(taken["legal_mass"], 0.9);
  EXPECT_GT(Answer({"predict", "--model", model})["legal_mass"], 0.9);
}

// Over the repository's positions its best move is the label's in 25.8%, and legal moves have 83%
// of its probability on average. The bounds are about three standard errors of 1,000 positions
// below.
TEST(PolicyCli, TheModelThatShipsPredictsLabels) {
  const TempFolder folder;
  std::string fens;
  std::vector<std::string> best;
  const std::string labels =
      ReadWhole(testing::SourcePath("tests/golden/policy/expected/soft_labels.jsonl"));
  for (std::string_view line : Split(labels, '\n')) {
    if (line.empty()) continue;
    const json label = json::parse(line);
    fens += label["fen"].get<std::string>() + "\n";
    std::pair<double, std::string> top;
    for (const auto& [move, share] : label["T120"].items()) {
      top = std::max(top, {share.get<double>(), move});
    }
    best.push_back(top.second);
  }
  WriteFileAtomically(folder.File("fens.txt"), fens);
  const Ran ran = Policy({"predict", "--model", testing::ModelPath("policy-small"), "--fens",
                          folder.File("fens.txt"), "--json", "--quiet"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  double right = 0;
  double legal_mass = 0;
  size_t count = 0;
  for (std::string_view line : Split(ran.out, '\n')) {
    if (line.empty()) continue;
    const json answer = json::parse(line);
    ASSERT_LT(count, best.size());
    if (answer["move"] == best[count++]) ++right;
    legal_mass += answer["legal_mass"].get<double>();
  }
  ASSERT_EQ(count, best.size());
  EXPECT_GT(right / static_cast<double>(count), 0.217);
  EXPECT_GT(legal_mass / static_cast<double>(count), 0.79);
}

}  // namespace
}  // namespace kibitz
