#include "arena/suite.h"

#include <algorithm>
#include <fstream>

#include "arena/statistics/intervals.h"
#include "base/error.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/san.h"

namespace kibitz::arena {
namespace {

using chess::Board;
using chess::Move;

// The operations of an EPD line, behind its four fields: "bm Nf3; id \"WAC.001\";".
std::map<std::string, std::string> OperationsOf(std::string_view line) {
  size_t at = 0;
  for (int field = 0; field < 4; ++field) {
    at = line.find_first_not_of(' ', at);
    at = std::min(line.find(' ', at), line.size());
  }
  std::map<std::string, std::string> operations;
  std::string current;
  bool quoted = false;
  for (char c : line.substr(std::min(at, line.size()))) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ';' && !quoted) {
      const std::string_view text = Trim(current);
      const size_t blank = std::min(text.find(' '), text.size());
      operations.emplace(text.substr(0, blank), Trim(text.substr(blank)));
      current.clear();
    } else {
      current += c;
    }
  }
  return operations;
}

Result<std::vector<Move>> MovesOf(const Board& board, const std::string& text) {
  std::vector<Move> moves;
  for (std::string_view word : SplitWords(text)) {
    while (word.ends_with(',')) word.remove_suffix(1);
    const auto move = chess::ParseSan(board, word);
    if (!move) return Bad("{}", move.reason());
    moves.push_back(*move);
  }
  return moves;
}

// "100 85 80" beside "c4 Bc6 Qa7".
Result<std::vector<std::pair<Move, int>>> PointsBeside(const Board& board,
                                                       const std::string& points,
                                                       const std::string& moves) {
  std::vector<std::pair<Move, int>> result;
  const auto numbers = SplitWords(points);
  const auto words = SplitWords(moves);
  if (numbers.size() != words.size()) {
    return Bad("{} points for {} moves", numbers.size(), words.size());
  }
  for (size_t i = 0; i < words.size(); ++i) {
    auto move = chess::ParseMove(board, words[i]);
    if (!move) move = chess::ParseSan(board, words[i]);
    const auto number = ParseInt(numbers[i]);
    if (!move) return Bad("{}", move.reason());
    if (!number) return Bad("{} are no points", Quoted(numbers[i]));
    result.emplace_back(*move, static_cast<int>(*number));
  }
  return result;
}

// "c4=100, Bc6=85".
Result<std::vector<std::pair<Move, int>>> PointsIn(const Board& board, const std::string& text) {
  std::string moves;
  std::string numbers;
  for (std::string_view item : Split(text, ',')) {
    const size_t equals = item.rfind('=');
    if (equals == std::string_view::npos || !ParseInt(Trim(item.substr(equals + 1)))) {
      return std::vector<std::pair<Move, int>>();  // A remark of another kind.
    }
    moves += std::string(Trim(item.substr(0, equals))) + " ";
    numbers += std::string(Trim(item.substr(equals + 1))) + " ";
  }
  return PointsBeside(board, numbers, moves);
}

Result<SuitePosition> PositionOf(std::string_view line) {
  SuitePosition position;
  const auto board = chess::ParseFen(line, {.epd_operations = true});
  if (!board) return Bad("{}", board.reason());
  position.board = *board;
  auto operations = OperationsOf(line);
  position.id = operations["id"];
  position.theme = position.id.substr(0, position.id.find_last_of(".-#"));
  const auto best = MovesOf(*board, operations["bm"]);
  const auto avoid = MovesOf(*board, operations["am"]);
  if (!best) return Bad("bm: {}", best.reason());
  if (!avoid) return Bad("am: {}", avoid.reason());
  position.best = *best;
  position.avoid = *avoid;
  const std::string& listed = operations["c9"].empty() ? operations["c7"] : operations["c9"];
  const auto points = !operations["c8"].empty() && !listed.empty()
                          ? PointsBeside(*board, operations["c8"], listed)
                          : PointsIn(*board, operations["c0"]);
  if (!points) return Bad("points: {}", points.reason());
  position.points = *points;
  if (position.best.empty() && position.avoid.empty() && position.points.empty()) {
    return Bad("it has neither bm nor am nor points");
  }
  return position;
}

struct Marks {
  bool solved = false;
  int points = 0;
};

Marks MarksOf(const SuitePosition& position, std::optional<Move> move) {
  Marks marks;
  if (!move) return marks;
  const auto has = [&](const std::vector<Move>& moves) {
    return std::ranges::find(moves, *move) != moves.end();
  };
  for (const auto& [known, points] : position.points) {
    if (known == *move) marks.points = points;
  }
  marks.solved = (position.best.empty() || has(position.best)) && !has(position.avoid);
  if (position.best.empty() && position.avoid.empty()) {
    marks.solved = marks.points == position.most_points();
  }
  return marks;
}

void Count(SuiteCounts& counts, const SuitePosition& position, const Marks& marks) {
  ++counts.positions;
  counts.solved += marks.solved ? 1 : 0;
  counts.points += marks.points;
  counts.most_points += position.most_points();
}

