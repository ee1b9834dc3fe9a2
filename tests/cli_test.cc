// The program as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
#include "base/processor.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Ran;

const std::string kProgram = testing::ProgramPath("kibitz");

Ran Kibitz(std::vector<std::string> words, const std::string& input = "") {
  words.insert(words.begin(), kProgram);
  return testing::RunCommand(words, input);
}

// All commands: the indented lines of the help.
std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  std::istringstream lines(Kibitz({"--help"}).out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) names.push_back(line.substr(2, line.find("  ", 2) - 2));
  }
  return names;
}

Ran HelpOf(const std::string& name) {
  std::istringstream parts(name);
  std::vector<std::string> words;
  for (std::string word; parts >> word;) words.push_back(word);
  words.emplace_back("--help");
  return Kibitz(words);
}

TEST(CliTest, HelpListsEveryCommandAndEachHasAnExample) {
  const Ran help = Kibitz({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* name : {"chess show", "chess moves", "chess perft", "chess pgn", "version"}) {
    EXPECT_THAT(help.out, HasSubstr(name));
  }
  const std::vector<std::string> names = CommandNames();
  EXPECT_GE(names.size(), 6U);
  for (const std::string& name : names) {
    const Ran ran = HelpOf(name);
    EXPECT_EQ(ran.code, 0) << name;
    EXPECT_THAT(ran.out, HasSubstr("usage: kibitz " + name));
    EXPECT_THAT(ran.out, HasSubstr("\nexample\n  ")) << name;
  }
}

// Each example of the help runs as written in the repository's folder, in the order of the help: a
// later one may use what an earlier one wrote. Those that train, or take minutes, run in tests of
// their own folders.
TEST(CliTest, ExamplesRunAsWritten) {
  const std::set<std::string> elsewhere = {"decoder pretrain",
                                           "decoder finetune",
                                           "policy train",
                                           "2048 train",
                                           "train check",
                                           "train plot",
                                           "2048 oracle",
                                           "2048 eval",
                                           "2048 export",
                                           "uci",
                                           "serve"};
  const bool engine =
      testing::RunCommand({"bash", "-c", "PATH=$PATH:/usr/games command -v stockfish"}).code == 0;
  const testing::TempFolder folder;
  for (const char* name : {"examples", "models", "configs", "tests"}) {
    ASSERT_EQ(symlink(testing::SourcePath(name).c_str(), folder.File(name).c_str()), 0);
  }
  const std::string setup = "cd " + folder.path() +
                            " && export PATH=" + kProgram.substr(0, kProgram.rfind('/')) +
                            ":$PATH && set -e\n";
  for (const std::string& name : CommandNames()) {
    if (elsewhere.contains(name)) continue;
    // Without an engine there are no evaluations to build a policy's data set from, or to fit
    // votes.
    const bool judged = name.starts_with("policy") || name == "decoder votes";
    if (!engine && (name.starts_with("oracle") || judged)) continue;
    const std::string help = HelpOf(name).out;
    const std::string example = help.substr(help.find("\nexample\n") + 9);
    const Ran ran = testing::RunCommand({"bash", "-c", setup + example});
    EXPECT_EQ(ran.code, 0) << name << ": " << example << ran.err;
  }
}

TEST(CliTest, WrongUsageIsTwoAndSaysWhatToDo) {
  const struct {
    std::vector<std::string> words;
    const char* message;
  } cases[] = {
      {{"chess", "prft"}, "did you mean 'chess perft'?"},
      {{"zzzzzz"}, "'kibitz --help' lists the commands"},
      {{"chess", "perft", "--dept", "3"}, "did you mean --depth?"},
      {{"chess", "perft", "--depth", "x"}, "expected a whole number from 0 to 30"},
      {{"chess", "pgn"}, "FILE is required"},
      {{"chess", "pgn", "--files", "x"}, "--files is not a flag; give FILE as a word of its own"},
      {{"file", "convert", "a.pt", "b.pt"}, "the output follows a flag: --out FILE"},
      {{"chess", "show", "--fen", "x", "--fens", "y"}, "exclude each other"},
  };
  for (const auto& test : cases) {
    const Ran ran = Kibitz(test.words);
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(test.message));
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(Kibitz({}).code, 2);
  EXPECT_EQ(Kibitz({"chess"}).code, 2);
  EXPECT_EQ(Kibitz({"chess", "--help"}).code, 0);
}

TEST(CliTest, FailuresAreOne) {
  Ran ran = Kibitz({"chess", "show", "--fen", "8/8/8/8/8/8/8/4K3 w - - 0 1"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("Black has 0 kings, expected 1"));
  ran = Kibitz({"chess", "pgn", "/no/such/file.pgn"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("No such file"));
}

TEST(CliTest, ShowAsTextAndJson) {
  const std::string fen = "r3k2r/8/8/8/8/8/8/R3K2R b KQ - 5 20";
  const Ran text = Kibitz({"chess", "show", "--fen", fen, "--ascii"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("  8  r  .  .  .  k  .  .  r "));
  EXPECT_THAT(text.out, HasSubstr("Black to move"));
  EXPECT_THAT(text.out, HasSubstr("castling    White O-O O-O-O"));
  const auto object = json::parse(Kibitz({"chess", "show", "--fen", fen, "--json"}).out);
  EXPECT_EQ(object["fen"], fen);
  EXPECT_EQ(object["side_to_move"], "black");
  EXPECT_EQ(object["ending"], nullptr);
}

TEST(CliTest, ShowAfterMoves) {
  const auto mate =
      json::parse(Kibitz({"chess", "show", "--moves", "f3 e7e5 g4 Qh4#", "--json"}).out);
  EXPECT_EQ(mate["ending"], "checkmate");
  const std::string twice = "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1 Ng8";
  EXPECT_THAT(Kibitz({"chess", "show", "--moves", twice}).out, HasSubstr("threefold repetition"));
  EXPECT_THAT(Kibitz({"chess", "show", "--moves", "e4", "--ascii"}).out, HasSubstr("(P)"));
  EXPECT_EQ(
      json::parse(Kibitz({"chess", "show", "--moves", "1. f3 e7e5 2.g4 2...Qh4#", "--json"}).out),
      mate);
  const Ran wrong = Kibitz({"chess", "show", "--moves", "e4 e4"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("--moves: move 'e4' is not legal"));
}

TEST(CliTest, MovesInBothNotations) {
  const auto object =
      json::parse(Kibitz({"chess", "moves", "--fen", "8/P3k3/8/8/8/8/8/4K2R w K -", "--json"}).out);
  const auto uci = object["uci"].get<std::vector<std::string>>();
  const auto model = object["model"].get<std::vector<std::string>>();
  EXPECT_TRUE(std::is_sorted(uci.begin(), uci.end()));
  ASSERT_EQ(uci.size(), model.size());
  for (size_t i = 0; i < uci.size(); ++i) {
    const std::string expected = uci[i] == "e1g1" ? "e1h1" : uci[i] == "a7a8n" ? "a7a8" : uci[i];
    EXPECT_EQ(model[i], expected);
  }
  EXPECT_EQ(std::count(model.begin(), model.end(), "e1h1"), 1);
}

TEST(CliTest, ManyFensInOrderWithErrorsInPlace) {
  const std::string input = "4k3/8/8/8/8/8/8/4K3 w - - 0 1\n\nrubbish\n8/8/8/8/8/8/k7/2K5 b - -\n";
  const Ran ran = Kibitz({"chess", "moves", "--fens", "-"}, input);
  EXPECT_EQ(ran.code, 1);
  std::istringstream lines(ran.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line)["uci"].size(), 5U);
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line)["fen"], "rubbish");
  EXPECT_TRUE(json::parse(line).contains("error"));
  std::getline(lines, line);
  EXPECT_TRUE(json::parse(line).contains("uci"));
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(CliTest, EpdIsReadWhereFensAre) {
  const std::string epd = "8/P3k3/8/8/8/8/8/4K2R w K - bm a8=Q; id \"promotion; or not\";";
  const auto object = json::parse(Kibitz({"chess", "show", "--fen", epd, "--json"}).out);
  EXPECT_EQ(object["fen"], "8/P3k3/8/8/8/8/8/4K2R w K - 0 1");
  const Ran ran = Kibitz(
      {"chess", "show", "--fens", "-"},
      epd + "\n8/P3k3/8/8/8/8/8/4K2R w K - 7\n" + "8/P3k3/8/8/8/8/8/4K2R w K - hmvc 7; fmvn 30;\n");
  EXPECT_EQ(ran.code, 0);
  std::istringstream lines(ran.out);
  for (const char* counters : {"0 1", "7 1", "7 30"}) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(json::parse(line)["fen"], std::string("8/P3k3/8/8/8/8/8/4K2R w K - ") + counters);
  }
  EXPECT_THAT(Kibitz({"chess", "show", "--fen", "8/P3k3/8/8/8/8/8/4K2R w K - 0 1 x"}).err,
              HasSubstr("expected EPD operations such as bm Nf3;"));
}

TEST(CliTest, PerftDivide) {
  const auto object =
      json::parse(Kibitz({"chess", "perft", "--depth", "4", "--divide", "--json", "--quiet"}).out);
  EXPECT_EQ(object["nodes"], 197281);
  EXPECT_EQ(object["divide"]["e2e4"], 13160);
  EXPECT_THAT(Kibitz({"chess", "perft", "--depth", "3", "--divide"}).out, HasSubstr("a2a3: 380"));
  const Ran other = Kibitz({"chess", "perft", "--depth", "2", "--json", "--chess960", "--fen",
                            "r1k1r2q/p1ppp1pp/8/8/8/8/P1PPP1PP/R1K1R2Q w KQkq -"});
  EXPECT_EQ(json::parse(other.out)["nodes"], 522);
  EXPECT_THAT(
      Kibitz({"chess", "perft", "--fen", "r1k1r2q/p1ppp1pp/8/8/8/8/P1PPP1PP/R1K1R2Q w KQkq -"}).err,
      HasSubstr("try --chess960"));
}

TEST(CliTest, PgnLinesAndBrokenGames) {
  const std::string pgn =
      "[Event \"a\"]\n\n1. e4 {[%clk 0:01:00]} e5 1-0\n\n[Event \"b\"]\n\n1. e5 *\n\n[Event "
      "\"c \xff\"]\n\n1. d4 (1. c4 c5) *\n";
  const Ran ran = Kibitz({"chess", "pgn", "-", "--json", "--variations"}, pgn);
  EXPECT_EQ(ran.code, 0);
  std::istringstream lines(ran.out);
  std::string line;
  std::getline(lines, line);
  const auto first = json::parse(line);
  EXPECT_EQ(first["result"], "1-0");
  EXPECT_EQ(first["moves"], json({"e2e4", "e7e5"}));
  EXPECT_EQ(first["notes"][0]["clock"], 60.0);
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line)["line"], 9);
  EXPECT_EQ(json::parse(line)["notes"][0]["variations"][0]["moves"], json({"c2c4", "c7c5"}));
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_THAT(ran.err, HasSubstr("standard input:7: move 'e5' is not legal"));
  EXPECT_THAT(ran.err, HasSubstr("the game that starts at line 5 is skipped"));
  EXPECT_EQ(Kibitz({"chess", "pgn", "-", "--strict"}, pgn).code, 1);
  EXPECT_EQ(Kibitz({"chess", "pgn", "-", "--quiet"}, pgn).err, "");
}

