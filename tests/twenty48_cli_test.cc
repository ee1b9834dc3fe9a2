// The 2048 commands as their users run them: from the oracle to play.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/text.h"
#include "tests/support/golden_kit.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using testing::GoldenPath;
using ::testing::HasSubstr;
using testing::Ran;
using testing::ReadWhole;
using testing::TempFolder;

Ran Twenty48(std::vector<std::string> words) {
  words.insert(words.begin(), {testing::ProgramPath("kibitz"), "2048"});
  return testing::RunCommand(words);
}

json Answer(std::vector<std::string> words) {
  words.emplace_back("--json");
  words.emplace_back("--quiet");
  const Ran ran = Twenty48(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? json::parse(ran.out) : json();
}

// All lines of all games in a folder; the metadata hold a time.
std::string StepsIn(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::string all;
  for (const std::string& path : paths) {
    if (path.ends_with(".jsonl.gz")) all += fs::path(path).filename().string() + ReadWhole(path);
  }
  return all;
}

TEST(Twenty48Cli, GamesDoNotDependOnThreadsAndResume) {
  const TempFolder folder;
  const auto generate = [&](const std::string& out, const std::string& games,
                            const std::string& threads) {
    return Answer({"generate", "--games", games, "--depth", "1", "--max-moves", "200", "--out",
                   folder.File(out), "--threads", threads});
  };
  EXPECT_EQ(generate("one", "6", "1")["games"], 6);
  EXPECT_EQ(generate("two", "6", "2")["games"], 6);
  EXPECT_EQ(StepsIn(folder.File("one")), StepsIn(folder.File("two")));
  EXPECT_EQ(generate("three", "2", "1")["games"], 2);
  const json rest = generate("three", "6", "2");
  EXPECT_EQ(rest["games"], 4);
  EXPECT_EQ(rest["kept"], 2);
  EXPECT_EQ(StepsIn(folder.File("three")), StepsIn(folder.File("one")));
}

TEST(Twenty48Cli, TheOracleResumesWithTheOptionsItBeganWith) {
  const TempFolder folder;
  const auto learn = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"oracle", "--out", folder.File("tables.safetensors"),
                                      "--json", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return Twenty48(words);
  };
  ASSERT_EQ(learn({"--games", "3", "--patterns", "0123", "--trace", "0.25"}).code, 0);
  const Ran other = learn({"--games", "5", "--trace", "0.5"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("tables.safetensors began with trace = 0.25, not 0.5"),
                               HasSubstr("another --out")));
  EXPECT_EQ(learn({"--games", "4", "--patterns", "4567"}).code, 2);
  const Ran same = learn({"--games", "5", "--trace", "0.25"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_EQ(json::parse(same.out)["games"], 5);
  EXPECT_EQ(json::parse(learn({"--games", "6"}).out)["games"], 6);
}

TEST(Twenty48Cli, TheOracleLabelsTheGamesOfAStudent) {
  const TempFolder folder;
  const std::string model = testing::Twenty48Models("action_policy").at(0);
  const auto generate = [&](const std::string& out, const std::string& games,
                            const std::string& threads) {
    return Answer({"generate", "--games", games, "--depth", "1", "--student", model, "--explore",
                   "0.1", "--temperature", "0.5", "--max-moves", "120", "--out", folder.File(out),
                   "--threads", threads});
  };
  EXPECT_EQ(generate("one", "6", "1")["games"], 6);
  EXPECT_EQ(generate("two", "2", "2")["games"], 2);
  EXPECT_EQ(generate("two", "6", "2")["kept"], 2);
  EXPECT_EQ(StepsIn(folder.File("one")), StepsIn(folder.File("two")));
  EXPECT_GT(Answer({"pack", folder.File("one"), "--out", folder.File("pack")})["rows"], 100);
  // The oracle itself plays other games.
  Answer({"generate", "--games", "6", "--depth", "1", "--max-moves", "120", "--out",
          folder.File("own"), "--threads", "1"});
  EXPECT_NE(StepsIn(folder.File("own")), StepsIn(folder.File("one")));
}

TEST(Twenty48Cli, PacksMergesAndInspects) {
  const TempFolder folder;
  const json packed = Answer({"pack", GoldenPath("twenty48/raws"), "--out", folder.File("a")});
  EXPECT_GT(packed["rows"], 0);
  const Ran again = Twenty48({"pack", GoldenPath("twenty48/raws"), "--out", folder.File("a")});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("--overwrite"));
  const json merged =
      Answer({"merge", folder.File("a"), GoldenPath("twenty48/pack"), "--out", folder.File("b"),
              "--shard-rows", std::to_string(packed["rows"].get<int>() / 2)});
  EXPECT_EQ(merged["rows"], 2 * packed["rows"].get<int>());
  EXPECT_GT(merged["shards"], 1);
  const json seen = Answer({"inspect", folder.File("b")});
  EXPECT_EQ(seen["rows"], merged["rows"]);
  EXPECT_EQ(seen["runs"], merged["runs"]);
}

TEST(Twenty48Cli, BrokenRawsAreNamedAndNeverPackedSilently) {
  const TempFolder folder;
  Answer({"generate", "--games", "3", "--depth", "1", "--max-moves", "50", "--out",
          folder.File("raws"), "--threads", "1"});
  std::string broken;
  for (const auto& entry : fs::directory_iterator(folder.File("raws"))) {
    if (entry.path().string().ends_with(".jsonl.gz")) broken = entry.path();
  }
  WriteFileAtomically(broken, ReadWhole(broken).substr(0, 300));
  const Ran refused = Twenty48({"pack", folder.File("raws"), "--out", folder.File("pack")});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr(fs::path(broken).filename().string()));
  EXPECT_FALSE(fs::exists(folder.File("pack/steps.npy")));
  const json skipped =
      Answer({"pack", folder.File("raws"), "--out", folder.File("pack"), "--skip-bad"});
  EXPECT_EQ(skipped["runs"], 2);
  EXPECT_EQ(skipped["skipped"].size(), 1);
}

