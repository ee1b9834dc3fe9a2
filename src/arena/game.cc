#include "arena/game.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "arena/watchdog.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "games/chess/san.h"

namespace kibitz::arena {
namespace {

using chess::Board;
using chess::Color;
using chess::Ending;
using chess::GameResult;
using chess::Move;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

constexpr int kMateCentipawns = 10000;
constexpr size_t kShownLines = 3;  // Of a thought, in a comment.
constexpr size_t kShownMoves = 8;  // Of a line.
constexpr size_t kTracedMoves = 30;

const char* NameOf(Color color) { return color == Color::kWhite ? "White" : "Black"; }

GameResult WonBy(Color color) {
  return color == Color::kWhite ? GameResult::kWhiteWins : GameResult::kBlackWins;
}

std::string EvalText(int centipawns, std::optional<oracles::Mate> mate) {
  if (mate) return fmt::format("#{}", mate->wins ? mate->moves : -mate->moves);
  return fmt::format("{:.2f}", centipawns / 100.0);
}

std::string ClockText(int64_t milliseconds) {
  const double seconds = static_cast<double>(std::max<int64_t>(milliseconds, 0)) / 1000;
  const auto whole = static_cast<int64_t>(seconds);
  return fmt::format("{}:{:02}:{:04.1f}", whole / 3600, whole / 60 % 60, std::fmod(seconds, 60));
}

std::string LineText(Board board, const players::Line& line) {
  std::string text;
  for (size_t i = 0; i < std::min(line.pv.size(), kShownMoves); ++i) {
    text += (text.empty() ? "" : " ") + chess::ToSan(board, line.pv[i]);
    board = board.After(line.pv[i]);
  }
  if (line.wdl) text += fmt::format(" ({:+.2f})", line.wdl->win - line.wdl->loss);
  return text;
}

// One game in progress.
class GameInPlay {
 public:
  GameInPlay(const GameTask& task, const GameRules& rules, PlayerTable& players,
             const std::stop_token& stop)
      : task_(task), rules_(rules), players_(players), watchdog_(stop) {
    played_.game = task.opening;
    played_.opening_plies = task.opening.moves.size();
    boards_.push_back(task.opening.start);
    for (Move move : task.opening.moves) boards_.push_back(boards_.back().After(move));
    if (!rules.limits.clock.empty()) {
      times_ = ParseClock(rules.limits.clock).OrThrow("clock");
      left_ = {times_->base, times_->base};
    }
  }

  std::optional<PlayedGame> Play() {
    for (Color color : {Color::kWhite, Color::kBlack}) {
      try {
        players_.At(Contender(color), color).NewGame();
      } catch (const Error& error) {
        players_.Drop(Contender(color), color);
        players_.At(Contender(color), color).NewGame();  // Twice in a row: it cannot play at all.
      }
    }
    while (played_.result == GameResult::kUnknown) {
      if (EndByRules()) break;
      if (watchdog_.abandoned()) return std::nullopt;
      if (!PlayMove()) return std::nullopt;
    }
    return std::move(played_);
  }

 private:
  Color mover() const { return boards_.back().side_to_move(); }
  size_t Contender(Color color) const { return color == Color::kWhite ? task_.white : task_.black; }
  size_t plies() const { return played_.game.moves.size() - played_.opening_plies; }

  void End(GameResult result, std::string reason) {
    played_.result = result;
    played_.reason = std::move(reason);
  }
  void Lose(Color color, const std::string& how) {
    End(WonBy(~color), fmt::format("{} {}", NameOf(color), how));
  }

  bool EndByRules() {
    const Ending ending = chess::EndingOf(boards_);
    const bool claim = ending == Ending::kFiftyMoves || ending == Ending::kThreefoldRepetition;
    if (ending == Ending::kCheckmate) {
      End(WonBy(~mover()), "checkmate");
    } else if (ending != Ending::kNone && (!claim || rules_.draw_claims)) {
      End(GameResult::kDraw, std::string(chess::NameOf(ending)));
    } else if (static_cast<int>(plies()) >= rules_.max_plies) {
      End(GameResult::kDraw, "maximum length");
    }
    return played_.result != GameResult::kUnknown;
  }

