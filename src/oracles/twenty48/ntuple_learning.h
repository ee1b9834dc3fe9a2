// Trains an n-tuple network by self-play: TD learning of afterstate values (Szubert and Jaskowski,
// 2014) with temporal coherence (Beal and Smith, 1999), a learning rate per entry that falls when
// its corrections change sign.
//
//   NTupleLearner learner({.seed = 1});
//   while (learner.games() < 100'000) Show(learner.LearnGame());
//   learner.Save("tables.safetensors");   // Load() resumes from it exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/random.h"
#include "games/twenty48/spawn.h"
#include "oracles/twenty48/huge_array.h"
#include "oracles/twenty48/ntuple.h"

namespace kibitz::oracles {

struct NTupleLearningOptions {
  std::vector<std::string> patterns = DefaultPatterns();
  std::vector<std::string> stages = {};  // Tiles that begin a stage, ascending.
  uint64_t seed = 1;
  double learning_rate = 1;
  // Initial value of a board, in points. Above 0 it makes the learner explore new boards.
  double optimism = 0;
  // A game of at least this many moves is replayed from its middle, and so is the replay: late
  // boards, which few games reach, come up more often (Matsuzaki, 2017). 0: never.
  int64_t restart_from = 500;
  // Lambda of TD(lambda). A target is the next points plus a mean of the next value and the next
  // target; this is the target's share.
  double trace = 0.5;
};
Fields FieldsOf(NTupleLearningOptions& options);

class NTupleLearner {
 public:
  explicit NTupleLearner(const NTupleLearningOptions& options);
  // Resumes from a file that Save() wrote, with its options. Throws Error, also for a file with
  // weights alone.
  static NTupleLearner Load(const std::string& path);

  // Plays the next game and its replays to the end and learns from all of them. The random tiles
  // depend on the seed and the game's number alone. Returns the first game.
  twenty48::Game LearnGame();

  int64_t games() const { return games_; }
  // Moves learned from since construction, including replays.
  int64_t moves() const { return moves_; }
  const NTupleLearningOptions& options() const { return options_; }
  const NTupleNetwork& network() const { return network_; }

  // `complete`: everything that Load needs; else the weights alone, a third of the size.
  void Save(const std::string& path, bool complete = true) const;

 private:
  // Of the corrections of an entry: their sum and the sum of their absolute values.
  struct Coherence {
    float sum = 0;
    float size = 0;
  };
  struct Step {
    twenty48::Board before;
    uint64_t afterstate = 0;
    int32_t points = 0;  // Of the move to the afterstate.
  };
  // Table indices of an afterstate, by pattern, then by symmetry.
  struct Entries {
    size_t stage = 0;
    std::vector<uint32_t> at;
  };

  // Plays to the end and fills steps_.
  void Play(twenty48::Game& game, Rng& rng);
  void LearnFromSteps();
  // Computes the indices and prefetches the entries.
  void Find(uint64_t afterstate, Entries& entries) const;
  // Moves the value towards the target and returns the new value.
  float Correct(const Entries& entries, float target);

  HugeArray<Coherence>& CoherenceOf(size_t pattern, size_t stage) {
    return coherence_[stage * network_.patterns().size() + pattern];
  }
  const HugeArray<Coherence>& CoherenceOf(size_t pattern, size_t stage) const {
    return coherence_[stage * network_.patterns().size() + pattern];
  }

  NTupleLearningOptions options_;
  NTupleNetwork network_;
  std::vector<HugeArray<Coherence>> coherence_;  // By stage, then by pattern.
  int64_t games_ = 0;
  int64_t moves_ = 0;
  std::vector<Step> steps_;  // Of the game being played.
};

}  // namespace kibitz::oracles
