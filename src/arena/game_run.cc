#include "arena/game_run.h"

#include "arena/named_openings.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "base/write_lock.h"
#include "games/chess/pgn_writer.h"
#include "io/bytes/fingerprint.h"
#include "io/weights/model_file.h"

namespace kibitz::arena {
namespace {

using chess::Color;
using chess::GameResult;

// Adds "bytes" and "hash".
void AddContent(Json& json, const std::string& path) {
  Json content = io::FingerprintOf(path);
  content.erase("name");
  json.update(content);
}

Json DescribeOpenings(OpeningOptions options) {
  Json json = FieldsOf(options).ToTree();
  if (!options.fen.empty()) json["fen"] = options.fen;
  if (options.fen.empty() && options.source != "named" && options.source != "start") {
    AddContent(json, options.source == "book" ? BookPath() : options.source);
  }
  return json;
}

}  // namespace

int RunOptions::threads() const { return concurrency > 0 ? concurrency : HardwareThreads(); }

Fields FieldsOf(RunOptions& options) {
  Fields fields;
  fields.Add("seed", options.seed, "of openings and of random draws");
  fields.Add("concurrency", options.concurrency, "how much is played at a time; 0: one a core",
             {.min = 0, .max = 1024});
  fields.Add("out", options.out,
             "folder for the journal and the report; the same command then resumes",
             {.metavar = "DIR"});
  fields.Add("fresh", options.fresh, "discard the journal in --out and start over");
  fields.Add("html", options.html, "write the report as one HTML file", {.metavar = "FILE"});
  fields.AddAll(FieldsOf(options.slice));
  return fields;
}

std::unique_ptr<RunJournal> OpenJournal(const RunOptions& options, const Json& settings,
                                        bool ends_early) {
  const JobGroup alone;
  const Slice slice = options.slice.In(options.job != nullptr ? *options.job : alone);
  if (options.slice.alone() && ends_early) {
    throw Error::Usage(
        "--shards is {}, but results decide what is played next; start ranks with mpirun or srun "
        "instead",
        options.slice.shards);
  }
  if (options.slice.alone() && options.fresh) {
    throw Error::Usage("--fresh would discard the other shards too; remove {} first", options.out);
  }
  if (options.out.empty() && !slice.whole()) {
    throw Error::Usage("--out is missing: {} processes share their results through that folder",
                       slice.count);
  }
  if (options.out.empty()) return nullptr;
  return std::make_unique<RunJournal>(
      JournalPlace{
          .folder = options.out, .fresh = options.fresh, .slice = slice, .job = options.job},
      settings);
}

void WriteReports(const RunOptions& options, const std::string& text, const Json& json,
                  const Page& page) {
  if (!options.reports()) return;
  if (!options.html.empty()) page.Write(options.html);
  if (options.out.empty()) return;
  WriteFileAtomically(options.out + "/report.txt", text);
  WriteFileAtomically(options.out + "/report.json",
                      json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  page.Write(options.out + "/report.html");
}

Json DescribeContenders(const std::vector<Contender>& contenders) {
  CheckContenders(contenders);
  Json json = Json::array();
  for (const Contender& contender : contenders) {
    Json& item = json.emplace_back();
    item["name"] = contender.name;
    for (Color color : {Color::kWhite, Color::kBlack}) {
      const auto& temperature = contender.temperature[static_cast<size_t>(color)];
      if (temperature) item[color == Color::kWhite ? "white_temp" : "black_temp"] = *temperature;
    }
    if (!contender.one_ply) item["one_ply"] = false;
    const auto maker =
        players::MakerFor(players::ParsePlayerName(contender.name).OrThrow("player"));
    if (maker->kind() != "engine" && !maker->path().empty())
      AddContent(item, io::FindModel(maker->path()));
  }
  return json;
}

double FinishedGame::PointsOf(size_t contender) const {
  if (played.result == GameResult::kDraw) return 0.5;
  const bool white_won = played.result == GameResult::kWhiteWins;
  return (scheduled.white == contender) == white_won ? 1 : 0;
}

GameRun::GameRun(GameSetup setup) : setup_(std::move(setup)) {
  if (!setup_.rules.limits.clock.empty()) {
    if (const auto clock = ParseClock(setup_.rules.limits.clock); !clock) {
      throw Error::Usage("--clock: {}", clock.reason());
    }
  }
  setup_.openings.seed = setup_.run.seed;
  setup_.rules.notes = !setup_.pgn.empty() || !setup_.run.out.empty();
  const Json settings = {{"command", "arena " + setup_.command},
                         {"players", DescribeContenders(setup_.contenders)},
                         {"openings", DescribeOpenings(setup_.openings)},
                         {"rules", FieldsOf(setup_.rules).ToTree()},
                         {"notes", setup_.rules.notes},
                         {"trace", setup_.rules.trace},
                         {"seed", setup_.run.seed},
                         {"options", setup_.further}};
  for (const Contender& contender : setup_.contenders) one_ply_.push_back(OnePlyOf(contender));
  openings_ = LoadOpenings(setup_.openings);
  journal_ = OpenJournal(setup_.run, settings, setup_.ends_early);
  for (int i = 0; i < setup_.run.threads(); ++i) {
    tables_.push_back(std::make_unique<PlayerTable>(setup_.contenders));
  }
  // A network that cannot be loaded as asked should tell now, not when its first game comes.
  for (size_t i = 0; i < setup_.contenders.size(); ++i) {
    for (Color color : {Color::kWhite, Color::kBlack}) {
      if (!tables_[0]->IsEngine(i, color)) tables_[0]->At(i, color);
    }
  }
}

std::optional<Json> GameRun::PlayOne(const ScheduledGame& scheduled, const Piece& piece) {
  const auto number = static_cast<uint64_t>(piece.number);
  const GameTask task{
      .white = scheduled.white,
      .black = scheduled.black,
      .opening = OpeningAt(scheduled.opening).game,
      .seed = Rng({.seed = setup_.run.seed, .sample = number, .purpose = Purpose("game")}).Next()};
  const auto played =
      PlayGame(task, setup_.rules, *tables_[static_cast<size_t>(piece.worker)], piece.stop);
  if (!played) return std::nullopt;
  Json json = played->ToJson();
  json["date"] = chess::PgnDateOfToday();
  return json;
}

void GameRun::Play(std::span<const ScheduledGame> games, const TakeGame& take, Progress* progress) {
  const int64_t first = next_;
  next_ += static_cast<int64_t>(games.size());
  const auto scheduled_at = [&](int64_t number) -> const ScheduledGame& {
    return games[static_cast<size_t>(number - first)];
  };
  const auto work = [&](const Piece& piece) { return PlayOne(scheduled_at(piece.number), piece); };
  DoInOrder(first, static_cast<int64_t>(games.size()),
            {.threads = setup_.run.threads(),
             .journal = journal_.get(),
             .progress = progress,
             .stop = setup_.stop,
             .ends_early = setup_.ends_early},
            work, [&](int64_t number, const Json& json) {
              const ScheduledGame& scheduled = scheduled_at(number);
              FinishedGame game{
                  .number = number,
                  .scheduled = scheduled,
                  .played = PlayedGame::FromJson(json, OpeningAt(scheduled.opening).game)};
              if (setup_.rules.notes) AddPgn(game, json.value("date", "????.??.??"));
              return take(game);
            });
}

void GameRun::AddPgn(const FinishedGame& game, const std::string& date) {
  const Opening& opening = OpeningAt(game.scheduled.opening);
  chess::PgnGame pgn;
  pgn.tags = {{"Event", "kibitz arena " + setup_.command},
              {"Site", "?"},
              {"Date", date},
              {"Round", std::to_string(game.number + 1)},
              {"White", setup_.contenders[game.scheduled.white].NameAs(Color::kWhite)},
              {"Black", setup_.contenders[game.scheduled.black].NameAs(Color::kBlack)}};
  const NamedOpening* named = OpeningOf(game.played.game);
  const std::string eco = named != nullptr ? std::string(named->eco) : opening.eco;
  if (!eco.empty()) pgn.tags.emplace_back("ECO", eco);
  pgn.tags.emplace_back("Opening", named != nullptr ? std::string(named->name) : opening.name);
  if (!setup_.rules.limits.clock.empty()) {
    pgn.tags.emplace_back("TimeControl", setup_.rules.limits.clock);
  }
  pgn.tags.emplace_back("Termination", game.played.reason);
  pgn.start = game.played.game.start;
  pgn.moves = game.played.game.moves;
  pgn.result = game.played.result;
  for (size_t i = 0; i < game.played.notes.size(); ++i) {
    if (game.played.notes[i].empty()) continue;
    pgn.notes.push_back(
        {.ply = game.played.opening_plies + i + 1, .comment = game.played.notes[i]});
  }
  pgn_ += chess::ToPgn(pgn);
}

void GameRun::WriteReport(const std::string& text, const Json& json, const Page& page) const {
  if (!setup_.run.reports()) return;
  WriteReports(setup_.run, text, json, page);
  if (!setup_.pgn.empty()) WriteFileAtomically(setup_.pgn, pgn_);
  if (!setup_.run.out.empty()) WriteFileAtomically(setup_.run.out + "/games.pgn", pgn_);
}

}  // namespace kibitz::arena
