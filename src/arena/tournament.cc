#include "arena/tournament.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kibitz::arena {
namespace {

GameCounts Sum(const GameCounts& a, const GameCounts& b) {
  return {a.wins + b.wins, a.draws + b.draws, a.losses + b.losses};
}

double ScoreOf(const GameCounts& counts) {
  return counts.games() == 0 ? 0 : counts.points() / static_cast<double>(counts.games());
}

std::vector<ScheduledGame> Schedule(size_t players, const TournamentOptions& options) {
  std::vector<ScheduledGame> games;
  for (int64_t round = 0; round < options.rounds; ++round) {
    const size_t firsts = options.kind == TournamentKind::kGauntlet ? 1 : players;
    for (size_t i = 0; i < firsts; ++i) {
      for (size_t j = i + 1; j < players; ++j) {
        const auto opening = static_cast<size_t>(round);
        games.push_back({.white = i, .black = j, .opening = opening});
        games.push_back({.white = j, .black = i, .opening = opening});
      }
    }
  }
  return games;
}

// Results by pairs of players, and the encounters that ratings are made of.
class Crosstable {
 public:
  explicit Crosstable(size_t players)
      : counts_(players, std::vector<GameCounts>(players)), failures_(players, 0) {}

  void Add(const FinishedGame& game) {
    const size_t white = game.scheduled.white;
    const size_t black = game.scheduled.black;
    const double points = game.PointsOf(white);
    AddResult(counts_[white][black], points);
    AddResult(counts_[black][white], 1 - points);
    if (game.played.failed) ++failures_[points == 0 ? white : black];
    if (game.number % 2 == 0) {
      half_ = points;
    } else {  // The second game of a pair: the colours are swapped.
      encounters_.push_back(
          {.first = black, .second = white, .points = half_ + 1 - points, .games = 2});
    }
  }
  const std::vector<Encounter>& encounters() const { return encounters_; }
  const GameCounts& Of(size_t player, size_t other) const { return counts_[player][other]; }
  GameCounts Of(size_t player) const {
    return std::accumulate(counts_[player].begin(), counts_[player].end(), GameCounts{}, Sum);
  }
  int64_t failures(size_t player) const { return failures_[player]; }

 private:
  std::vector<std::vector<GameCounts>> counts_;
  std::vector<Encounter> encounters_;
  std::vector<int64_t> failures_;
  double half_ = 0;
};

}  // namespace

TournamentResult RunTournament(GameRun& run, const TournamentOptions& options, Progress* progress) {
  const size_t players = run.contenders().size();
  const std::vector<ScheduledGame> games = Schedule(players, options);
  if (progress != nullptr) progress->SetTotal(games.size());
  Crosstable table(players);
  run.Play(
      games,
      [&](const FinishedGame& game) {
        table.Add(game);
        return true;
      },
      progress);
  const RatingTable ratings = RatePlayers(players, table.encounters());
  const double shift = options.anchor ? *options.anchor - ratings.players[0].rating : 0;
  std::vector<size_t> order(players);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t i) { return ratings.players[i].rating; });
  TournamentResult result{
      .standings = {}, .cross = {}, .with_virtual_draws = ratings.with_virtual_draws};
  for (size_t i : order) {
    Rating rating = ratings.players[i];
    rating.rating += shift;
    result.standings.push_back({.name = run.contenders()[i].name,
                                .counts = table.Of(i),
                                .rating = rating,
                                .failures = table.failures(i),
                                .one_ply = run.one_ply()[i]});
    std::vector<GameCounts>& row = result.cross.emplace_back();
    for (size_t j : order) row.push_back(table.Of(i, j));
  }
  return result;
}

Json TournamentResult::ToJson() const {
  Json json = {{"players", Json::array()}, {"with_virtual_draws", with_virtual_draws}};
  int64_t games = 0;
  for (const Standing& standing : standings) {
    games += standing.counts.games();
    json["players"].push_back({{"name", standing.name},
                               {"rating", standing.rating.rating},
                               {"error", standing.rating.error},
                               {"games", standing.counts.games()},
                               {"wins", standing.counts.wins},
                               {"draws", standing.counts.draws},
                               {"losses", standing.counts.losses},
                               {"points", standing.counts.points()},
                               {"failures", standing.failures},
                               {"one_ply", OnePlyJson(standing.one_ply)}});
  }
  json["games"] = games / 2;
  Json& rows = json["cross"] = Json::array();
  for (const auto& row : cross) {
    Json& cells = rows.emplace_back(Json::array());
    for (const GameCounts& counts : row) {
      cells.push_back({counts.wins, counts.draws, counts.losses});
    }
  }
  return json;
}

