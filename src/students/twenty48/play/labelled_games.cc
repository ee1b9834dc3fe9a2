#include "students/twenty48/play/labelled_games.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "students/twenty48/play/seat.h"

namespace kibitz::twenty48 {
namespace {

using Clock = std::chrono::steady_clock;
using oracles::Expectimax;
using oracles::SearchResult;

// A seat with the record of its game.
struct LabelledSeat {
  Seat seat;
  Rng explore;
  oracles::RawGame record;
  Clock::time_point start = Clock::now();
};

class LabelledGames {
 public:
  LabelledGames(Player& player, const oracles::AfterstateValue& judge,
                const LabelledGamesOptions& options, std::string folder, const RecordUser& use)
      : player_(player),
        options_(options),
        folder_(std::move(folder)),
        use_(use),
        pool_(options.threads) {
    for (int i = 0; i < options.threads; ++i) {
      oracles_.push_back(std::make_unique<Expectimax>(judge, options.play.search));
    }
  }

  void Play(std::span<const int64_t> numbers) {
    while (true) {
      while (!numbers.empty() && std::ssize(seats_) < options_.side_by_side) {
        Begin(numbers.front());
        numbers = numbers.subspan(1);
      }
      if (seats_.empty()) return;
      ThrowIfInterrupted();
      PlayRound();
    }
  }

 private:
  void Begin(int64_t number) {
    oracles::RawGame record;
    record.meta.seed = oracles::GameSeed(options_.play.seed, number);
    record.meta.depth = options_.play.search.depth;
    record.meta.game_index = number;
    const StreamKey key = {.seed = record.meta.seed, .purpose = Purpose("2048 explore")};
    seats_.push_back({.seat = Seat::Take(options_.play.seed, number),
                      .explore = Rng(key),
                      .record = std::move(record)});
  }

  // A move in every game. Those that are over leave.
  void PlayRound() {
    std::vector<Board> boards;
    for (const LabelledSeat& taught : seats_) boards.push_back(taught.seat.game.board);
    const std::vector<Choice> choices = player_.Choose(boards);
    const std::vector<SearchResult> lessons = Ask(boards);
    for (size_t i = 0; i < seats_.size(); ++i) {
      LabelledSeat& taught = seats_[i];
      Game& game = taught.seat.game;
      const bool cut = options_.play.max_moves > 0 && game.moves >= options_.play.max_moves;
      if (cut || choices[i].legal == 0) {
        Finish(taught);
        continue;
      }
      taught.record.steps.push_back(oracles::StepOf(taught.record.meta.seed, game, lessons[i]));
      game.Play(MoveOf(taught, choices[i]), taught.seat.spawn);
    }
    std::erase_if(seats_, [](const LabelledSeat& taught) { return taught.seat.number < 0; });
  }

  std::vector<SearchResult> Ask(const std::vector<Board>& boards) {
    std::vector<SearchResult> lessons(boards.size());
    pool_.ParallelFor(oracles_.size(), [&](size_t thread) {
      for (size_t i = thread; i < boards.size(); i += oracles_.size()) {
        lessons[i] = oracles_[thread]->Search(boards[i]);
      }
    });
    return lessons;
  }

  Move MoveOf(LabelledSeat& taught, const Choice& choice) const {
    const double draw = taught.seat.choice.Uniform();
    if (options_.play.explore == 0 || taught.explore.Uniform() >= options_.play.explore) {
      return Drawn(choice, options_.temperature, draw);
    }
    while (true) {
      const Move move = kMoves[taught.explore.Below(4)];
      if ((choice.legal >> IndexOf(move) & 1) != 0) return move;
    }
  }

  void Finish(LabelledSeat& taught) {
    oracles::RawMeta& meta = taught.record.meta;
    oracles::TellGame(taught.seat.game, folder_, meta);
    meta.seconds = std::chrono::duration<double>(Clock::now() - taught.start).count();
    use_(taught.record);
    taught.seat.number = -1;
  }

  Player& player_;
  const LabelledGamesOptions& options_;
  std::string folder_;
  const RecordUser& use_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<Expectimax>> oracles_;  // One a thread.
  std::vector<LabelledSeat> seats_;
};

}  // namespace

void PlayLabelledGames(Player& player, const oracles::AfterstateValue& judge,
                       const LabelledGamesOptions& options, std::span<const int64_t> numbers,
                       const std::string& folder, const RecordUser& use) {
  LabelledGames(player, judge, options, folder, use).Play(numbers);
}

}  // namespace kibitz::twenty48
