#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/twenty48_judge.h"
#include "oracles/self_play.h"

namespace kibitz::cli {
namespace {

namespace fs = std::filesystem;
using oracles::RawGame;
using oracles::RawMeta;

struct GenerateOptions {
  oracles::SelfPlayOptions play = {.search = {.depth = 2}};
  int64_t games = 100;
  int64_t first = 0;
  std::string out;
  std::string tables;
  int threads = 0;
};

Fields FieldsOf(GenerateOptions& options) {
  Fields fields;
  fields.Add("out", options.out, "folder for the games; those already there are kept",
             {.required = true, .metavar = "DIR"});
  fields.Add("games", options.games, "games in all", {.min = 1});
  fields.Add("first", options.first, "number of the first game", {.min = 0});
  fields.Add("tables", options.tables,
             "judge of boards: the file of an n-tuple network, 'snake', or 'heuristic'",
             {.metavar = "FILE"});
  fields.Add("threads", options.threads, "games played at a time; 0: one a core",
             {.min = 0, .max = 1024});
  fields.AddAll(FieldsOf(options.play));
  return fields;
}

// What of game `index` is known before it is played.
RawMeta Plan(const GenerateOptions& options, int64_t index) {
  RawMeta meta;
  meta.seed = oracles::GameSeed(options.play.seed, index);
  meta.depth = options.play.search.depth;
  meta.game_index = index;
  return meta;
}

struct Totals {
  std::atomic<int64_t> games{0};
  std::atomic<int64_t> moves{0};
  std::atomic<int64_t> score{0};
  std::atomic<int64_t> kept{0};
};

void PlayAll(const GenerateOptions& options, Totals& totals) {
  const auto judge = OpenJudge(options.tables);
  ThreadPool pool(options.threads == 0 ? HardwareThreads() : options.threads);
  Progress progress("games", static_cast<uint64_t>(options.games));
  pool.ParallelFor(static_cast<size_t>(options.games), [&](size_t i) {
    const int64_t index = options.first + static_cast<int64_t>(i);
    const std::string name = oracles::RawGameName(Plan(options, index));
    if (fs::exists(options.out + "/" + name + ".meta.json")) {
      ++totals.kept;
    } else {
      oracles::Expectimax search(*judge, options.play.search);
      const RawGame game = oracles::PlayRawGame(search, options.play, index, options.out);
      oracles::WriteRawGame(options.out, game);
      ++totals.games;
      totals.moves += game.meta.num_moves;
      totals.score += game.meta.score;
    }
    progress.Add(1);
  });
  progress.Finish();
}

int Run(const GenerateOptions& options, const Context& context) {
  fs::create_directories(options.out);
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  PlayAll(options, totals);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double mean =
      totals.games == 0 ? 0 : static_cast<double>(totals.score) / static_cast<double>(totals.games);
  const double rate = static_cast<double>(totals.moves) / seconds;
  if (context.json) {
    PrintJson({{"games", totals.games.load()},
               {"kept", totals.kept.load()},
               {"moves", totals.moves.load()},
               {"mean_score", mean},
               {"moves_per_second", rate},
               {"folder", options.out}});
  } else {
    fmt::print("{} games played, {} were there; {} moves, mean score {:.0f}, {} moves/s\n",
               totals.games.load(), totals.kept.load(), totals.moves.load(), mean,
               HumanCount(rate));
  }
  return 0;
}

}  // namespace

Command Twenty48Generate() {
  return MakeCommand<GenerateOptions>(
      {.name = "2048 generate",
       .group = "2048",
       .summary = "play games with the expectimax and write them as records to learn from",
       .details = "Writes NAME.jsonl.gz and NAME.meta.json for each game, in Macroxue's layout; "
                  "values are\n"
                  "in thousands of points with --tables, else in thousands of the heuristic's "
                  "unit. A game\n"
                  "depends on the seed and its number, not on threads. After Ctrl-C the same "
                  "command goes\n"
                  "on with the games that are missing.",
       .example =
           "kibitz 2048 generate --games 500 --depth 2 --tables tables.safetensors --out raws"},
      Run);
}

}  // namespace kibitz::cli