std::string TournamentResult::Text() const {
  size_t width = 6;
  for (const Standing& standing : standings) width = std::max(width, standing.name.size());
  std::string text = fmt::format("{:>4}  {:{}} {:>8} {:>7} {:>6} {:>7}  {}\n", "rank", "player",
                                 width, "rating", "±", "games", "score", "won drawn lost");
  for (size_t i = 0; i < standings.size(); ++i) {
    const Standing& standing = standings[i];
    text +=
        fmt::format("{:>4}  {:{}} {:>8.0f} {:>7.0f} {:>6} {:>6.1f}%  {}\n", i + 1, standing.name,
                    width, standing.rating.rating, standing.rating.error, standing.counts.games(),
                    100 * ScoreOf(standing.counts), WdlText(standing.counts));
  }
  if (with_virtual_draws) {
    text += "A player won or lost everything: each was given one drawn game, shared among all.\n";
  }
  std::vector<std::string> names;
  std::vector<std::optional<bool>> rules;
  for (const Standing& standing : standings) {
    names.push_back(standing.name);
    rules.push_back(standing.one_ply);
  }
  text += OnePlyText(names, rules);
  for (const Standing& standing : standings) {
    if (standing.failures > 0) {
      text += fmt::format("{} lost {} games by failures\n", standing.name, standing.failures);
    }
  }
  return text;
}

Page TournamentResult::ToPage() const {
  Page page("Tournament");
  page.Verbatim(Text());
  std::vector<PlotBar> bars;
  std::vector<ShareBar> shares;
  std::vector<std::string> header = {"player"};
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < standings.size(); ++i) {
    const Standing& standing = standings[i];
    bars.push_back({standing.name, standing.rating.rating,
                    standing.rating.rating - standing.rating.error,
                    standing.rating.rating + standing.rating.error});
    shares.push_back({standing.name,
                      {{"wins", static_cast<double>(standing.counts.wins)},
                       {"draws", static_cast<double>(standing.counts.draws)},
                       {"losses", static_cast<double>(standing.counts.losses)}}});
    header.push_back(std::to_string(i + 1));
    rows.push_back({fmt::format("{}. {}", i + 1, standing.name)});
    for (size_t k = 0; k < standings.size(); ++k) {
      rows.back().push_back(i == k || cross[i][k].games() == 0 ? "" : WdlText(cross[i][k]));
    }
  }
  page.Plot(BarPlot("Ratings with 95% intervals", bars));
  page.Plot(SharePlot("Wins, draws, losses", shares));
  page.Heading("Who against whom");
  page.Table(header, rows);
  return page;
}

namespace {

constexpr int64_t kSearchPairs = 2;
constexpr int64_t kBeyondGames = 40;  // Against an end of the ladder without a mixed result.

// The step nearest to what is known: the middle one at first, then that of the rating. While
// everything is won or lost, one further from the middle each time.
size_t NextStep(const LadderResult& result, size_t last) {
  if (!result.rating) return result.steps.size() / 2;
  if (result.rating->with_virtual_draw) {
    const bool winning = result.steps[last].counts.wins > 0;
    if (winning) return std::min(last + 3, result.steps.size() - 1);
    return last >= 3 ? last - 3 : 0;
  }
  size_t nearest = 0;
  for (size_t i = 0; i < result.steps.size(); ++i) {
    const auto distance = [&](size_t k) {
      return std::abs(result.steps[k].rating - result.rating->rating.rating);
    };
    if (distance(i) < distance(nearest)) nearest = i;
  }
  return nearest;
}

}  // namespace