// A perft that would take hours ends soon after Ctrl-C, with the code shells expect.
TEST(CliTest, CtrlCEndsLongWork) {
  const pid_t child = fork();
  if (child == 0) {
    execl(kProgram.c_str(), kProgram.c_str(), "chess", "perft", "--depth", "8", "--quiet", nullptr);
    _exit(127);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ASSERT_EQ(kill(child, SIGINT), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

// Ctrl-C while the program waits for input is not the end of the input.
TEST(CliTest, CtrlCEndsWaitingForPositions) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[0], STDIN_FILENO);
    execl(kProgram.c_str(), kProgram.c_str(), "chess", "moves", "--fens", "-", nullptr);
    _exit(127);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ASSERT_EQ(kill(child, SIGINT), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(ends[0]);
  close(ends[1]);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

// What the bash script offers for the last of the words.
std::string BashOffers(const std::string& words, int last) {
  const Ran script = Kibitz({"completion", "bash"});
  return testing::RunCommand({"bash", "-c",
                              "source /dev/stdin; COMP_WORDS=(kibitz " + words + "); COMP_CWORD=" +
                                  std::to_string(last) + "; _kibitz; echo \"${COMPREPLY[@]}\""},
                             script.out)
      .out;
}

TEST(CliTest, BashCompletesCommandsFlagsAndValues) {
  EXPECT_EQ(BashOffers("ch", 1), "chess\n");
  EXPECT_EQ(BashOffers("chess pe", 2), "perft\n");
  EXPECT_EQ(BashOffers("chess perft --di", 3), "--divide\n");
  EXPECT_EQ(BashOffers("decoder vocab --part m", 4), "moves\n");
  EXPECT_EQ(BashOffers("completion z", 2), "zsh\n");
  // Files: bash completes them itself where nothing is offered.
  EXPECT_EQ(BashOffers("chess pgn ''", 3), "\n");
  EXPECT_EQ(BashOffers("chess perft --fens ''", 4), "\n");
  EXPECT_EQ(BashOffers("chess pgn --str", 3), "--strict\n");
  EXPECT_EQ(Kibitz({"completion"}).out, Kibitz({"completion", "bash"}).out);
  EXPECT_EQ(Kibitz({"completion", "tcsh"}).code, 2);
}

// Runs the shell's own check where it is installed.
void ExpectParses(const std::string& shell, const std::string& script) {
  if (testing::RunCommand({"sh", "-c", "command -v " + shell}, "").code != 0) return;
  const testing::TempFolder folder;
  WriteFileAtomically(folder.File("script"), script);
  const Ran ran = testing::RunCommand({shell, "-n", folder.File("script")}, "");
  EXPECT_EQ(ran.code, 0) << shell << ": " << ran.err;
  EXPECT_EQ(ran.err, "") << shell;
}

// Whether quotes close, where a backslash escapes within them if `escapes`.
bool QuotesClose(const std::string& line, bool escapes) {
  bool open = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && (escapes || !open)) {
      ++i;
    } else if (line[i] == '\'') {
      open = !open;
    }
  }
  return !open;
}

TEST(CliTest, ZshAndFishCompletionParse) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Ran ran = Kibitz({"completion", shell});
    EXPECT_EQ(ran.code, 0);
    ExpectParses(shell, ran.out);
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(QuotesClose(line, shell == "fish")) << shell << ": " << line;
    }
  }
  const std::string zsh = Kibitz({"completion", "zsh"}).out;
  EXPECT_TRUE(zsh.starts_with("#compdef kibitz\n"));
  EXPECT_THAT(zsh, HasSubstr("'perft:count "));
  EXPECT_THAT(zsh, HasSubstr("'--part[all tokens, or those of one head]:value:(all board moves)'"));
  EXPECT_THAT(zsh, HasSubstr("'*:FILE:_files'"));
  EXPECT_THAT(zsh, HasSubstr("':value:(bash zsh fish)'"));
  const std::string fish = Kibitz({"completion", "fish"}).out;
  EXPECT_THAT(fish, HasSubstr("complete -c kibitz -n '__kibitz_words_are chess' -a perft -d "));
  EXPECT_THAT(fish, HasSubstr("complete -c kibitz -n '__kibitz_words_begin chess perft' -l depth "
                              "-x -d 'plies to count'\n"));
  EXPECT_THAT(fish, HasSubstr("'__kibitz_words_begin decoder vocab' -l part -x -a 'all board "
                              "moves' "));
}

