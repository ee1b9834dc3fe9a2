#include "oracles/records/played_games.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/random.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "oracles/records/rate_note.h"
#include "oracles/records/rows.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::Color;
using chess::Ending;

constexpr int kAgreedPlies = 8;  // Before a game is adjudicated.

// A game being played.
struct RunningGame {
  int64_t number = 0;
  GameSoFar so_far;
  std::vector<Board> boards;  // All since its start, for the rules.
  GameRecord record;
  int winning_plies = 0;  // In a row in which `winner` was winning.
  Color winner = Color::kWhite;
  int drawn_plies = 0;  // In a row.

  void Play(chess::Move move) {
    so_far.moves.push_back(move);
    boards.push_back(boards.back().After(move));
  }
};

std::string ResultOf(Ending ending, Color mover) {
  if (ending != Ending::kCheckmate) return "1/2-1/2";
  return mover == Color::kWhite ? "0-1" : "1-0";
}

bool IsOver(const RunningGame& game) { return chess::EndingOf(game.boards) != Ending::kNone; }

// Draws a line by its fraction; the best one at temperature 0.
const Variation& DrawVariation(const Lesson& lesson, double temperature, Rng& rng) {
  if (temperature <= 0) return lesson.variations.front();
  std::vector<double> weights;
  for (const Variation& variation : lesson.variations) {
    weights.push_back(std::pow(variation.fraction, 1 / temperature));
  }
  double left = rng.Uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return lesson.variations[i];
  }
  return lesson.variations.front();
}

class Tournament {
 public:
  Tournament(const Players& players, const PlayOptions& options,
             std::span<const GameSoFar> openings, const PartStore& parts, Progress& progress)
      : players_(players),
        options_(options),
        openings_(openings),
        parts_(parts),
        progress_(progress),
        rate_(progress),
        order_(openings.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    Rng rng({.seed = options.seed, .purpose = Purpose("order of openings")});
    rng.Shuffle(order_);
  }

  int64_t Run() {
    StartGames();
    while (!running_.empty()) {
      ThrowIfInterrupted();
      AskTeacher(players_.first, 0);
      if (players_.second != nullptr) AskTeacher(*players_.second, 1);
      std::erase_if(running_, [](const auto& game) { return game == nullptr; });
      StartGames();
    }
    return asked_;
  }

 private:
  int64_t PartOf(int64_t number) const { return number / options_.part_games; }

  void StartGames() {
    while (next_ < options_.games && static_cast<int>(running_.size()) < players_.at_once) {
      const int64_t part = PartOf(next_);
      const int64_t end = std::min((part + 1) * options_.part_games, options_.games);
      if (next_ % options_.part_games == 0 && !parts_.Needs(part)) {
        progress_.Add(static_cast<uint64_t>(end - next_));
        next_ = end;
        continue;
      }
      running_.push_back(NewGame(next_++));
    }
  }

  std::unique_ptr<RunningGame> NewGame(int64_t number) const {
    // With two players an opening is played with both colours.
    const int64_t opening = players_.second == nullptr ? number : number / 2;
    for (uint64_t attempt = 0;; ++attempt) {
      auto game = std::make_unique<RunningGame>();
      game->number = number;
      game->record.id = fmt::format("s{}g{}", options_.seed, number);
      SetUp(*game, opening);
      Rng rng({.seed = options_.seed,
               .epoch = attempt,
               .sample = static_cast<uint64_t>(opening),
               .purpose = Purpose("random plies")});
      for (int ply = 0; ply < options_.random_plies && !IsOver(*game); ++ply) {
        const chess::MoveList moves = chess::LegalMoves(game->boards.back());
        game->Play(moves[rng.Below(moves.size())]);
      }
      if (!IsOver(*game)) return game;
      constexpr uint64_t kAttempts = 1000;
      if (attempt == kAttempts) {
        throw Error("opening {}: after --random-plies {} the game is always over; give fewer",
                    opening, options_.random_plies);
      }
    }
  }

  void SetUp(RunningGame& game, int64_t opening) const {
    if (!order_.empty()) {
      const GameSoFar& chosen = openings_[order_[static_cast<size_t>(opening) % order_.size()]];
      game.so_far.start = chosen.start;
      game.boards = {chosen.start};
      for (chess::Move move : chosen.moves) game.Play(move);
    } else {
      game.boards = {game.so_far.start};
    }
  }

  // Whose turn it is: 0 or 1.
  int TurnOf(const RunningGame& game) const {
    if (players_.second == nullptr) return 0;
    const bool white_to_move = game.boards.back().side_to_move() == Color::kWhite;
    return white_to_move == (game.number % 2 == 0) ? 0 : 1;
  }

  // One move in each game where it is this teacher's turn; finished games are removed.
  void AskTeacher(Teacher& teacher, int turn) {
    std::vector<size_t> places;
    std::vector<GameSoFar> questions;
    for (size_t i = 0; i < running_.size(); ++i) {
      if (running_[i] == nullptr || TurnOf(*running_[i]) != turn) continue;
      places.push_back(i);
      questions.push_back(running_[i]->so_far);
    }
    const auto lessons = teacher.Teach(questions);
    asked_ += static_cast<int64_t>(questions.size());
    rate_.Show(asked_);
    for (size_t i = 0; i < places.size(); ++i) {
      RunningGame& game = *running_[places[i]];
      CHECK(lessons[i].has_value());  // Finished games are removed before.
      TakeMove(game, *lessons[i]);
      if (game.record.result.empty()) continue;
      PutAway(std::move(running_[places[i]]));
    }
  }

