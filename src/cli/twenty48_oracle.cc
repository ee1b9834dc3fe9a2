#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/write_lock.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "oracles/twenty48/ntuple_learning.h"

namespace kibitz::cli {
namespace {

using oracles::NTupleLearner;
using twenty48::Game;

struct OracleOptions {
  oracles::NTupleLearningOptions learning;
  std::string out;
  int64_t games = 100'000;
  double max_seconds = 0;
  int64_t save_every = 20'000;
  std::string weights;
  std::vector<std::string> given;  // Names of fields.
};

Fields FieldsOf(OracleOptions& options) {
  Fields fields;
  fields.Add("out", options.out, "file of the network; resumes from it if it exists",
             {.required = true, .metavar = "FILE"});
  fields.Add("games", options.games, "games to learn from, including those of earlier runs",
             {.min = 1});
  fields.Add("max_seconds", options.max_seconds, "save and stop after this time; 0: no limit",
             {.min = 0});
  fields.Add("save_every", options.save_every, "games between saves", {.min = 1});
  fields.Add("weights", options.weights, "also write the weights alone to this file, for --oracle",
             {.metavar = "FILE"});
  fields.AddAll(FieldsOf(options.learning));
  return fields;
}

void NoteGiven(OracleOptions& options, const Fields& fields) {
  for (const std::string& name : fields.Names()) {
    if (fields.WasGiven(name)) options.given.push_back(name);
  }
}

// An unfinished run goes on with the options it began with.
NTupleLearner Open(const OracleOptions& options) {
  if (!std::filesystem::exists(options.out)) return NTupleLearner(options.learning);
  NTupleLearner learner = NTupleLearner::Load(options.out);
  oracles::NTupleLearningOptions asked = options.learning;
  oracles::NTupleLearningOptions began = learner.options();
  const nlohmann::ordered_json wanted = FieldsOf(asked).ToTree();
  const nlohmann::ordered_json kept = FieldsOf(began).ToTree();
  for (const auto& [name, value] : kept.items()) {
    if (std::ranges::count(options.given, name) > 0 && wanted.at(name) != value) {
      throw Error::Usage(
          "{} began with {} = {}, not {}; leave the option out to resume, or choose another --out",
          options.out, name, value.dump(), wanted.at(name).dump());
    }
  }
  LogInfo("{}: resumes after {} games", options.out, learner.games());
  return learner;
}

// Statistics of the last 1000 games.
class Window {
 public:
  void Add(const Game& game) {
    recent_.push_back(game);
    if (recent_.size() > 1000) recent_.pop_front();
  }
  double MeanScore() const {
    double sum = 0;
    for (const Game& game : recent_) sum += static_cast<double>(game.score);
    return recent_.empty() ? 0 : sum / static_cast<double>(recent_.size());
  }
  double Reached(int rank) const {
    double count = 0;
    for (const Game& game : recent_) count += game.board.MaxRank() >= rank ? 1 : 0;
    return recent_.empty() ? 0 : count / static_cast<double>(recent_.size());
  }
  std::string Note() const {
    return fmt::format("mean {:.0f}, 2048 {:.0f}%, 16384 {:.0f}%, 32768 {:.1f}%", MeanScore(),
                       100 * Reached(11), 100 * Reached(14), 100 * Reached(15));
  }

 private:
  std::deque<Game> recent_;
};

int Run(const OracleOptions& options, const Context& context) {
  using Clock = std::chrono::steady_clock;
  const WriteLock lock = WriteLock::OfFile(options.out);
  NTupleLearner learner = Open(options);
  Window window;
  const auto start = Clock::now();
  const auto seconds = [start] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Progress progress("games", static_cast<uint64_t>(options.games));
  progress.Add(static_cast<uint64_t>(learner.games()));
  while (learner.games() < options.games && !Interrupted() &&
         (options.max_seconds == 0 || seconds() < options.max_seconds)) {
    const Game game = learner.LearnGame();
    window.Add(game);
    if (learner.games() % 100 == 0) progress.SetNote(window.Note());
    progress.Add(1);
    if (learner.games() % options.save_every == 0) learner.Save(options.out);
  }
  progress.Finish();
  learner.Save(options.out);
  if (!options.weights.empty()) learner.Save(options.weights, false);
  const double rate = static_cast<double>(learner.moves()) / seconds();
  if (context.json) {
    PrintJson({{"games", learner.games()},
               {"moves_per_second", rate},
               {"mean_score", window.MeanScore()},
               {"reached_2048", window.Reached(11)},
               {"reached_16384", window.Reached(14)},
               {"reached_32768", window.Reached(15)},
               {"file", options.out}});
  } else {
    fmt::print("{} games; {:.0f} moves/s; the last 1000: {}\n", learner.games(), rate,
               window.Note());
  }
  return Interrupted() ? kExitInterrupted : 0;
}

}  // namespace

Command Twenty48Oracle() {
  return MakeCommand<OracleOptions>(
      {.name = "2048 oracle",
       .group = "2048",
       .summary = "train the n-tuple network that the expectimax searches with, by self-play",
       .details =
           "Temporal-difference learning of afterstate values: one table for each pattern of "
           "cells,\n"
           "whose entries sum to the points still to come. The file holds all that training needs\n"
           "to resume (1 GB with four patterns of six cells). Ctrl-C saves and stops. --weights\n"
           "writes what 'generate', 'eval' and 'play' take as --oracle, a third of it.",
       .example = "kibitz 2048 oracle --out tables.safetensors --weights weights.safetensors"},
      Run);
}

}  // namespace kibitz::cli
