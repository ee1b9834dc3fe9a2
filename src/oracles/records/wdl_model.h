// Probabilities of win, draw and loss from a score alone: for engines without UCI_ShowWDL, and for
// evaluations in PGN comments.
//
//   win = 1 / (1 + exp((even - cp) / spread)), loss the same for -cp, draw what is left.
//
// At 100 centipawns a win has probability 1/2, as Stockfish defines them since version 15.1. With a
// spread of 18 the probabilities are within 0.004 on average of Stockfish's own (docs/TEACHERS.md).
#pragma once

#include "base/options.h"
#include "oracles/records/teacher.h"

namespace kibitz::oracles {

struct WdlModel {
  double even_centipawns = 100;  // Where win and no win are equally likely.
  double spread_centipawns = 18;
};
Fields FieldsOf(WdlModel& model);

// The score's own wdl where it has one, else the model's; a mate is certain.
Wdl WdlOf(const MoverScore& score, const WdlModel& model);

// Of a position where the game is over: lost for the side to move, or drawn.
Wdl WdlOfEnding(bool checkmate);

// Mates as centipawns beyond all others, nearer ones further out: 32000 - 100 for each move.
double AsCentipawns(const MoverScore& score);

}  // namespace kibitz::oracles
