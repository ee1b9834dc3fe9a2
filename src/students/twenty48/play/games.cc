#include "students/twenty48/play/games.h"

#include <algorithm>
#include <cmath>

#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "oracles/twenty48/self_play.h"
#include "students/twenty48/play/seat.h"

namespace kibitz::twenty48 {
std::vector<Game> PlayGames(Player& player, const GamesOptions& options,
                            const ChoiceListener& see) {
  std::vector<Game> done(static_cast<size_t>(options.games));
  std::vector<Seat> seats;
  int64_t next = 0;
  Progress progress("games", static_cast<uint64_t>(options.games));
  while (true) {
    while (next < options.games && std::ssize(seats) < options.side_by_side) {
      seats.push_back(Seat::Take(options.seed, next++));
    }
    if (seats.empty()) break;
    ThrowIfInterrupted();
    std::vector<Board> boards;
    for (const Seat& seat : seats) boards.push_back(seat.game.board);
    const std::vector<Choice> choices = player.Choose(boards);
    for (size_t i = 0; i < seats.size(); ++i) {
      Seat& seat = seats[i];
      if (choices[i].legal == 0) {
        done[static_cast<size_t>(seat.number)] = seat.game;
        seat.number = -1;
        progress.Add(1);
        continue;
      }
      if (see) see(boards[i], choices[i]);
      seat.game.Play(Drawn(choices[i], options.temperature, seat.choice.Uniform()), seat.spawn);
    }
    std::erase_if(seats, [](const Seat& seat) { return seat.number < 0; });
  }
  progress.Finish();
  return done;
}

std::vector<Game> PlayGames(const oracles::AfterstateValue& evaluation,
                            const oracles::ExpectimaxOptions& search, const GamesOptions& options,
                            int threads) {
  std::vector<Game> done(static_cast<size_t>(options.games));
  ThreadPool pool(threads == 0 ? HardwareThreads() : threads);
  Progress progress("games", static_cast<uint64_t>(options.games));
  pool.ParallelFor(done.size(), [&](size_t i) {
    oracles::Expectimax expectimax(evaluation, search);
    done[i] = oracles::PlayGame(expectimax, {.search = search, .seed = options.seed},
                                static_cast<int64_t>(i),
                                [](const Game&, const oracles::SearchResult&) {});
    progress.Add(1);
  });
  progress.Finish();
  return done;
}

GameFigures FiguresOf(std::span<const Game> games) {
  GameFigures figures;
  figures.games = std::ssize(games);
  for (int rank = 9; rank <= 16; ++rank) figures.reached[TileOf(rank)] = 0;
  if (games.empty()) return figures;
  const auto count = static_cast<double>(games.size());
  std::vector<int64_t> scores;
  for (const Game& game : games) {
    scores.push_back(game.score);
    figures.moves += game.moves;
    figures.mean += static_cast<double>(game.score) / count;
    for (auto& [tile, share] : figures.reached) {
      if (TileOf(game.board.MaxRank()) >= tile) share += 1 / count;
    }
  }
  double squares = 0;
  for (int64_t score : scores) squares += std::pow(static_cast<double>(score) - figures.mean, 2);
  if (count > 1) figures.error = 1.96 * std::sqrt(squares / (count - 1) / count);
  std::ranges::sort(scores);
  const size_t middle = scores.size() / 2;
  figures.median = scores.size() % 2 == 1
                       ? static_cast<double>(scores[middle])
                       : static_cast<double>(scores[middle - 1] + scores[middle]) / 2;
  figures.best = scores.back();
  return figures;
}

}  // namespace kibitz::twenty48