TEST(Twenty48Cli, OraclesAndModelsPlayAndAreMeasured) {
  const std::string model = testing::Twenty48Models("action_policy").at(0);
  for (const std::string& who : {std::string("--oracle=heuristic"), "--model=" + model}) {
    const json figures = Answer({"eval", who, "--games", "4", "--depth", "1", "--threads", "1"});
    EXPECT_EQ(figures["games"], 4);
    EXPECT_GT(figures["mean_score"], 0);
    EXPECT_TRUE(figures["reached"].contains("65536"));
  }
  const json compared = Answer({"eval", "--model", model, "--oracle", "heuristic", "--games", "4",
                                "--depth", "1", "--precision", "int8"});
  EXPECT_GT(compared["agreement"]["positions"], 0);
  const TempFolder folder;
  const json paired = Answer({"eval", "--oracle", "heuristic", "--versus", model, "--games", "6",
                              "--depth", "1", "--html", folder.File("eval.html")});
  EXPECT_EQ(paired["versus"]["games"], 6);
  EXPECT_NEAR(paired["difference"]["mean"].get<double>(),
              paired["mean_score"].get<double>() - paired["versus"]["mean_score"].get<double>(),
              1e-6);
  EXPECT_GT(paired["difference"]["games_higher"], 0);
  EXPECT_THAT(testing::ReadWhole(folder.File("eval.html")), HasSubstr("<svg"));
  const json itself = Answer({"eval", "--model", model, "--versus", model, "--games", "3"});
  EXPECT_EQ(itself["difference"]["mean"], 0);
  EXPECT_EQ(itself["difference"]["p_value"], 1);
  const Ran game = Twenty48({"play", "--model", model, "--json", "--max-moves", "5"});
  EXPECT_EQ(game.code, 0) << game.err;
  const auto lines = Split(Trim(game.out), '\n');
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(json::parse(lines[0])["board"].size(), 16);
  EXPECT_EQ(json::parse(lines[5])["moves"], 5);
  EXPECT_EQ(Twenty48({"play"}).code, 2);
  for (const std::string command : {"play", "eval"}) {
    const Ran missing = Twenty48({command, "--model", "no/such/model"});
    EXPECT_EQ(missing.code, 1);
    EXPECT_THAT(missing.err, HasSubstr("no/such/model: found no such file or folder"));
  }
}

