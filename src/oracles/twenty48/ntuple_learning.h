// Teaching an n-tuple network by its own games: temporal differences of afterstates (Szubert and
// Jaskowski, 2014), with a rate for every entry that falls where its corrections disagree
// (temporal coherence, Beal and Smith, 1999).
//
//   NTupleLearner learner({.seed = 1});
//   while (learner.games() < 100'000) Show(learner.LearnGame());
//   learner.Save("tables.safetensors");   // Load() goes on from here, exactly.
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
  uint64_t seed = 1;
  double learning_rate = 1;
  // Points that a board is worth before anything is known of it. Above 0 what is new attracts.
  double optimism = 0;
  // A game of at least so many moves is played again from its middle, and so on with what comes of
  // that: late boards, which few games reach, are met more often (Matsuzaki, 2017). 0: never.
  int64_t restart_from = 500;
};
Fields FieldsOf(NTupleLearningOptions& options);

class NTupleLearner {
 public:
  explicit NTupleLearner(const NTupleLearningOptions& options);
  // Goes on with a file of Save(), with the options it was made with. Throws Error, also for a file
  // with weights alone.
  static NTupleLearner Load(const std::string& path);

  // Plays the next game to its end, and its restarts, and learns from all. Chance depends on the
  // seed and the game's number alone. Returns the game from the start.
  twenty48::Game LearnGame();

  int64_t games() const { return games_; }
  // Learned from since the object was made, in restarts too.
  int64_t moves() const { return moves_; }
  const NTupleLearningOptions& options() const { return options_; }
  const NTupleNetwork& network() const { return network_; }

  // With `complete` all that Load needs; else the weights alone, a third of the size.
  void Save(const std::string& path, bool complete = true) const;

 private:
  // Corrections of an entry: their sum and the sum of their sizes.
  struct Coherence {
    float sum = 0;
    float size = 0;
  };
  struct Step {
    twenty48::Board before;
    uint64_t afterstate = 0;
    int32_t points = 0;  // Of the move that led there.
  };
  // Of an afterstate in all tables, view by view of each pattern.
  using Entries = std::vector<uint32_t>;

  // Plays on to the end and keeps the steps.
  void Play(twenty48::Game& game, Rng& rng);
  void LearnFromSteps();
  // Finds the entries, and asks for their memory.
  void Find(uint64_t afterstate, Entries& entries) const;
  // Moves the value towards the target, and tells what it is now.
  float Correct(const Entries& entries, float target);

  NTupleLearningOptions options_;
  NTupleNetwork network_;
  std::vector<HugeArray<Coherence>> coherence_;  // As the network's tables.
  int64_t games_ = 0;
  int64_t moves_ = 0;
  std::vector<Step> steps_;  // Of the game being played.
};

}  // namespace kibitz::oracles
