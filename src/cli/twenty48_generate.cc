#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "base/write_lock.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/twenty48_evaluation.h"
#include "io/bytes/fingerprint.h"
#include "io/runs/journal.h"
#include "io/weights/model_file.h"
#include "oracles/twenty48/self_play.h"
#include "students/twenty48/play/labelled_games.h"

namespace kibitz::cli {
namespace {

namespace fs = std::filesystem;
using oracles::RawGame;
using oracles::RawMeta;
using Json = nlohmann::ordered_json;

struct GenerateOptions {
  oracles::SelfPlayOptions play = {.search = {.depth = 2}};
  int64_t games = 100;
  int64_t first = 0;
  std::string out;
  std::string oracle;
  std::string student;
  double temperature = 0;
  int threads = 0;

  int Threads() const { return threads == 0 ? HardwareThreads() : threads; }
};

Fields FieldsOf(GenerateOptions& options) {
  Fields fields;
  fields.Add("out", options.out, "folder for the games; those already there are kept",
             {.required = true, .metavar = "DIR"});
  fields.Add("games", options.games, "games in all", {.min = 1});
  fields.Add("first", options.first, "number of the first game", {.min = 0});
  fields.Add("oracle", options.oracle, kOracleHelp, {.metavar = "ORACLE"});
  fields.Add(
      "student", options.student,
      "network that makes the moves, a checkpoint or a model's folder; the oracle's moves are "
      "recorded",
      {.metavar = "PATH"});
  fields.Add("temperature", options.temperature,
             "sampling temperature of the student's moves; 0: its best move",
             {.min = 0, .max = 100});
  fields.Add("threads", options.threads, "games played at a time; 0: one per core",
             {.min = 0, .max = 1024});
  fields.AddAll(FieldsOf(options.play));
  return fields;
}

// The metadata of game `index` that is known before it is played.
RawMeta Plan(const GenerateOptions& options, int64_t index) {
  RawMeta meta;
  meta.seed = oracles::GameSeed(options.play.seed, index);
  meta.depth = options.play.search.depth;
  meta.game_index = index;
  return meta;
}

// The games that are not in the folder yet.
std::vector<int64_t> Missing(const GenerateOptions& options) {
  std::vector<int64_t> numbers;
  for (int64_t index = options.first; index < options.first + options.games; ++index) {
    const std::string name = oracles::RawGameName(Plan(options, index));
    if (!fs::exists(options.out + "/" + name + ".meta.json")) numbers.push_back(index);
  }
  return numbers;
}

// Everything that the games depend on besides their numbers.
Json SettingsOf(const GenerateOptions& options) {
  GenerateOptions copy = options;
  Json settings = {{"command", "2048 generate"}, {"options", FieldsOf(copy.play).ToTree()}};
  const bool named = options.oracle.empty() || !fs::exists(options.oracle);
  settings["oracle"] = named ? Json(options.oracle.empty() ? "heuristic" : options.oracle)
                             : io::FingerprintOf(options.oracle);
  if (!options.student.empty()) {
    settings["student"] = io::FingerprintOf(io::FindModel(options.student));
    settings["temperature"] = options.temperature;
  }
  return settings;
}

// Games of other settings in one folder could not be told apart.
void CheckSettings(const GenerateOptions& options, const std::vector<int64_t>& missing) {
  const std::string path = options.out + "/settings.json";
  const Json now = SettingsOf(options);
  if (fs::exists(path)) {
    const std::string difference = io::SettingsDifference(LoadConfig(path).tree, now);
    if (difference.empty()) return;
    throw Error("{}: made with other options: {}; give the same options to go on, or another --out",
                path, difference);
  }
  if (std::ssize(missing) < options.games) {
    LogWarn("{}: its games do not say which oracle made them; they are kept", options.out);
  }
  WriteFileAtomically(path, now.dump(2) + "\n");
}

struct Totals {
  std::atomic<int64_t> games{0};
  std::atomic<int64_t> moves{0};
  std::atomic<int64_t> score{0};
};

void PlayAll(const GenerateOptions& options, const oracles::AfterstateValue& evaluation,
             const std::vector<int64_t>& numbers, Totals& totals) {
  Progress progress("games", static_cast<uint64_t>(options.games));
  progress.Add(static_cast<uint64_t>(options.games) - numbers.size());
  const auto keep = [&](const RawGame& game) {
    oracles::WriteRawGame(options.out, game);
    ++totals.games;
    totals.moves += game.meta.num_moves;
    totals.score += game.meta.score;
    progress.Add(1);
  };
  if (options.student.empty()) {
    ThreadPool pool(options.Threads());
    pool.ParallelFor(numbers.size(), [&](size_t i) {
      oracles::Expectimax search(evaluation, options.play.search);
      keep(oracles::PlayRawGame(search, options.play, numbers[i], options.out));
    });
  } else {
    twenty48::Player player({.network = {.path = options.student,
                                         .precision = nn::Precision::kInt8,
                                         .threads = options.threads}});
    PlayLabelledGames(
        player, evaluation,
        {.play = options.play, .temperature = options.temperature, .threads = options.Threads()},
        numbers, options.out, keep);
  }
  progress.Finish();
}

int Run(const GenerateOptions& options, const Context& context) {
  const auto evaluation = OpenEvaluation(options.oracle);
  const WriteLock lock = WriteLock::OfFolder(options.out);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int64_t> numbers = Missing(options);
  CheckSettings(options, numbers);
  const int64_t kept = options.games - std::ssize(numbers);
  Totals totals;
  PlayAll(options, *evaluation, numbers, totals);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double mean =
      totals.games == 0 ? 0 : static_cast<double>(totals.score) / static_cast<double>(totals.games);
  const double rate = static_cast<double>(totals.moves) / seconds;
  if (context.json) {
    PrintJson({{"games", totals.games.load()},
               {"kept", kept},
               {"moves", totals.moves.load()},
               {"mean_score", mean},
               {"moves_per_second", rate},
               {"folder", options.out}});
  } else {
    fmt::print("{} games played, {} found in the folder; {} moves, mean score {:.0f}, {} moves/s\n",
               totals.games.load(), kept, totals.moves.load(), mean, HumanCount(rate));
  }
  return 0;
}

}  // namespace

Command Twenty48Generate() {
  return MakeCommand<GenerateOptions>(
      {.name = "2048 generate",
       .group = "2048",
       .summary = "play games with the expectimax and write them as records to learn from",
       .details =
           "Writes NAME.jsonl.gz and NAME.meta.json for each game, in Macroxue's layout. Values "
           "are in\n"
           "thousands of points with an n-tuple network, else in thousands of the heuristic's "
           "unit. A\n"
           "game depends on the seed and its number, not on threads. After Ctrl-C the same "
           "command\n"
           "plays the games that are missing; settings.json keeps what they depend on. With "
           "--student a\n"
           "network makes the moves and the records hold the oracle's: they teach the network how "
           "to\n"
           "recover from its mistakes.",
       .example = "kibitz 2048 generate --games 2 --depth 2 --oracle heuristic --out raws"},
      Run);
}

}  // namespace kibitz::cli
