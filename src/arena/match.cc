#include "arena/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kibitz::arena {
namespace {

using chess::Color;

Json ToJson(const GameCounts& counts) {
  return {{"wins", counts.wins}, {"draws", counts.draws}, {"losses", counts.losses}};
}

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

const char* DecisionText(SprtDecision decision) {
  switch (decision) {
    case SprtDecision::kElo0:
      return "elo0";
    case SprtDecision::kElo1:
      return "elo1";
    case SprtDecision::kContinue:
      break;
  }
  return "continue";
}

// Reasons name the side that failed with details; alike ones count as one.
std::string EndOf(const PlayedGame& game) {
  const size_t fails = game.reason.find(" fails: ");
  std::string reason = fails == std::string::npos ? game.reason : "engine failure";
  for (const char* side : {"White ", "Black "}) {
    if (reason.starts_with(side)) reason = reason.substr(6);
  }
  return reason;
}

std::string NoteOf(const MatchResult& result) {
  const Strength strength = result.tally.strength();
  std::string note = WdlText(result.tally.games());
  note += ", Elo " + ErrorText(strength.elo, strength.elo_error);
  if (result.sprt) {
    note += fmt::format(", LLR {:.2f} ({:.2f}, {:.2f})", result.llr, result.sprt->lower(),
                        result.sprt->upper());
  }
  return note;
}

}  // namespace

std::string ErrorText(double value, double error) {
  if (std::isinf(value)) return value > 0 ? "+inf" : "-inf";
  if (std::abs(value) < 0.05) value = 0;  // Not -0.0.
  if (!std::isfinite(error)) return fmt::format("{:+.1f} ± inf", value);
  return fmt::format("{:+.1f} ± {:.1f}", value, error);
}

Json FiniteOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string WdlText(const GameCounts& counts) {
  return fmt::format("+{} ={} -{}", counts.wins, counts.draws, counts.losses);
}

void AddResult(GameCounts& counts, double points) {
  ++(points == 1 ? counts.wins : points == 0 ? counts.losses : counts.draws);
}

void Tally::Add(const FinishedGame& game, size_t first) {
  const double points = game.PointsOf(first);
  const Color color = game.scheduled.white == first ? Color::kWhite : Color::kBlack;
  AddResult(all_, points);
  AddResult(by_color_[static_cast<size_t>(color)], points);
  ++ends_[EndOf(game.played)];
  if (game.played.failed) ++failures_[points == 0 ? 0 : 1];
  plies_ += static_cast<int64_t>(game.played.game.moves.size() - game.played.opening_plies);
  if (half_ && game.number % 2 == 1 && half_->first == game.number - 1) {
    AddPair(pairs_, half_->second, points);
    half_.reset();
  } else {
    half_ = {game.number, points};
  }
}

Strength Tally::strength() const {
  return pairs_.pairs() > 0 && pairs_.pairs() * 2 == all_.games() ? StrengthOf(pairs_)
                                                                  : StrengthOf(all_);
}

Json Tally::ToJson() const {
  const Strength figures = strength();
  Json json = {{"games", all_.games()},
               {"wins", all_.wins},
               {"draws", all_.draws},
               {"losses", all_.losses},
               {"points", all_.points()},
               {"score", figures.score},
               {"elo", FiniteOrNull(figures.elo)},
               {"elo_error", FiniteOrNull(figures.elo_error)},
               {"nelo", FiniteOrNull(figures.normalized_elo)},
               {"nelo_error", FiniteOrNull(figures.normalized_elo_error)},
               {"los", figures.los},
               {"pairs", pairs_.pairs()},
               {"pentanomial", pairs_.by_points},
               {"pairs_win_and_loss", pairs_.win_and_loss},
               {"draw_ratio", FiniteOrNull(DrawRatio(pairs_))},
               {"pairs_ratio", FiniteOrNull(PairsRatio(pairs_))},
               {"as_white", arena::ToJson(As(Color::kWhite))},
               {"as_black", arena::ToJson(As(Color::kBlack))},
               {"plies", plies_},
               {"ends", ends_},
               {"failures", failures_}};
  return json;
}

Json MatchResult::ToJson() const {
  Json json = {{"players", names}, {"one_ply", {OnePlyJson(one_ply[0]), OnePlyJson(one_ply[1])}}};
  json.update(tally.ToJson());
  if (sprt) {
    const SprtDecision decision = DecisionOf(llr, *sprt);
    json["llr"] = llr;
    json["sprt"] = {{"elo0", sprt->elo0},
                    {"elo1", sprt->elo1},
                    {"alpha", sprt->alpha},
                    {"beta", sprt->beta},
                    {"model", sprt->model == EloModel::kLogistic ? "logistic" : "normalized"},
                    {"lower", sprt->lower()},
                    {"upper", sprt->upper()},
                    {"decision", DecisionText(decision)}};
  }
  return json;
}