LadderResult RunLadder(GameRun& run, const LadderOptions& options, Progress* progress) {
  CHECK(run.contenders().size() == options.steps.size() + 1);
  LadderResult result{.name = run.contenders()[0].name,
                      .one_ply = run.one_ply()[0],
                      .steps = {},
                      .rating = {},
                      .curve = {.name = "rating"}};
  for (double rating : options.steps) result.steps.push_back({rating, {}});
  size_t step = 0;
  size_t opening = 0;
  int64_t played = 0;
  while (played < options.max_games && !result.enough) {
    step = NextStep(result, step);
    // Few games until there are wins and losses: then the step is about right.
    const bool found = result.rating && !result.rating->with_virtual_draw;
    const int64_t left = (options.max_games - played + 1) / 2;
    const int64_t pairs = std::min({options.batch, found ? options.batch : kSearchPairs, left});
    std::vector<ScheduledGame> games;
    for (int64_t i = 0; i < pairs; ++i, ++opening) {
      games.push_back({.white = 0, .black = step + 1, .opening = opening});
      games.push_back({.white = step + 1, .black = 0, .opening = opening});
    }
    run.Play(
        games,
        [&](const FinishedGame& game) {
          AddResult(result.steps[step].counts, game.PointsOf(0));
          if (game.played.failed && game.PointsOf(0) == 0) ++result.failures;
          ++played;
          return true;
        },
        progress);
    std::vector<KnownEncounter> known;
    for (const LadderResult::Step& one : result.steps) {
      if (one.counts.games() == 0) continue;
      known.push_back({one.rating, one.counts.points(), static_cast<double>(one.counts.games())});
    }
    result.rating = RateAgainst(known);
    result.enough =
        !result.rating->with_virtual_draw && result.rating->rating.error <= options.error;
    const Rating& rating = result.rating->rating;
    if (!result.rating->with_virtual_draw) {
      result.curve.x.push_back(static_cast<double>(played));
      result.curve.y.push_back(rating.rating);
      result.curve.low.push_back(rating.rating - rating.error);
      result.curve.high.push_back(rating.rating + rating.error);
    }
    if (progress != nullptr) {
      progress->SetNote(fmt::format("{:.0f} ± {:.0f}, last against {:.0f}", rating.rating,
                                    rating.error, result.steps[step].rating));
    }
    const bool at_an_end = step == 0 || step + 1 == result.steps.size();
    // Beyond the ladder: more games against its end would only repeat that.
    if (result.rating->with_virtual_draw && at_an_end &&
        result.steps[step].counts.games() >= kBeyondGames) {
      break;
    }
  }
  return result;
}

Json LadderResult::ToJson() const {
  Json json = {{"player", name}, {"one_ply", OnePlyJson(one_ply)}, {"steps", Json::array()}};
  int64_t games = 0;
  for (const Step& step : steps) {
    if (step.counts.games() == 0) continue;
    games += step.counts.games();
    json["steps"].push_back({{"opponent", step.rating},
                             {"wins", step.counts.wins},
                             {"draws", step.counts.draws},
                             {"losses", step.counts.losses}});
  }
  json["games"] = games;
  json["failures"] = failures;
  if (rating) {
    json["rating"] = rating->rating.rating;
    json["error"] = rating->rating.error;
    json["bound"] = rating->with_virtual_draw;
  }
  json["enough"] = enough;
  return json;
}

std::string LadderResult::Text() const {
  std::string text = fmt::format("{}\n{:>10} {:>6} {:>7}  {}\n", name, "opponent", "games", "score",
                                 "won drawn lost");
  for (const Step& step : steps) {
    if (step.counts.games() == 0) continue;
    text += fmt::format("{:>10.0f} {:>6} {:>6.1f}%  {}\n", step.rating, step.counts.games(),
                        100 * ScoreOf(step.counts), WdlText(step.counts));
  }
  if (!rating) return text + "no games\n";
  text += fmt::format("Rating: {:.0f} ± {:.0f}{}\n", rating->rating.rating, rating->rating.error,
                      rating->with_virtual_draw
                          ? "; everything was won or lost, so this is a bound, not an estimate"
                      : enough ? ""
                               : "; the error is larger than asked for");
  text += OnePlyText({&name, 1}, {&one_ply, 1});
  if (failures > 0) text += fmt::format("{} games were lost by failures of the player\n", failures);
  return text;
}

Page LadderResult::ToPage() const {
  Page page("Ladder: " + name);
  page.Verbatim(Text());
  page.Plot(
      LinePlot({.title = "Rating with its 95% interval", .x_title = "games", .lines = {curve}}));
  std::vector<ShareBar> bars;
  for (const Step& step : steps) {
    if (step.counts.games() == 0) continue;
    bars.push_back({fmt::format("against {:.0f}", step.rating),
                    {{"wins", static_cast<double>(step.counts.wins)},
                     {"draws", static_cast<double>(step.counts.draws)},
                     {"losses", static_cast<double>(step.counts.losses)}}});
  }
  page.Plot(SharePlot("Wins, draws, losses", bars));
  return page;
}

}  // namespace kibitz::arena