Json CountsJson(const SuiteCounts& counts) {
  const Interval interval = WilsonInterval(counts.solved, counts.positions);
  Json json = {{"positions", counts.positions},
               {"solved", counts.solved},
               {"accuracy", ShareOf(counts.solved, counts.positions)},
               {"low", interval.low},
               {"high", interval.high}};
  if (counts.most_points > 0) {
    json["points"] = counts.points;
    json["most_points"] = counts.most_points;
    json["points_share"] = ShareOf(counts.points, counts.most_points);
  }
  return json;
}

std::vector<std::string> RowOf(const std::string& name, const SuiteCounts& counts) {
  const Interval interval = WilsonInterval(counts.solved, counts.positions);
  return {name,
          std::to_string(counts.positions),
          std::to_string(counts.solved),
          fmt::format("{:.1f}%", 100 * ShareOf(counts.solved, counts.positions)),
          fmt::format("{:.1f} to {:.1f}%", 100 * interval.low, 100 * interval.high),
          counts.most_points == 0
              ? ""
              : fmt::format("{} of {} ({:.1f}%)", counts.points, counts.most_points,
                            100 * ShareOf(counts.points, counts.most_points))};
}

std::vector<std::vector<std::string>> Rows(const SuiteResult& result) {
  std::vector<std::vector<std::string>> rows = {RowOf("all", result.all)};
  if (result.themes.size() > 1) {
    for (const auto& [theme, counts] : result.themes) rows.push_back(RowOf(theme, counts));
  }
  return rows;
}

}  // namespace

int SuitePosition::most_points() const {
  int most = 0;
  for (const auto& item : points) most = std::max(most, item.second);
  return most;
}

std::vector<SuitePosition> LoadSuite(const std::vector<std::string>& paths) {
  std::vector<SuitePosition> suite;
  for (const std::string& path : paths) {
    std::ifstream file(path);
    if (!file.good()) throw Error("{}: cannot be read; expected an EPD file", path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const std::string_view text = Trim(line);
      if (text.empty() || text.starts_with('#')) continue;
      const auto position = PositionOf(text);
      if (!position) throw Error("{}:{}: {}", path, number, position.reason());
      suite.push_back(*position);
    }
  }
  if (suite.empty()) throw Error("there is no position in the files");
  return suite;
}

SuiteResult RunSuite(const std::vector<SuitePosition>& suite, Asker& asker, const RunOptions& run,
                     const Json& settings, Progress* progress) {
  const auto journal = OpenJournal(run, settings);
  SuiteResult result;
  result.one_ply = asker.one_ply();
  const auto work = [&](const Piece& piece) -> std::optional<Json> {
    const SuitePosition& position = suite[static_cast<size_t>(piece.number)];
    const players::Answer answer = asker.Ask(piece, {.start = position.board});
    if (piece.stop.stop_requested()) return std::nullopt;
    return Json{{"move", answer.move ? chess::ToText(position.board, *answer.move) : ""}};
  };
  const auto take = [&](int64_t number, const Json& json) {
    const SuitePosition& position = suite[static_cast<size_t>(number)];
    const std::string text = json.at("move");
    std::optional<Move> move;
    if (!text.empty()) move = chess::ParseMove(position.board, text).OrThrow("journal");
    if (!move) ++result.failures;
    const Marks marks = MarksOf(position, move);
    Count(result.all, position, marks);
    Count(result.themes[position.theme], position, marks);
    if (!marks.solved) result.unsolved.push_back(position.id);
    if (progress != nullptr) progress->SetNote(fmt::format("{} solved", result.all.solved));
    return true;
  };
  DoInOrder(0, static_cast<int64_t>(suite.size()),
            {.threads = run.threads(), .journal = journal.get(), .progress = progress}, work, take);
  return result;
}

Json SuiteResult::ToJson() const {
  Json json = {{"player", player}, {"one_ply", OnePlyJson(one_ply)}};
  json.update(CountsJson(all));
  for (const auto& [theme, counts] : themes) json["themes"][theme] = CountsJson(counts);
  json["failures"] = failures;
  json["unsolved"] = unsolved;
  return json;
}

std::string SuiteResult::Text() const {
  std::string text = fmt::format("{}\n{:40} {:>9} {:>7} {:>7} {:>18}  {}\n", player, "",
                                 "positions", "solved", "", "95% interval", "points");
  for (const auto& row : Rows(*this)) {
    text += fmt::format("{:40} {:>9} {:>7} {:>7} {:>18}  {}\n", row[0], row[1], row[2], row[3],
                        row[4], row[5]);
  }
  text += OnePlyText({&player, 1}, {&one_ply, 1});
  if (failures > 0) text += fmt::format("The player gave no move on {} positions.\n", failures);
  return text;
}

Page SuiteResult::ToPage() const {
  Page page("Test positions: " + player);
  std::vector<PlotBar> bars;
  for (const auto& [theme, counts] : themes) {
    const Interval interval = WilsonInterval(counts.solved, counts.positions);
    bars.push_back({theme.empty() ? "all" : theme, ShareOf(counts.solved, counts.positions),
                    interval.low, interval.high});
  }
  page.Plot(BarPlot("Solved by theme, with 95% intervals", bars));
  page.Table({"", "positions", "solved", "share", "95% interval", "points"}, Rows(*this));
  page.Text(OnePlyText({&player, 1}, {&one_ply, 1}));
  return page;
}

}  // namespace kibitz::arena