std::string MatchResult::Text() const {
  const Strength figures = tally.strength();
  const GameCounts& games = tally.games();
  std::string text = fmt::format("{} against {}\n", names[0], names[1]);
  text += fmt::format("Games: {}, Wins: {}, Losses: {}, Draws: {}, Points: {:.1f} ({:.2f}%)\n",
                      games.games(), games.wins, games.losses, games.draws, games.points(),
                      Percent(games.points(), static_cast<double>(games.games())));
  text += fmt::format("Elo: {}, nElo: {}\n", ErrorText(figures.elo, figures.elo_error),
                      ErrorText(figures.normalized_elo, figures.normalized_elo_error));
  text += fmt::format("LOS: {:.2f}%", 100 * figures.los);
  const PairCounts& pairs = tally.pairs();
  if (pairs.pairs() > 0) {
    text += fmt::format(", DrawRatio: {:.2f}%, PairsRatio: {:.2f}\n", 100 * DrawRatio(pairs),
                        PairsRatio(pairs));
    text += fmt::format("Pentanomial(0-2): [{}], {} of the {} even pairs a win and a loss\n",
                        fmt::join(pairs.by_points, ", "), pairs.win_and_loss, pairs.by_points[2]);
  } else {
    text += "\n";
  }
  if (sprt) {
    const SprtDecision decision = DecisionOf(llr, *sprt);
    text += fmt::format(
        "LLR: {:.2f} ({:.2f}, {:.2f}) [{:.2f}, {:.2f}] {}: {}\n", llr, sprt->lower(), sprt->upper(),
        sprt->elo0, sprt->elo1, sprt->model == EloModel::kLogistic ? "logistic" : "normalized",
        decision == SprtDecision::kContinue ? "no decision"
                                            : fmt::format("{} accepted", DecisionText(decision)));
  }
  text +=
      fmt::format("With White: {}, with Black: {}; {} plies\n", WdlText(tally.As(Color::kWhite)),
                  WdlText(tally.As(Color::kBlack)), tally.plies());
  text += OnePlyText(names, one_ply);
  text += "Ends:";
  for (const auto& [reason, count] : tally.ends()) text += fmt::format(" {} {},", count, reason);
  text.back() = '\n';
  if (tally.failures()[0] + tally.failures()[1] > 0) {
    text += fmt::format("Games lost by a failure of the player: {} and {}\n", tally.failures()[0],
                        tally.failures()[1]);
  }
  return text;
}

Page MatchResult::ToPage() const {
  Page page(fmt::format("{} against {}", names[0], names[1]));
  page.Verbatim(Text());
  const auto bar = [&](const std::string& name, const GameCounts& counts) {
    return ShareBar{name,
                    {{"wins", static_cast<double>(counts.wins)},
                     {"draws", static_cast<double>(counts.draws)},
                     {"losses", static_cast<double>(counts.losses)}}};
  };
  page.Plot(SharePlot("Wins, draws, losses of " + names[0],
                      {bar("all games", tally.games()), bar("with White", tally.As(Color::kWhite)),
                       bar("with Black", tally.As(Color::kBlack))}));
  if (!curve.x.empty()) {
    page.Plot(
        LinePlot({.title = "Elo with its 95% interval", .x_title = "games", .lines = {curve}}));
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [reason, count] : tally.ends()) rows.push_back({reason, std::to_string(count)});
  page.Heading("How the games ended");
  page.Table({"end", "games"}, rows);
  return page;
}

MatchResult RunMatch(GameRun& run, const MatchOptions& options, Progress* progress) {
  CHECK(run.contenders().size() == 2);
  MatchResult result{.names = {run.contenders()[0].name, run.contenders()[1].name},
                     .one_ply = {run.one_ply()[0], run.one_ply()[1]},
                     .tally = {},
                     .sprt = options.sprt,
                     .curve = {.name = "Elo"}};
  std::vector<ScheduledGame> games;
  for (int64_t i = 0; i < options.games; ++i) {
    const auto odd = static_cast<size_t>(i % 2);
    games.push_back({.white = odd, .black = 1 - odd, .opening = static_cast<size_t>(i / 2)});
  }
  const int64_t stride = std::max<int64_t>(1, options.games / 2 / 400);  // Of the curve.
  run.Play(
      games,
      [&](const FinishedGame& game) {
        result.tally.Add(game, 0);
        bool more = true;
        if (game.number % 2 == 1) {
          const Strength strength = StrengthOf(result.tally.pairs());
          if (result.tally.pairs().pairs() % stride == 0 && std::isfinite(strength.elo) &&
              std::isfinite(strength.elo_error)) {
            result.curve.x.push_back(static_cast<double>(game.number + 1));
            result.curve.y.push_back(strength.elo);
            result.curve.low.push_back(strength.elo - strength.elo_error);
            result.curve.high.push_back(strength.elo + strength.elo_error);
          }
          if (result.sprt) {
            result.llr = LogLikelihoodRatio(result.tally.pairs(), *result.sprt);
            more = DecisionOf(result.llr, *result.sprt) == SprtDecision::kContinue;
          }
        }
        if (progress != nullptr) progress->SetNote(NoteOf(result));
        return more;
      },
      progress);
  return result;
}

}  // namespace kibitz::arena