TEST(Twenty48Cli, TheOracleLearnsResumesAndPlays) {
  const TempFolder folder;
  const std::vector<std::string> words = {"oracle",     "--out",  folder.File("t.safetensors"),
                                          "--patterns", "0123",   "--patterns",
                                          "0145",       "--games"};
  auto first = words;
  first.emplace_back("20");
  EXPECT_EQ(Answer(first)["games"], 20);
  auto second = words;
  second.insert(second.end(), {"50", "--weights", folder.File("w.safetensors")});
  EXPECT_EQ(Answer(second)["games"], 50);
  const json figures =
      Answer({"eval", "--oracle", folder.File("w.safetensors"), "--depth", "1", "--games", "3"});
  EXPECT_EQ(figures["games"], 3);
  const auto play = [&](const std::string& oracle, const std::string& out) {
    return Answer({"generate", "--oracle", oracle, "--depth", "1", "--games", "2", "--max-moves",
                   "60", "--threads", "1", "--out", folder.File(out)});
  };
  EXPECT_EQ(play(folder.File("w.safetensors"), "tuples")["games"], 2);
  EXPECT_EQ(play("snake", "snake")["games"], 2);
  EXPECT_NE(StepsIn(folder.File("tuples")), StepsIn(folder.File("snake")));
}

TEST(Twenty48Cli, EveryCommandNamesTheOraclesItKnows) {
  const TempFolder folder;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", "--out", folder.File("raws")},
        {"play"},
        {"eval", "--games", "1"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--oracle", "snakes"});
    const Ran ran = Twenty48(all);
    EXPECT_EQ(ran.code, 2) << words[0];
    EXPECT_THAT(ran.err, AllOf(HasSubstr("snakes"), HasSubstr("'snake'"))) << words[0];
  }
}

#ifdef KIBITZ_HAS_TORCH
TEST(Twenty48Cli, TheNetworkWithoutAttentionIsAWarmStart) {
  const TempFolder folder;
  const auto train = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"train", "--mode", "hard_move", "--dataset-dir",
                                      GoldenPath("twenty48/pack")};
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"--checkpoint-dir", folder.path()},
                                            {"--num-epochs", "0"},
                                            {"--hidden-size", "64"},
                                            {"--num-hidden-layers", "2"},
                                            {"--num-attention-heads", "4"},
                                            {"--intermediate-size", "280"},
                                            {"--batch-size", "32"},
                                            {"--validate-every-n-steps", "1"},
                                            {"--val-run-pct", "0.4"},
                                            {"--val-rows", "64"},
                                            {"--threads", "1"}}) {
      words.insert(words.end(), {name, value});
    }
    words.insert(words.end(), more.begin(), more.end());
    return Answer(words);
  };
  const json first = train({"--run-name", "first", "--attention", "off", "--max-steps", "5"});
  const std::string weights = first["checkpoint"];
  std::string whole;
  const std::vector<std::string> still = {"--init",          weights, "--max-steps",    "1",
                                          "--learning-rate", "0",     "--weight-decay", "0"};
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"--run-name", "again", "--attention", "off"},
        {"--run-name", "whole"}}) {
    auto words = still;
    words.insert(words.end(), how.begin(), how.end());
    const json then = train(words);
    whole = then["checkpoint"];
    EXPECT_NEAR(then["validation"]["total_loss"].get<double>(),
                first["validation"]["total_loss"].get<double>(), 1e-4);
  }
  const std::string folder_of_small = folder.File("model");
  const json exported = Answer({"export", "--model", weights, "--out", folder_of_small});
  const json exported_whole =
      Answer({"export", "--model", whole, "--out", folder.File("whole-model")});
  EXPECT_LT(exported["parameters"], exported_whole["parameters"]);
  // All play the same games.
  const json small = Answer({"eval", "--model", weights, "--games", "8"});
  const json from_folder = Answer({"eval", "--model", folder_of_small, "--games", "8"});
  const json network = Answer({"eval", "--model", whole, "--games", "8"});
  EXPECT_GT(small["mean_score"], 0);
  EXPECT_EQ(small["mean_score"], network["mean_score"]);
  EXPECT_EQ(small["mean_score"], from_folder["mean_score"]);
}

