#include "arena/series.h"

#include <algorithm>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "io/bytes/byte_sink.h"

namespace kibitz::arena {
namespace {

using chess::Color;

double WinRate(const GameCounts& counts) {
  return counts.games() == 0
             ? 0
             : static_cast<double>(counts.wins) / static_cast<double>(counts.games());
}

GameCounts Reversed(const GameCounts& counts) {
  return {.wins = counts.losses, .draws = counts.draws, .losses = counts.wins};
}

Json CountsJson(const GameCounts& counts) {
  return {{"wins", counts.wins},
          {"draws", counts.draws},
          {"losses", counts.losses},
          {"win_rate", WinRate(counts)}};
}

// The counts of a player with a colour.
GameCounts Of(const Tally& tally, size_t player, Color color) {
  return player == 0 ? tally.As(color) : Reversed(tally.As(~color));
}

std::vector<std::vector<std::string>> Rows(const SeriesResult& result) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, const GameCounts& counts) {
    rows.push_back({name, std::to_string(counts.wins), std::to_string(counts.losses),
                    std::to_string(counts.draws), fmt::format("{:.1f}%", 100 * WinRate(counts))});
  };
  for (size_t player : {size_t{0}, size_t{1}}) {
    const GameCounts& first = result.tally.games();
    add(result.names[player], player == 0 ? first : Reversed(first));
    add(result.names[player] + ", White", Of(result.tally, player, Color::kWhite));
    add(result.names[player] + ", Black", Of(result.tally, player, Color::kBlack));
  }
  for (const auto& opening : result.openings) add(opening.name, opening.counts);
  return rows;
}

Json TraceOf(const FinishedGame& game, size_t index, const chess::Board& board,
             double min_probability) {
  Json line = {{"game", game.number}, {"ply", index}, {"fen", chess::ToFen(board)}};
  line["player"] =
      board.side_to_move() == Color::kWhite ? game.scheduled.white : game.scheduled.black;
  const chess::Move played = game.played.game.moves[game.played.opening_plies + index];
  line["move"] = chess::ToText(board, played);
  Json probabilities = Json::object();
  Json arrows = Json::array();
  for (const auto& [move, probability] : game.played.trace[index]) {
    const std::string text = chess::ToText(board, move);
    probabilities[text] = probability;
    if (probability < min_probability) continue;
    arrows.push_back(
        {{"from", text.substr(0, 2)}, {"to", text.substr(2, 2)}, {"probability", probability}});
  }
  line["probabilities"] = probabilities;
  line["arrows"] = arrows;
  return line;
}

}  // namespace

Json SeriesResult::ToJson() const {
  Json json = {{"players", names}, {"one_ply", {OnePlyJson(one_ply[0]), OnePlyJson(one_ply[1])}}};
  json.update(tally.ToJson());
  json["win_rate"] = WinRate(tally.games());
  Json& by_player = json["by_player"] = Json::array();
  for (size_t player : {size_t{0}, size_t{1}}) {
    Json item = {{"name", names[player]}};
    item.update(CountsJson(player == 0 ? tally.games() : Reversed(tally.games())));
    item["white"] = CountsJson(Of(tally, player, Color::kWhite));
    item["black"] = CountsJson(Of(tally, player, Color::kBlack));
    by_player.push_back(item);
  }
  Json& by_opening = json["by_opening"] = Json::array();
  for (const OfOpening& opening : openings) {
    Json item = {{"opening", opening.name}};
    item.update(CountsJson(opening.counts));
    by_opening.push_back(item);
  }
  return json;
}

std::string SeriesResult::Text() const {
  size_t width = 10;
  for (const auto& row : Rows(*this)) width = std::max(width, row[0].size());
  std::string text =
      fmt::format("{:{}} {:>6} {:>6} {:>6} {:>9}\n", "", width, "won", "lost", "drawn", "win rate");
  size_t number = 0;
  for (const auto& row : Rows(*this)) {
    if (number++ == 6) text += fmt::format("openings, of {}\n", names[0]);
    text += fmt::format("{:{}} {:>6} {:>6} {:>6} {:>9}\n", row[0], width, row[1], row[2], row[3],
                        row[4]);
  }
  const Strength strength = tally.strength();
  text += fmt::format("Elo of {}: {}\n", names[0], ErrorText(strength.elo, strength.elo_error));
  return text + OnePlyText(names, one_ply);
}

Page SeriesResult::ToPage() const {
  Page page(fmt::format("{} against {}: every opening twice", names[0], names[1]));
  std::vector<ShareBar> bars;
  for (size_t player : {size_t{0}, size_t{1}}) {
    for (Color color : {Color::kWhite, Color::kBlack}) {
      const GameCounts counts = Of(tally, player, color);
      bars.push_back(
          {fmt::format("{}, {}", names[player], color == Color::kWhite ? "White" : "Black"),
           {{"wins", static_cast<double>(counts.wins)},
            {"draws", static_cast<double>(counts.draws)},
            {"losses", static_cast<double>(counts.losses)}}});
    }
  }
  page.Plot(SharePlot("Wins, draws, losses", bars));
  page.Table({"", "won", "lost", "drawn", "win rate"}, Rows(*this));
  page.Text(OnePlyText(names, one_ply));
  return page;
}

SeriesResult RunSeries(GameRun& run, const SeriesOptions& options, Progress* progress) {
  CHECK(run.contenders().size() == 2);
  SeriesResult result{.names = {run.contenders()[0].name, run.contenders()[1].name},
                      .one_ply = {run.one_ply()[0], run.one_ply()[1]},
                      .tally = {},
                      .openings = {},
                      .games = {}};
  size_t count = run.openings().size();
  if (options.openings > 0) count = std::min(count, static_cast<size_t>(options.openings));
  for (size_t i = 0; i < count; ++i) result.openings.push_back({run.openings()[i].name, {}});
  std::vector<ScheduledGame> games;
  for (int64_t round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < count; ++i) {
      games.push_back({.white = 0, .black = 1, .opening = i});
      games.push_back({.white = 1, .black = 0, .opening = i});
    }
  }
  if (progress != nullptr) progress->SetTotal(games.size());
  run.Play(
      games,
      [&](const FinishedGame& game) {
        result.tally.Add(game, 0);
        AddResult(result.openings[game.scheduled.opening].counts, game.PointsOf(0));
        if (!game.played.trace.empty()) result.games.push_back(game);
        if (progress != nullptr) {
          const GameCounts& counts = result.tally.games();
          progress->SetNote(fmt::format("+{} ={} -{}", counts.wins, counts.draws, counts.losses));
        }
        return true;
      },
      progress);
  return result;
}

void WriteTrace(const std::string& path, const SeriesResult& result, const GameRun& run,
                double min_probability) {
  io::ByteSink sink(path);
  for (const FinishedGame& game : result.games) {
    chess::Board board = run.OpeningAt(game.scheduled.opening).game.Current();
    for (size_t i = 0; i < game.played.trace.size(); ++i) {
      sink.Write(TraceOf(game, i, board, min_probability).dump() + "\n");
      board = board.After(game.played.game.moves[game.played.opening_plies + i]);
    }
  }
  sink.Commit();
}

}  // namespace kibitz::arena