  players::Request RequestNow() {
    players::Request request{.game = played_.game};
    request.seed = Rng({.seed = task_.seed, .sample = plies(), .purpose = Purpose("move")}).Next();
    request.limits.nodes = rules_.limits.nodes;
    if (rules_.limits.depth) request.limits.depth = static_cast<int>(*rules_.limits.depth);
    request.limits.move_milliseconds = rules_.limits.move_time;
    if (times_) {
      request.limits.clocks = oracles::Clocks{.white_milliseconds = left_[0],
                                              .black_milliseconds = left_[1],
                                              .white_increment = times_->increment,
                                              .black_increment = times_->increment};
    }
    return request;
  }

  // Milliseconds until the player is stopped; nothing: only the stall limit counts.
  std::optional<int64_t> Budget() {
    const bool engine = players_.IsEngine(Contender(mover()), mover());
    std::optional<int64_t> budget = rules_.limits.move_time;
    if (times_) {
      // An engine shares out its time itself. Others get a thirtieth of what is left and most of
      // the increment.
      const int64_t left = left_[static_cast<size_t>(mover())];
      const int64_t share = left / 30 + times_->increment * 3 / 4;
      budget = engine
                   ? left
                   : std::clamp<int64_t>(std::min(share, left - 50), 1, std::max<int64_t>(left, 1));
    }
    if (budget && engine) *budget += rules_.limits.margin;
    return budget;
  }

  // False when the game was abandoned.
  bool PlayMove() {
    const Color color = mover();
    const auto start = Clock::now();
    const std::optional<int64_t> budget = Budget();
    const auto stall = start + milliseconds(static_cast<int64_t>(1000 * rules_.stall_seconds));
    players::Request request = RequestNow();
    request.stop = watchdog_.Arm(budget ? std::min(stall, start + milliseconds(*budget)) : stall);
    players::Answer answer;
    std::string failure;
    try {
      answer = players_.At(Contender(color), color).Play(request);
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::kInterrupted) return false;
      failure = error.message();
    }
    watchdog_.Disarm();
    if (watchdog_.abandoned()) {
      if (!failure.empty()) players_.Drop(Contender(color), color);
      return false;
    }
    const auto end = Clock::now();
    const int64_t took = std::chrono::duration_cast<milliseconds>(end - start).count();
    if (!failure.empty()) {
      LogWarn("{} loses a game: {}", NameOf(color), failure);
      players_.Drop(Contender(color), color);
      played_.failed = true;
      Lose(color, "fails: " + failure.substr(0, failure.find_first_of(";\n")));
    } else if (end > stall) {
      played_.failed = true;
      players_.Drop(Contender(color), color);
      Lose(color, fmt::format("stalls for {} seconds", rules_.stall_seconds));
    } else if (!SpendTime(color, took)) {
      Lose(color, "forfeits on time");
    } else {
      Accept(color, answer);
    }
    return true;
  }

  // False when the time is over.
  bool SpendTime(Color color, int64_t took) {
    const int64_t margin = rules_.limits.margin;
    if (rules_.limits.move_time && took > *rules_.limits.move_time + margin) return false;
    if (!times_) return true;
    int64_t& left = left_[static_cast<size_t>(color)];
    left -= took;
    if (left < -margin) return false;
    left = std::max<int64_t>(left, 0) + times_->increment;
    return true;
  }

  void Accept(Color color, const players::Answer& answer) {
    const Board& board = boards_.back();
    if (!answer.move || !chess::IsLegal(board, *answer.move)) {
      played_.failed = true;
      players_.Drop(Contender(color), color);
      Lose(color, answer.move ? "plays an illegal move" : "gives no move");
      return;
    }
    const std::optional<int> centipawns = CentipawnsOf(answer);
    if (rules_.notes) played_.notes.push_back(NoteOf(answer, centipawns));
    if (rules_.trace) {
      MoveTrace& trace = played_.trace.emplace_back();
      for (const players::MoveInfo& info : answer.moves) {
        if (trace.size() == kTracedMoves) break;
        trace.emplace_back(info.move, info.probability);
      }
    }
    played_.game.moves.push_back(*answer.move);
    boards_.push_back(board.After(*answer.move));
    if (!EndByRules()) Adjudicate(color, centipawns);
  }

