// The arena: openings by name, and series of games in the background.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "arena/game_run.h"
#include "arena/match.h"
#include "arena/named_openings.h"
#include "base/error.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/pgn_writer.h"
#include "players/player_name.h"
#include "serve/api.h"
#include "serve/chess_json.h"

namespace kibitz::serve {
namespace {

Reply Openings(Office&, const Request& request, const std::string&) {
  const std::string wanted = LowerCase(request.Query("q"));
  Json list = Json::array();
  for (const arena::NamedOpening& opening : arena::NamedOpenings()) {
    const std::string text = LowerCase(fmt::format("{} {}", opening.eco, opening.name));
    if (!wanted.empty() && text.find(wanted) == std::string::npos) continue;
    list.push_back({{"eco", opening.eco}, {"name", opening.name}, {"moves", opening.moves}});
  }
  return JsonReply({{"openings", std::move(list)}});
}

struct SeriesRequest {
  std::array<std::string, 2> shown;
  arena::GameSetup setup;
  int games = 0;
};

std::optional<double> TemperatureIn(const Json& body, const char* key) {
  if (!body.contains(key) || body[key].is_null()) return std::nullopt;
  return NumberIn(body, key, 0, 0, 10);
}

SeriesRequest SeriesIn(Office& office, const Json& body) {
  SeriesRequest request;
  arena::GameSetup& setup = request.setup;
  setup.command = "series";
  const auto white = TemperatureIn(body, "white_temperature");
  const auto black = TemperatureIn(body, "black_temperature");
  for (size_t i = 0; i < 2; ++i) {
    request.shown[i] = TextIn(body, i == 0 ? "first" : "second", "");
    if (request.shown[i].empty()) throw Error::Usage("first, second: two players are wanted");
    setup.contenders.push_back({.name = players::ToText(office.desk.Allow(request.shown[i]).name),
                                .temperature = {white, black}});
  }
  arena::CheckContenders(setup.contenders);
  request.games = 2 * IntIn(body, "pairs", 2, 1, 500);
  setup.openings.source = TextIn(body, "openings", "book");
  // A file's name would be opened: only the lists that ship.
  if (setup.openings.source != "book" && setup.openings.source != "named" &&
      setup.openings.source != "start") {
    throw Error::Usage("openings: expected book, named or start");
  }
  setup.openings.fen = TextIn(body, "fen", "");
  setup.run.seed = static_cast<uint64_t>(NumberIn(body, "seed", 1, 0, 9e15));
  setup.openings.seed = setup.run.seed;
  setup.run.concurrency = 1;
  setup.rules.max_plies = IntIn(body, "max_plies", 300, 2, 1000);
  setup.rules.stall_seconds = 60;
  setup.rules.draw_claims = true;
  return request;
}

Json CountsJson(const arena::GameCounts& counts) {
  return {{"wins", counts.wins}, {"draws", counts.draws}, {"losses", counts.losses}};
}

// A series as it goes: what is counted, and its games as PGN.
class Record {
 public:
  Record(const SeriesRequest& request, const arena::GameRun& run) : request_(request), run_(run) {}

  void Add(const arena::FinishedGame& game) {
    tally_.Add(game, 0);
    arena::AddResult(openings_[run_.OpeningAt(game.scheduled.opening).name], game.PointsOf(0));
    chess::PgnGame pgn;
    pgn.tags = {{"Event", "kibitz series"},
                {"Round", std::to_string(game.number + 1)},
                {"White", request_.shown[game.scheduled.white]},
                {"Black", request_.shown[game.scheduled.black]},
                {"Termination", game.played.reason}};
    pgn.start = game.played.game.start;
    pgn.moves = game.played.game.moves;
    pgn.result = game.played.result;
    pgn_ += chess::ToPgn(pgn) + "\n";
  }

  Json GameEvent(const arena::FinishedGame& game) const {
    return {{"number", game.number},
            {"white", game.scheduled.white},
            {"opening", run_.OpeningAt(game.scheduled.opening).name},
            {"result", chess::NameOf(game.played.result)},
            {"reason", game.played.reason},
            {"plies", game.played.game.moves.size()},
            {"fen", chess::ToFen(game.played.game.Current())},
            {"summary", Summary()}};
  }

  Json Summary() const {
    const arena::Strength strength = tally_.strength();
    Json openings = Json::array();
    for (const auto& [name, counts] : openings_) {
      Json each = CountsJson(counts);
      each["name"] = name;
      openings.push_back(std::move(each));
    }
    Json json = {{"players", request_.shown}, {"wanted", request_.games}};
    json["games"] = tally_.games().games();
    json.update(CountsJson(tally_.games()));
    json["elo"] = arena::FiniteOrNull(strength.elo);
    json["elo_error"] = arena::FiniteOrNull(strength.elo_error);
    json["los"] = arena::FiniteOrNull(strength.los);
    json["as_white"] = CountsJson(tally_.As(chess::Color::kWhite));
    json["as_black"] = CountsJson(tally_.As(chess::Color::kBlack));
    json["openings"] = std::move(openings);
    json["ends"] = tally_.ends();
    return json;
  }

  const std::string& pgn() const { return pgn_; }

 private:
  const SeriesRequest& request_;
  const arena::GameRun& run_;
  arena::Tally tally_;
  std::map<std::string, arena::GameCounts> openings_;
  std::string pgn_;
};

void PlaySeries(Office& office, const SeriesRequest& request, const std::string& id, Job& job) {
  job.Send("start", {{"id", id}, {"players", request.shown}, {"wanted", request.games}});
  arena::GameSetup setup = request.setup;
  setup.stop = job.stop();
  arena::GameRun run(std::move(setup));
  Record record(request, run);
  std::vector<arena::ScheduledGame> schedule;
  for (int i = 0; i < request.games; ++i) {
    const auto white = static_cast<size_t>(i % 2);
    schedule.push_back({.white = white, .black = 1 - white, .opening = static_cast<size_t>(i / 2)});
  }
  run.Play(schedule, [&](const arena::FinishedGame& game) {
    record.Add(game);
    job.Send("game", record.GameEvent(game));
    office.series.Put(id, record.Summary(), record.pgn());
    return !job.stop().stop_requested();
  });
}

Reply StartSeries(Office& office, const Request& request, const std::string&) {
  const SeriesRequest series = SeriesIn(office, BodyOf(request));
  const std::string id = office.series.NewId();
  const auto job =
      office.jobs.Start({.kind = "series",
                         .title = fmt::format("{} against {}", series.shown[0], series.shown[1]),
                         .background = true},
                        [&office, series, id](Job& self) { PlaySeries(office, series, id, self); });
  if (!job) return {.response = ErrorResponse(503, "too many jobs wait", "try again later")};
  return office.jobs.Watch(job);
}

Reply ListSeries(Office& office, const Request&, const std::string&) {
  return JsonReply({{"series", office.series.List()}});
}

Reply OneSeries(Office& office, const Request&, const std::string& id) {
  return JsonReply(office.series.Summary(id));
}

Reply SeriesPgn(Office& office, const Request&, const std::string& id) {
  return {
      .response = {.type = "application/x-chess-pgn; charset=utf-8",
                   .body = office.series.Pgn(id),
                   .headers = {{"Content-Disposition", "attachment; filename=\"series.pgn\""}}}};
}

}  // namespace

std::vector<Route> ArenaRoutes() {
  return {{"GET", "openings", Openings},
          {"POST", "series", StartSeries},
          {"GET", "series", ListSeries},
          {"GET", "series/*/pgn", SeriesPgn},
          {"GET", "series/*", OneSeries}};
}

}  // namespace kibitz::serve
