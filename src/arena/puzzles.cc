#include "arena/puzzles.h"

#include <algorithm>
#include <cmath>

#include "arena/match.h"
#include "arena/statistics/intervals.h"
#include "base/error.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/rules.h"
#include "io/bytes/byte_source.h"

namespace kibitz::arena {
namespace {

using chess::Board;
using chess::Move;

constexpr int kBand = 200;           // Rating points.
constexpr int64_t kShownTheme = 20;  // Rarer themes are left out of the text.

// The lines of a file, decompressed.
class LineReader {
 public:
  explicit LineReader(const std::string& path) : source_(io::OpenBytes(path)) {}

  bool Next(std::string& line) {
    line.clear();
    while (true) {
      const size_t end = buffer_.find('\n', at_);
      if (end != std::string::npos) {
        line.append(buffer_, at_, end - at_);
        at_ = end + 1;
        break;
      }
      line.append(buffer_, at_);
      buffer_.resize(1 << 16);
      buffer_.resize(source_->Read(buffer_.data(), buffer_.size()));
      at_ = 0;
      if (buffer_.empty()) return !line.empty();
    }
    if (line.ends_with('\r')) line.pop_back();
    return true;
  }

 private:
  std::unique_ptr<io::ByteSource> source_;
  std::string buffer_;
  size_t at_ = 0;
};

// The cells of a line; a cell may stand in quotes, a doubled quote in it is one.
std::vector<std::string> Cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        cells.back() += '"';
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

// Where the columns are.
struct Columns {
  std::optional<size_t> id, fen, moves, rating, themes;
};

// The columns by the header; nothing when the first line is a puzzle already.
std::optional<Columns> HeaderIn(const std::string& header, const std::string& path) {
  Columns columns;
  const std::vector<std::string> names = Cells(header);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = LowerCase(Trim(names[i]));
    if (name == "puzzleid" || name == "id") columns.id = i;
    if (name == "fen") columns.fen = i;
    if (name == "moves") columns.moves = i;
    if (name == "rating") columns.rating = i;
    if (name == "themes") columns.themes = i;
  }
  if (columns.fen && columns.moves && columns.rating) return columns;
  for (const std::string& cell : names) {
    if (chess::ParseFen(cell)) return std::nullopt;
  }
  throw Error(
      "{}:1: the header is {}; expected the columns FEN, Moves and Rating, as in the Lichess "
      "puzzle "
      "file",
      path, Quoted(header));
}

// Of a file without a header: FEN, Moves, Rating, or as Lichess has them.
Columns ColumnsWithoutHeader(const std::string& line) {
  const std::vector<std::string> cells = Cells(line);
  if (chess::ParseFen(cells.front()))
    return {.id = {}, .fen = 0, .moves = 1, .rating = 2, .themes = 3};
  return {.id = 0, .fen = 1, .moves = 2, .rating = 3, .themes = 7};
}

Result<Puzzle> PuzzleOf(const std::vector<std::string>& cells, const Columns& columns,
                        FirstMove first_move) {
  const auto cell = [&](const std::optional<size_t>& column) {
    return column && *column < cells.size() ? std::string_view(cells[*column]) : std::string_view();
  };
  Puzzle puzzle;
  puzzle.id = cell(columns.id);
  const auto board = chess::ParseFen(cell(columns.fen));
  if (!board) return Bad("{}", board.reason());
  puzzle.game.start = *board;
  const auto rating = ParseDouble(cell(columns.rating));
  if (!rating) return Bad("{} is no rating", Quoted(cell(columns.rating)));
  puzzle.rating = *rating;
  Board at = *board;
  for (std::string_view word : SplitWords(cell(columns.moves))) {
    const auto move = chess::ParseMove(at, word);
    if (!move) return Bad("{}", move.reason());
    puzzle.solution.push_back(*move);
    at = at.After(*move);
  }
  const bool opponent = first_move == FirstMove::kOpponent ||
                        (first_move == FirstMove::kAuto && puzzle.solution.size() % 2 == 0);
  if (puzzle.solution.size() < (opponent ? 2u : 1u)) return Bad("it has no move to find");
  if (opponent) {
    puzzle.game.moves = {puzzle.solution.front()};
    puzzle.solution.erase(puzzle.solution.begin());
  }
  for (std::string_view theme : SplitWords(cell(columns.themes))) puzzle.themes.emplace_back(theme);
  return puzzle;
}

struct Solved {
  bool exact = true;
  bool any_mate = true;
  bool broke = false;  // The player gave no move.
};

// Nothing when it was abandoned.
std::optional<Solved> Solve(const Puzzle& puzzle, const Piece& piece, Asker& asker) {
  oracles::GameSoFar game = puzzle.game;
  for (size_t i = 0; i < puzzle.solution.size(); ++i) {
    if (i % 2 == 0) {
      const players::Answer answer = asker.Ask(piece, game);
      if (piece.stop.stop_requested()) return std::nullopt;
      if (answer.move != puzzle.solution[i]) {
        const bool mates = answer.move && chess::IsCheckmate(game.Current().After(*answer.move));
        return Solved{.exact = false, .any_mate = mates, .broke = !answer.move};
      }
    }
    game.moves.push_back(puzzle.solution[i]);
  }
  return Solved{};
}

void Count(SolvedCounts& counts, const Solved& solved) {
  ++counts.puzzles;
  counts.exact += solved.exact ? 1 : 0;
  counts.any_mate += solved.any_mate ? 1 : 0;
}

Json CountsJson(const SolvedCounts& counts) {
  const Interval interval = WilsonInterval(counts.any_mate, counts.puzzles);
  return {{"puzzles", counts.puzzles},
          {"solved", counts.exact},
          {"solved_any_mate", counts.any_mate},
          {"accuracy", ShareOf(counts.any_mate, counts.puzzles)},
          {"low", interval.low},
          {"high", interval.high}};
}

std::vector<std::string> RowOf(const std::string& name, const SolvedCounts& counts) {
  const Interval interval = WilsonInterval(counts.any_mate, counts.puzzles);
  return {name, std::to_string(counts.puzzles),
          fmt::format("{:.1f}%", 100 * ShareOf(counts.any_mate, counts.puzzles)),
          fmt::format("{:.1f} to {:.1f}%", 100 * interval.low, 100 * interval.high),
          fmt::format("{:.1f}%", 100 * ShareOf(counts.exact, counts.puzzles))};
}

std::string BandName(int low) { return fmt::format("{} to {}", low, low + kBand - 1); }

}  // namespace