  std::string NoteOf(const players::Answer& answer, std::optional<int> centipawns) const {
    std::vector<std::string> parts;
    const Board& board = boards_.back();
    if (centipawns) {
      const int sign = mover() == Color::kWhite ? 1 : -1;
      std::optional<oracles::Mate> mate = answer.lines.front().mate;
      if (mate && sign < 0) mate->wins = !mate->wins;
      const size_t depth =
          answer.depth > 0 ? static_cast<size_t>(answer.depth) : answer.lines.front().pv.size();
      parts.push_back(fmt::format("[%eval {},{}]", EvalText(sign * *centipawns, mate), depth));
    }
    if (times_) {
      parts.push_back(fmt::format("[%clk {}]", ClockText(left_[static_cast<size_t>(mover())])));
    }
    std::string lines;
    for (size_t i = 0; i < std::min(answer.lines.size(), kShownLines); ++i) {
      lines += (lines.empty() ? "" : "; ") + LineText(board, answer.lines[i]);
    }
    if (!lines.empty()) parts.push_back(lines);
    for (const std::string& remark : answer.remarks) parts.push_back(remark);
    return fmt::format("{}", fmt::join(parts, " "));
  }

  // After a move of `color` that it evaluated so.
  void Adjudicate(Color color, std::optional<int> centipawns) {
    const Adjudication& rules = rules_.adjudication;
    const int white = centipawns ? (color == Color::kWhite ? *centipawns : -*centipawns) : 0;
    const auto count = [&](int& streak, bool holds) { streak = holds ? streak + 1 : 0; };
    count(white_wins_, centipawns && rules.resign_score > 0 && white >= rules.resign_score);
    count(black_wins_, centipawns && rules.resign_score > 0 && -white >= rules.resign_score);
    count(equal_, centipawns && rules.draw_score > 0 && std::abs(white) < rules.draw_score &&
                      boards_.back().fullmove_number() >= rules.draw_from);
    if (white_wins_ >= 2 * rules.resign_moves) End(GameResult::kWhiteWins, "adjudication");
    if (black_wins_ >= 2 * rules.resign_moves) End(GameResult::kBlackWins, "adjudication");
    if (equal_ >= 2 * rules.draw_moves) End(GameResult::kDraw, "adjudication");
  }

  const GameTask& task_;
  const GameRules& rules_;
  PlayerTable& players_;
  Watchdog watchdog_;
  PlayedGame played_;
  std::vector<Board> boards_;
  std::optional<ClockTimes> times_;
  std::array<int64_t, 2> left_{};  // Milliseconds, by colour.
  int white_wins_ = 0;             // Moves in a row that saw White ahead enough, ...
  int black_wins_ = 0;
  int equal_ = 0;
};

}  // namespace

Fields FieldsOf(TimeControl& control) {
  Fields fields;
  fields.Add("clock", control.clock,
             "seconds for the game and added for each move, such as 10+0.1; a player without time "
             "loses",
             {.metavar = "BASE+INC"});
  fields.Add("nodes", control.nodes, "nodes for each move", {.min = 1});
  fields.Add("depth", control.depth, "depth of each move", {.min = 1, .max = 1000});
  fields.Add("move_time", control.move_time, "milliseconds for each move", {.min = 1});
  fields.Add("margin", control.margin, "milliseconds beyond the clock before a game is lost",
             {.min = 0});
  return fields;
}

Result<ClockTimes> ParseClock(std::string_view text) {
  const auto parts = Split(text, '+');
  const auto base = ParseDouble(parts[0]);
  const auto increment = parts.size() == 2 ? ParseDouble(parts[1]) : std::optional<double>(0);
  constexpr double kLongest = 1e6;
  const auto fits = [](std::optional<double> seconds) {
    return seconds && *seconds >= 0 && *seconds <= kLongest;
  };
  if (parts.size() > 2 || !fits(base) || !fits(increment) || *base + *increment <= 0) {
    return Bad("found {}, expected seconds such as 10+0.1", Quoted(text));
  }
  return ClockTimes{.base = std::lround(1000 * *base), .increment = std::lround(1000 * *increment)};
}

Fields FieldsOf(Adjudication& adjudication) {
  Fields fields;
  fields.Add("resign_score", adjudication.resign_score,
             "end a game that both players see won by so many centipawns; 0: play on", {.min = 0});
  fields.Add("resign_moves", adjudication.resign_moves, "... for so many moves of each",
             {.min = 1, .max = 1000});
  fields.Add("draw_score", adjudication.draw_score,
             "end a game as a draw that both see within so many centipawns; 0: play on",
             {.min = 0});
  fields.Add("draw_moves", adjudication.draw_moves, "... for so many moves of each",
             {.min = 1, .max = 1000});
  fields.Add("draw_from", adjudication.draw_from, "... from this move of the game on",
             {.min = 1, .max = 10000});
  return fields;
}

