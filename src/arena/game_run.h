// The one runner of games behind matches, series, tournaments and ladders: takes a schedule, plays
// it on several threads, keeps every finished game in a journal, and hands the results over in
// order.
//
//   GameRun run({.command = "match", .contenders = {{.name = "random"}, {.name = "negamax"}}});
//   run.Play(schedule, [&](const FinishedGame& game) { return Count(game); });
//   run.WriteReport(text, json, page);
//
// A game depends on the seed and its number alone, not on threads or on the games before it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "arena/game.h"
#include "arena/openings.h"
#include "arena/ordered_work.h"
#include "arena/page.h"
#include "arena/player_table.h"
#include "base/progress.h"

namespace kibitz::arena {

// How a run is done and where its results go; nothing that shapes them but the seed.
struct RunOptions {
  uint64_t seed = 1;
  int concurrency = 0;    // Games, or other pieces, at a time; 0: one for each core.
  std::string out = {};   // Folder for journal, report and games; "": nothing is kept.
  bool fresh = false;     // Discard a journal that is there.
  std::string html = {};  // File for the report.
  SliceOptions slice = {};
  JobGroup* job = nullptr;  // The ranks that share the run; null: none. Rank 0 reports.

  int threads() const;
  bool reports() const { return job == nullptr || job->first(); }
};
Fields FieldsOf(RunOptions& options);

// The journal in the folder `out`, made when missing; null without a folder. `ends_early`: as in
// WorkOptions, or later pieces depend on results; then there are no shards. Throws Error.
std::unique_ptr<RunJournal> OpenJournal(const RunOptions& options, const Json& settings,
                                        bool ends_early = false);
// report.txt, report.json and report.html in the folder, and the file of --html.
void WriteReports(const RunOptions& options, const std::string& text, const Json& json,
                  const Page& page);

// Names of the players, with size and hash of the files behind them: what a journal remembers.
Json DescribeContenders(const std::vector<Contender>& contenders);

struct GameSetup {
  std::string command = {};  // "match"
  std::vector<Contender> contenders = {};
  OpeningOptions openings = {};
  GameRules rules = {};
  RunOptions run = {};
  std::string pgn = {};       // File for the games.
  Json further = {};          // Other options that shape the outcome.
  bool ends_early = false;    // As in OpenJournal.
  std::stop_token stop = {};  // Abandons the games under way, from another thread.
};

struct ScheduledGame {
  size_t white = 0;  // Numbers of contenders.
  size_t black = 1;
  size_t opening = 0;  // Taken modulo the number of openings.
};

struct FinishedGame {
  int64_t number = 0;  // From 0.
  ScheduledGame scheduled;
  PlayedGame played;

  double PointsOf(size_t contender) const;
};

class GameRun {
 public:
  // Loads openings and opens the journal. Throws Error, before any game is played, for a wrong
  // name, a missing file, or a journal of other options.
  explicit GameRun(GameSetup setup);

  const std::vector<Opening>& openings() const { return openings_; }
  const Opening& OpeningAt(size_t number) const { return openings_[number % openings_.size()]; }
  const std::vector<Contender>& contenders() const { return setup_.contenders; }
  // By contender, as OnePlyOf.
  const std::vector<std::optional<bool>>& one_ply() const { return one_ply_; }

  // Plays these games; numbers go on from the calls before. `take` gets them in order and says
  // whether to go on.
  using TakeGame = std::function<bool(const FinishedGame& game)>;
  void Play(std::span<const ScheduledGame> games, const TakeGame& take,
            Progress* progress = nullptr);

  // The games taken, as PGN, and the report, where files were asked for.
  void WriteReport(const std::string& text, const Json& json, const Page& page) const;

 private:
  std::optional<Json> PlayOne(const ScheduledGame& scheduled, const Piece& piece);
  void AddPgn(const FinishedGame& game, const std::string& date);

  GameSetup setup_;
  std::vector<Opening> openings_;
  std::vector<std::optional<bool>> one_ply_;
  std::unique_ptr<RunJournal> journal_;
  std::vector<std::unique_ptr<PlayerTable>> tables_;  // By worker.
  int64_t next_ = 0;
  std::string pgn_;
};

}  // namespace kibitz::arena