Fields FieldsOf(PuzzleOptions& options) {
  Fields fields;
  fields.AddChoice("first_move", options.first_move,
                   "whose the first move of a line is; auto: the opponent's where moves are even",
                   {{"auto", FirstMove::kAuto},
                    {"opponent", FirstMove::kOpponent},
                    {"solver", FirstMove::kSolver}});
  fields.Add("limit", options.limit, "the first so many puzzles; 0: all", {.min = 0});
  fields.Add("min_rating", options.min_rating, "leave out easier ones");
  fields.Add("max_rating", options.max_rating, "leave out harder ones");
  return fields;
}

namespace {

void LoadFile(const std::string& path, const PuzzleOptions& options, SkipCounter& skipped,
              std::vector<Puzzle>& puzzles) {
  LineReader reader(path);
  std::string line;
  if (!reader.Next(line)) throw Error("{}: the file is empty; expected puzzles as CSV", path);
  if (line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  const std::optional<Columns> header = HeaderIn(line, path);
  const Columns columns = header ? *header : ColumnsWithoutHeader(line);
  const size_t before = puzzles.size();
  bool more = header ? reader.Next(line) : true;
  for (int64_t number = header ? 2 : 1; more; more = reader.Next(line), ++number) {
    if (options.limit > 0 && static_cast<int64_t>(puzzles.size()) >= options.limit) return;
    if (Trim(line).empty()) continue;
    const Result<Puzzle> puzzle = PuzzleOf(Cells(line), columns, options.first_move);
    if (!puzzle) {
      skipped.AddAndWarn("no puzzle",
                         {.file = fmt::format("{}:{}", path, number), .detail = puzzle.reason()});
      continue;
    }
    if (puzzle->rating < options.min_rating || puzzle->rating > options.max_rating) continue;
    puzzles.push_back(*puzzle);
  }
  if (puzzles.size() == before) throw Error("{}: no puzzle in it can be used", path);
}

}  // namespace

std::vector<Puzzle> LoadPuzzles(const std::vector<std::string>& paths, const PuzzleOptions& options,
                                SkipCounter& skipped) {
  std::vector<Puzzle> puzzles;
  for (const std::string& path : paths) LoadFile(path, options, skipped, puzzles);
  return puzzles;
}

PuzzleComparison::PuzzleComparison(const PuzzleResult& first, const PuzzleResult& second) {
  CHECK(first.encounters.size() == second.encounters.size());
  for (size_t i = 0; i < first.encounters.size(); ++i) {
    only_first += first.encounters[i].points > second.encounters[i].points ? 1 : 0;
    only_second += first.encounters[i].points < second.encounters[i].points ? 1 : 0;
  }
  p_value = McNemarExact(only_first, only_second);
  rating_beyond = RatingDifference(first.encounters, second.encounters);
}

Json PuzzleComparison::ToJson() const {
  Json json = {{"only_first", only_first}, {"only_second", only_second}, {"p_value", p_value}};
  if (rating_beyond) {
    json["rating"] = rating_beyond->rating;
    json["rating_error"] = FiniteOrNull(rating_beyond->error);
  }
  return json;
}

std::string PuzzleComparison::Text() const {
  std::string text = fmt::format(
      "first against second, same puzzles: {} solved by the first alone, {} by the second "
      "alone (p = {:.3g})",
      only_first, only_second, p_value);
  if (rating_beyond) {
    text += "; rating of the first beyond the second " +
            ErrorText(rating_beyond->rating, rating_beyond->error);
  }
  return text + "\n";
}

PuzzleResult RunPuzzles(const std::vector<Puzzle>& puzzles, Asker& asker, const RunOptions& run,
                        const Json& settings, Progress* progress) {
  const auto journal = OpenJournal(run, settings);
  PuzzleResult result;
  std::vector<KnownEncounter> exact;
  const auto work = [&](const Piece& piece) -> std::optional<Json> {
    const auto solved = Solve(puzzles[static_cast<size_t>(piece.number)], piece, asker);
    if (!solved) return std::nullopt;
    Json json = {{"exact", solved->exact}, {"any_mate", solved->any_mate}};
    if (solved->broke) json["broke"] = true;
    return json;
  };
  const auto take = [&](int64_t number, const Json& json) {
    const Puzzle& puzzle = puzzles[static_cast<size_t>(number)];
    const Solved solved{.exact = json.at("exact"), .any_mate = json.at("any_mate")};
    Count(result.all, solved);
    result.failures += json.value("broke", false) ? 1 : 0;
    const int band = static_cast<int>(std::floor(puzzle.rating / kBand)) * kBand;
    Count(result.bands[band], solved);
    for (const std::string& theme : puzzle.themes) Count(result.themes[theme], solved);
    result.encounters.push_back({.rating = puzzle.rating, .points = solved.any_mate ? 1.0 : 0.0});
    exact.push_back({.rating = puzzle.rating, .points = solved.exact ? 1.0 : 0.0});
    if (progress != nullptr) {
      progress->SetNote(
          fmt::format("{:.1f}% solved", 100 * ShareOf(result.all.any_mate, result.all.puzzles)));
    }
    return true;
  };
  DoInOrder(0, static_cast<int64_t>(puzzles.size()),
            {.threads = run.threads(), .journal = journal.get(), .progress = progress}, work, take);
  result.rating = RateAgainst(result.encounters);
  result.exact_rating = RateAgainst(exact);
  result.one_ply = asker.one_ply();
  return result;
}

Json PuzzleResult::ToJson() const {
  Json json = {{"player", player}, {"one_ply", OnePlyJson(one_ply)}};
  json.update(CountsJson(all));
  json["accuracy_exact"] = ShareOf(all.exact, all.puzzles);
  if (rating) {
    json["rating"] = rating->rating.rating;
    json["rating_error"] = rating->rating.error;
    json["rating_is_bound"] = rating->with_virtual_draw;
    json["rating_exact"] = exact_rating->rating.rating;
  }
  Json& by_band = json["bands"] = Json::array();
  for (const auto& [low, counts] : bands) {
    Json item = {{"from", low}, {"to", low + kBand - 1}};
    item.update(CountsJson(counts));
    by_band.push_back(item);
  }
  for (const auto& [theme, counts] : themes) json["themes"][theme] = CountsJson(counts);
  json["failures"] = failures;
  json["skipped"] = skipped.ToJson();
  return json;
}

std::string PuzzleResult::Text() const {
  std::vector<std::vector<std::string>> rows = {RowOf("all", all)};
  for (const auto& [low, counts] : bands) rows.push_back(RowOf(BandName(low), counts));
  for (const auto& [theme, counts] : themes) {
    if (counts.puzzles >= kShownTheme) rows.push_back(RowOf(theme, counts));
  }
  std::string text = fmt::format("{}\n{:22} {:>8} {:>8} {:>18} {:>11}\n", player, "", "puzzles",
                                 "solved", "95% interval", "exact line");
  for (const auto& row : rows) {
    text +=
        fmt::format("{:22} {:>8} {:>8} {:>18} {:>11}\n", row[0], row[1], row[2], row[3], row[4]);
  }
  if (rating) {
    text +=
        fmt::format("Rating: {:.0f} ± {:.0f} (any mate solves), {:.0f} ± {:.0f} (exact line){}\n",
                    rating->rating.rating, rating->rating.error, exact_rating->rating.rating,
                    exact_rating->rating.error,
                    rating->with_virtual_draw ? "; a bound: all solved, or none" : "");
  }
  text += OnePlyText({&player, 1}, {&one_ply, 1});
  if (failures > 0) text += fmt::format("The player broke on {} puzzles.\n", failures);
  if (!skipped.empty()) text += fmt::format("skipped: {}\n", skipped.Text());
  return text;
}

Page PuzzleResult::ToPage() const {
  Page page("Puzzles: " + player);
  if (rating) {
    page.Text(fmt::format("Rating {:.0f} ± {:.0f}", rating->rating.rating, rating->rating.error));
  }
  const auto bar = [](const std::string& name, const SolvedCounts& counts) {
    const Interval interval = WilsonInterval(counts.any_mate, counts.puzzles);
    return PlotBar{name, ShareOf(counts.any_mate, counts.puzzles), interval.low, interval.high};
  };
  std::vector<PlotBar> by_band;
  std::vector<PlotBar> by_theme;
  std::vector<std::vector<std::string>> rows = {RowOf("all", all)};
  for (const auto& [low, counts] : bands) {
    by_band.push_back(bar(BandName(low), counts));
    rows.push_back(RowOf(BandName(low), counts));
  }
  for (const auto& [theme, counts] : themes) {
    if (counts.puzzles >= kShownTheme) by_theme.push_back(bar(theme, counts));
    rows.push_back(RowOf(theme, counts));
  }
  page.Plot(BarPlot("Solved by rating, with 95% intervals", by_band));
  if (!by_theme.empty()) page.Plot(BarPlot("Solved by theme, with 95% intervals", by_theme));
  page.Table({"", "puzzles", "solved", "95% interval", "exact line"}, rows);
  page.Text(OnePlyText({&player, 1}, {&one_ply, 1}));
  return page;
}

}  // namespace kibitz::arena
