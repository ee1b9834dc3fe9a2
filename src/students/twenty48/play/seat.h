// One game of many in progress, with its own random streams.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "games/twenty48/spawn.h"
#include "oracles/twenty48/self_play.h"

namespace kibitz::twenty48 {

struct Seat {
  int64_t number = 0;
  Game game;
  Rng spawn;
  Rng choice;

  // Its random tiles are those of an oracle's game of that seed and number.
  static Seat Take(uint64_t seed, int64_t number) {
    const uint64_t own = oracles::GameSeed(seed, number);
    Seat seat{.number = number,
              .game = {},
              .spawn = Rng({.seed = own, .purpose = Purpose("2048 spawn")}),
              .choice = Rng({.seed = own, .purpose = Purpose("2048 choice")})};
    seat.game = Game::Start(seat.spawn);
    return seat;
  }
};

}  // namespace kibitz::twenty48