TEST(CliTest, TrainCommandsRunBesideTheProgram) {
  if (!testing::Exists(testing::ProgramPath("kibitz-train"))) {
    GTEST_SKIP() << "built without torch";
  }
  const Ran ran = Kibitz({"train", "check", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["good"], true);
  EXPECT_EQ(Kibitz({"train", "check", "--thread", "1"}).code, 2);
}

// In a build for packages: each level of the processor that runs here gives the same answers.
TEST(CliTest, EveryLevelAnswersAlike) {
  if (!testing::Exists(testing::ProgramPath("cpu"))) GTEST_SKIP() << "built for one processor";
  std::set<std::string> instructions;
  json first;
  for (const auto& [name, level] : kCpuLevels) {
    const auto at_level = [&, variable = "KIBITZ_CPU=" +
                                         std::string(name)](std::vector<std::string> words) {
      words.insert(words.begin(), {"env", variable, kProgram});
      return testing::RunCommand(words);
    };
    const Ran version = at_level({"version", "--json"});
    if (!Runs(level)) {
      EXPECT_EQ(version.code, 1);
      EXPECT_THAT(version.err, HasSubstr("does not run"));
      continue;
    }
    ASSERT_EQ(version.code, 0) << version.err;
    EXPECT_TRUE(instructions.insert(json::parse(version.out)["instructions"]).second) << name;
    json answers;
    for (const char* precision : {"f32", "int8"}) {
      const Ran ran =
          at_level({"decoder", "think", "--model", testing::GoldenPath("decoder/tiny.pt"),
                    "--precision", precision, "--json"});
      ASSERT_EQ(ran.code, 0) << ran.err;
      answers.push_back(json::parse(ran.out)["token_ids"]);
    }
    answers.push_back(
        json::parse(at_level({"chess", "perft", "--depth", "4", "--json"}).out)["nodes"]);
    if (first.is_null()) first = answers;
    EXPECT_EQ(answers, first) << name;
  }
  EXPECT_EQ(testing::RunCommand({"env", "KIBITZ_CPU=v9", kProgram, "version"}).code, 2);
}

}  // namespace
}  // namespace kibitz
