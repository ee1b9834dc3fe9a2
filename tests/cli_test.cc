// The program as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/atomic_file.h"
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

TEST(CliTest, HelpListsEveryCommandAndEachHasAnExample) {
  const Ran help = Kibitz({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* name : {"chess show", "chess moves", "chess perft", "chess pgn", "version"}) {
    EXPECT_THAT(help.out, HasSubstr(name));
  }
  // Commands are the indented lines.
  std::vector<std::string> names;
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) names.push_back(line.substr(2, line.find("  ", 2) - 2));
  }
  EXPECT_GE(names.size(), 6U);
  for (const std::string& name : names) {
    std::istringstream parts(name);
    std::vector<std::string> words;
    for (std::string word; parts >> word;) words.push_back(word);
    words.emplace_back("--help");
    const Ran ran = Kibitz(words);
    EXPECT_EQ(ran.code, 0) << name;
    EXPECT_THAT(ran.out, HasSubstr("usage: kibitz " + name));
    EXPECT_THAT(ran.out, HasSubstr("\nexample\n  ")) << name;
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

TEST(CliTest, CompletionKnowsCommandsAndFlags) {
  const Ran ran = Kibitz({"completion"});
  EXPECT_THAT(ran.out, HasSubstr("\"chess perft \"*) words=\"--help --fen"));
  EXPECT_THAT(ran.out, HasSubstr("complete -o default -F _kibitz kibitz"));
  const Ran used = testing::RunCommand(
      {"bash", "-c",
       "source /dev/stdin; COMP_WORDS=(kibitz chess pe); COMP_CWORD=2; _kibitz; "
       "echo \"${COMPREPLY[@]}\""},
      ran.out);
  EXPECT_EQ(used.out, "perft\n");
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

}  // namespace
}  // namespace kibitz
