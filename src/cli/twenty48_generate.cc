#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/config.h"
#include "base/error.h"
#include "base/job_group.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/slice.h"
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
  SliceOptions slice;

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
  fields.AddAll(FieldsOf(options.slice));
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

// The games of the slice that are not in the folder yet.
std::vector<int64_t> Missing(const GenerateOptions& options, const Slice& slice) {
  std::vector<int64_t> numbers;
  for (int64_t index = options.first; index < options.first + options.games; ++index) {
    if (!slice.Has(index - options.first)) continue;
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
void CheckSettings(const GenerateOptions& options, int64_t kept) {
  const std::string path = options.out + "/settings.json";
  if (kept > 0 && !fs::exists(path)) {
    LogWarn("{}: its games do not say which oracle made them; they are kept", options.out);
  }
  const Json now = SettingsOf(options);
  io::WriteSettingsOnce(path, now);
  const std::string difference = io::SettingsDifference(LoadConfig(path).tree, now);
  if (difference.empty()) return;
  throw Error("{}: made with other options: {}; give the same options to go on, or another --out",
              path, difference);
}

struct Totals {
  std::atomic<int64_t> games{0};
  std::atomic<int64_t> moves{0};
  std::atomic<int64_t> score{0};
};

void PlayAll(const GenerateOptions& options, const oracles::AfterstateValue& evaluation,
             const std::vector<int64_t>& numbers, Totals& totals) {
  Progress progress("games", numbers.size());
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

// What all ranks have done.
struct Report {
  int64_t games = 0;
  int64_t kept = 0;
  int64_t moves = 0;
  int64_t score = 0;
};

Report SumOf(JobGroup& job, const Report& own) {
  Report sum;
  for (const std::string& text : job.Meet(Json{own.games, own.kept, own.moves, own.score}.dump())) {
    const Json of_rank = Json::parse(text);
    sum.games += of_rank[0].get<int64_t>();
    sum.kept += of_rank[1].get<int64_t>();
    sum.moves += of_rank[2].get<int64_t>();
    sum.score += of_rank[3].get<int64_t>();
  }
  return sum;
}

int Generate(const GenerateOptions& options, const Context& context, JobGroup& job) {
  const Slice slice = options.slice.In(job);
  const auto evaluation = OpenEvaluation(options.oracle);
  const WriteLock lock =
      slice.whole() ? WriteLock::OfFolder(options.out) : WriteLock::ShareFolder(options.out);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int64_t> numbers = Missing(options, slice);
  const int64_t ours = (options.games - slice.index + slice.count - 1) / slice.count;
  const int64_t kept = ours - std::ssize(numbers);
  if (job.first()) CheckSettings(options, kept);
  job.Meet();
  Totals totals;
  PlayAll(options, *evaluation, numbers, totals);
  const Report report = SumOf(
      job, {.games = totals.games, .kept = kept, .moves = totals.moves, .score = totals.score});
  if (!job.first()) return 0;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double mean =
      report.games == 0 ? 0 : static_cast<double>(report.score) / static_cast<double>(report.games);
  const double rate = static_cast<double>(report.moves) / seconds;
  if (context.json) {
    PrintJson({{"games", report.games},
               {"kept", report.kept},
               {"moves", report.moves},
               {"mean_score", mean},
               {"moves_per_second", rate},
               {"folder", options.out}});
  } else {
    fmt::print("{} games played, {} found in the folder; {} moves, mean score {:.0f}, {} moves/s\n",
               report.games, report.kept, report.moves, mean, HumanCount(rate));
  }
  return 0;
}

int Run(const GenerateOptions& options, const Context& context) {
  return RunInJob([&](JobGroup& job) { return Generate(options, context, job); });
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