TEST(Twenty48Cli, AWarmStartTakesTheModelOfTheWeights) {
  const TempFolder folder;
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words = {"train",
                                      "--mode",
                                      "hard_move",
                                      "--dataset-dir",
                                      GoldenPath("twenty48/pack"),
                                      "--run-name",
                                      name,
                                      "--checkpoint-dir",
                                      folder.path(),
                                      "--threads",
                                      "1",
                                      "--batch-size",
                                      "32",
                                      "--val-run-pct",
                                      "0.4",
                                      "--val-rows",
                                      "64",
                                      "--max-steps",
                                      "3",
                                      "--log-every-n-steps",
                                      "1",
                                      "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return Twenty48(words);
  };
  const std::vector<std::string> small = {
      "--hidden-size",         "16", "--num-hidden-layers", "1",
      "--num-attention-heads", "2",  "--intermediate-size", "24"};
  const Ran first = train("first", small);
  ASSERT_EQ(first.code, 0) << first.err;
  const std::string weights = folder.File("first/best.pt");  // Though no validation was due.
  const Ran taken = train("taken", {"--init", weights});
  ASSERT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("model from " + weights));
  const Ran other = train("other", {"--init", weights, "--hidden-size", "32"});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("model.hidden_size is 32, but the weights to start from, " +
                                   weights + ", have 16"));
  // Options that change how it computes, not what.
  std::vector<std::string> recomputed = small;
  recomputed.emplace_back("--gradient-checkpointing");
  const Ran again = train("again", recomputed);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NEAR(json::parse(again.out)["metrics"]["total_loss"].get<double>(),
              json::parse(first.out)["metrics"]["total_loss"].get<double>(), 1e-4);
  const Ran nowhere = train("y", {"--device", "cuda:99"});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("use --device cpu"));
  EXPECT_EQ(train("z", {"--use-amp"}).code, 0);
}

TEST(Twenty48Cli, TrainsResumesExportsAndPlays) {
  const TempFolder folder;
  // One of them in mixed precision, where the processor has it.
  const auto train = [&](const std::string& name, const std::string& mode,
                         const std::string& steps) {
    return Answer({"train",
                   mode == "hard_move" ? "--use-amp" : "--no-use-amp",
                   "--dataset-dir",
                   GoldenPath("twenty48/pack"),
                   "--mode",
                   mode,
                   "--run-name",
                   name,
                   "--checkpoint-dir",
                   folder.path(),
                   "--max-steps",
                   steps,
                   "--num-epochs",
                   "0",
                   "--hidden-size",
                   "16",
                   "--num-hidden-layers",
                   "1",
                   "--num-attention-heads",
                   "2",
                   "--intermediate-size",
                   "24",
                   "--batch-size",
                   "32",
                   "--val-run-pct",
                   "0.4",
                   "--val-rows",
                   "64",
                   "--threads",
                   "1"});
  };
  for (const std::string mode : {"binned_ev", "hard_move", "tsad_soft"}) {
    const json whole = train(mode, mode, "12");
    EXPECT_EQ(whole["steps"], 12);
    train(mode + "-parts", mode, "5");
    const json rest = train(mode + "-parts", mode, "12");
    EXPECT_EQ(rest["resumed"], true);
    EXPECT_EQ(rest["metrics"], whole["metrics"]);
    EXPECT_EQ(rest["validation"], whole["validation"]);
    const std::string out = folder.File(mode + "-model");
    Answer({"export", "--model", whole["checkpoint"].get<std::string>(), "--out", out});
    EXPECT_GT(Answer({"eval", "--model", out, "--games", "2"})["moves"], 0);
    // The folder keeps the bins: both give the same expected values.
    const auto expected = [&](const std::string& model) {
      return Answer({"eval", "--model", model, "--games", "2", "--rule", "expected"})["mean_score"];
    };
    EXPECT_EQ(expected(out), expected(whole["checkpoint"].get<std::string>()));
    EXPECT_EQ(json::parse(ReadWhole(out + "/config.json")).contains("binning"),
              mode == "binned_ev");
  }
}
#endif

}  // namespace
}  // namespace kibitz