Fields FieldsOf(GameRules& rules) {
  Fields fields = FieldsOf(rules.limits);
  fields.Add("max_plies", rules.max_plies, "a game of so many plies after its opening is a draw",
             {.min = 1, .max = 100000});
  fields.Add("draw_claims", rules.draw_claims,
             "threefold repetition and the fifty-move rule end a game, as if claimed; else only "
             "fivefold and 75 moves do");
  fields.AddAll(FieldsOf(rules.adjudication));
  fields.Add("stall_seconds", rules.stall_seconds, "a single move that takes longer loses the game",
             {.min = 0.1, .max = 1e6});
  return fields;
}

Json PlayedGame::ToJson() const {
  std::string text;
  Board board = game.start;
  for (size_t i = 0; i < game.moves.size(); ++i) {
    if (i >= opening_plies) {
      text += (text.empty() ? "" : " ") + chess::ToText(board, game.moves[i]);
    }
    board = board.After(game.moves[i]);
  }
  Json json = {{"result", chess::NameOf(result)}, {"reason", reason}, {"moves", text}};
  if (failed) json["failed"] = true;
  if (!notes.empty()) json["notes"] = notes;
  if (!trace.empty()) {
    Json& moves = json["trace"] = Json::array();
    Board at = oracles::GameSoFar{game.start,
                                  {game.moves.begin(),
                                   game.moves.begin() + static_cast<std::ptrdiff_t>(opening_plies)}}
                   .Current();
    for (size_t i = 0; i < trace.size(); ++i) {
      Json& told = moves.emplace_back(Json::array());
      for (const auto& [move, probability] : trace[i]) {
        told.push_back({chess::ToText(at, move), probability});
      }
      at = at.After(game.moves[opening_plies + i]);
    }
  }
  return json;
}

PlayedGame PlayedGame::FromJson(const Json& json, const oracles::GameSoFar& opening) {
  PlayedGame played;
  played.game = opening;
  played.opening_plies = opening.moves.size();
  Board board = opening.Current();
  const std::string result = json.at("result");
  for (GameResult known : {GameResult::kWhiteWins, GameResult::kBlackWins, GameResult::kDraw}) {
    if (result == chess::NameOf(known)) played.result = known;
  }
  if (played.result == GameResult::kUnknown) {
    throw Error("a game of the journal has the result {}; remove the journal", Quoted(result));
  }
  played.reason = json.at("reason");
  played.failed = json.value("failed", false);
  if (json.contains("notes")) played.notes = json["notes"].get<std::vector<std::string>>();
  const std::string moves = json.at("moves");
  size_t ply = 0;
  for (std::string_view word : SplitWords(moves)) {
    if (json.contains("trace") && ply < json["trace"].size()) {
      MoveTrace& trace = played.trace.emplace_back();
      for (const Json& told : json["trace"][ply]) {
        trace.emplace_back(chess::ParseMove(board, told[0].get<std::string>()).OrThrow("journal"),
                           told[1].get<double>());
      }
    }
    const Move move = chess::ParseMove(board, word).OrThrow("journal");
    played.game.moves.push_back(move);
    board = board.After(move);
    ++ply;
  }
  return played;
}

std::optional<PlayedGame> PlayGame(const GameTask& task, const GameRules& rules,
                                   PlayerTable& players, const std::stop_token& stop) {
  return GameInPlay(task, rules, players, stop).Play();
}

std::optional<int> CentipawnsOf(const players::Answer& answer) {
  if (answer.lines.empty()) return std::nullopt;
  const players::Line& line = answer.lines.front();
  if (line.mate) {
    const int worth = kMateCentipawns - line.mate->moves;
    return line.mate->wins ? worth : -worth;
  }
  if (line.centipawns) return line.centipawns;
  if (!line.wdl) return std::nullopt;
  // lc0's formula; the reverse of oracles::ExpectedResult.
  const double expected = std::clamp(line.wdl->win - line.wdl->loss, -1.0, 1.0);
  const double centipawns = 90 * std::tan(1.5637541897 * expected);
  return static_cast<int>(std::lround(std::clamp(centipawns, -9999.0, 9999.0)));
}

}  // namespace kibitz::arena
