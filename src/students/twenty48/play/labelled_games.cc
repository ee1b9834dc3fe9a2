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
  LabelledGames(Player& player, const oracles::AfterstateValue& evaluation,
                const LabelledGamesOptions& options, std::string folder, const RecordUser& use)
      : player_(player),
        options_(options),
        folder_(std::move(folder)),
        use_(use),
        pool_(options.threads) {
    for (int i = 0; i < options.threads; ++i) {
      oracles_.push_back(std::make_unique<Expectimax>(evaluation, options.play.search));
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

  // Plays one move in every game. Finished games leave.
  void PlayRound() {
    std::vector<Board> boards;
    for (const LabelledSeat& labelled : seats_) boards.push_back(labelled.seat.game.board);
    const std::vector<Choice> choices = player_.Choose(boards);
    const std::vector<SearchResult> labels = Label(boards);
    for (size_t i = 0; i < seats_.size(); ++i) {
      LabelledSeat& labelled = seats_[i];
      Game& game = labelled.seat.game;
      const bool cut = options_.play.max_moves > 0 && game.moves >= options_.play.max_moves;
      if (cut || choices[i].legal == 0) {
        Finish(labelled);
        continue;
      }
      labelled.record.steps.push_back(oracles::StepOf(labelled.record.meta.seed, game, labels[i]));
      game.Play(MoveOf(labelled, choices[i]), labelled.seat.spawn);
    }
    std::erase_if(seats_, [](const LabelledSeat& labelled) { return labelled.seat.number < 0; });
  }

  std::vector<SearchResult> Label(const std::vector<Board>& boards) {
    std::vector<SearchResult> labels(boards.size());
    pool_.ParallelFor(oracles_.size(), [&](size_t thread) {
      for (size_t i = thread; i < boards.size(); i += oracles_.size()) {
        labels[i] = oracles_[thread]->Search(boards[i]);
      }
    });
    return labels;
  }

  Move MoveOf(LabelledSeat& labelled, const Choice& choice) const {
    const double draw = labelled.seat.choice.Uniform();
    if (options_.play.explore == 0 || labelled.explore.Uniform() >= options_.play.explore) {
      return Drawn(choice, options_.temperature, draw);
    }
    while (true) {
      const Move move = kMoves[labelled.explore.Below(4)];
      if ((choice.legal >> IndexOf(move) & 1) != 0) return move;
    }
  }

  void Finish(LabelledSeat& labelled) {
    oracles::RawMeta& meta = labelled.record.meta;
    oracles::FillResult(labelled.seat.game, folder_, meta);
    meta.seconds = std::chrono::duration<double>(Clock::now() - labelled.start).count();
    use_(labelled.record);
    labelled.seat.number = -1;
  }

  Player& player_;
  const LabelledGamesOptions& options_;
  std::string folder_;
  const RecordUser& use_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<Expectimax>> oracles_;  // One per thread.
  std::vector<LabelledSeat> seats_;
};

}  // namespace

void PlayLabelledGames(Player& player, const oracles::AfterstateValue& evaluation,
                       const LabelledGamesOptions& options, std::span<const int64_t> numbers,
                       const std::string& folder, const RecordUser& use) {
  LabelledGames(player, evaluation, options, folder, use).Play(numbers);
}

}  // namespace kibitz::twenty48