  void TakeMove(RunningGame& game, const Lesson& lesson) const {
    const auto ply = static_cast<int>(game.record.plies.size());
    Rng rng({.seed = options_.seed,
             .epoch = static_cast<uint64_t>(ply),
             .sample = static_cast<uint64_t>(game.number),
             .purpose = Purpose("temperature")});
    const double temperature = ply < options_.temperature_plies ? options_.temperature : 0;
    const VariationNode& drawn = DrawVariation(lesson, temperature, rng).nodes.front();
    game.record.plies.push_back({.ply = ply,
                                 .board = game.boards.back(),
                                 .played = drawn.move,
                                 .best = lesson.best,
                                 .wdl = lesson.wdl,
                                 .played_wdl = drawn.wdl.Reversed()});
    CountAgreement(game, lesson.wdl);
    game.Play(drawn.move);
    Judge(game);
  }

  void CountAgreement(RunningGame& game, const Wdl& wdl) const {
    const Color mover = game.boards.back().side_to_move();
    const bool mover_wins = options_.resign_win > 0 && wdl.win >= options_.resign_win;
    const bool other_wins = options_.resign_win > 0 && wdl.loss >= options_.resign_win;
    const Color winner = mover_wins ? mover : ~mover;
    const bool same = (mover_wins || other_wins) && game.winner == winner;
    game.winning_plies = mover_wins || other_wins ? (same ? game.winning_plies : 0) + 1 : 0;
    game.winner = winner;
    const bool drawn = options_.draw_chance > 0 && wdl.draw >= options_.draw_chance;
    game.drawn_plies = drawn ? game.drawn_plies + 1 : 0;
  }

  // Gives the game a result when it is over.
  void Judge(RunningGame& game) const {
    std::string& result = game.record.result;
    const Ending ending = chess::EndingOf(game.boards);
    if (ending != Ending::kNone) {
      result = ResultOf(ending, game.boards.back().side_to_move());
    } else if (game.winning_plies >= kAgreedPlies) {
      result = game.winner == Color::kWhite ? "1-0" : "0-1";
    } else if (game.drawn_plies >= kAgreedPlies) {
      result = "1/2-1/2";
    } else if (static_cast<int>(game.record.plies.size()) >= options_.max_plies) {
      result = "*";
    }
  }

  // Keeps the game until its part is complete.
  void PutAway(std::unique_ptr<RunningGame> game) {
    const int64_t part = PartOf(game->number);
    auto& waiting = waiting_[part];
    waiting.emplace(game->number, GameUnit(game->record));
    progress_.Add(1);
    const int64_t end = std::min((part + 1) * options_.part_games, options_.games);
    if (static_cast<int64_t>(waiting.size()) < end - part * options_.part_games) return;
    std::vector<Json> units;
    for (auto& [number, unit] : waiting) units.push_back(std::move(unit));
    parts_.Write(part, units);
    waiting_.erase(part);
  }

  Players players_;
  PlayOptions options_;
  std::span<const GameSoFar> openings_;
  const PartStore& parts_;
  Progress& progress_;
  RateNote rate_;
  std::vector<size_t> order_;  // Of the openings.
  int64_t next_ = 0;           // Number of the next game.
  int64_t asked_ = 0;
  std::vector<std::unique_ptr<RunningGame>> running_;
  std::map<int64_t, std::map<int64_t, Json>> waiting_;  // By part and number.
};

}  // namespace

Fields FieldsOf(PlayOptions& options) {
  Fields fields;
  fields.Add("games", options.games, "number of games", {.min = 1});
  fields.Add("seed", options.seed, "random seed");
  fields.Add("random_plies", options.random_plies, "random moves after the opening, not recorded",
             {.min = 0, .max = 100});
  fields.Add("temperature", options.temperature,
             "moves are sampled by visit fraction to the power of 1/this; 0: the best move",
             {.min = 0, .max = 100});
  fields.Add("temperature_plies", options.temperature_plies,
             "plies with --temperature; then the best move", {.min = 0});
  fields.Add("max_plies", options.max_plies, "max plies; a longer game has no result", {.min = 1});
  fields.Add("resign_win", options.resign_win,
             fmt::format("adjudicate when a side's win probability was at least this for {} plies; "
                         "0: never",
                         kAgreedPlies),
             {.min = 0, .max = 1});
  fields.Add("draw_chance", options.draw_chance,
             "adjudicate a draw when its probability was at least this for 8 plies; 0: never",
             {.min = 0, .max = 1});
  fields.Add("part_games", options.part_games, "games of a part, the unit of resuming", {.min = 1});
  return fields;
}

std::vector<GameSoFar> ReadOpenings(const std::vector<std::string>& paths, SkipCounter& skipped) {
  std::vector<GameSoFar> openings;
  ForEachGame(paths, skipped, [&](const SourceGame& source) {
    std::vector<Board> boards = {source.game.start};
    for (chess::Move move : source.game.moves) boards.push_back(boards.back().After(move));
    if (chess::EndingOf(boards) == Ending::kNone) {
      openings.push_back(source.game);
    } else {
      skipped.AddAndWarn("the game is over", {.file = source.place});
    }
    return true;
  });
  if (openings.empty() && !paths.empty()) {
    throw Error("{}: no usable opening: {}", fmt::join(paths, ", "), skipped.Text());
  }
  return openings;
}

int64_t PlayGames(const Players& players, const PlayOptions& options,
                  std::span<const GameSoFar> openings, const PartStore& parts, Progress& progress) {
  return Tournament(players, options, openings, parts, progress).Run();
}

}  // namespace kibitz::oracles
