// Chances of win, draw and loss where a score is all there is: engines that do not tell chances,
// and the evaluations in PGN comments.
//
//   win = 1 / (1 + exp((even - cp) / spread)), loss the same for -cp, draw what is left.
//
// 100 centipawns are an even chance to win, as Stockfish has defined them since version 15.1. With
// a spread of 18 the chances are within 0.004 on average of those it tells itself
// (docs/TEACHERS.md).
#pragma once

#include "base/options.h"
#include "oracles/records/teacher.h"

namespace kibitz::oracles {

struct WdlModel {
  double even_centipawns = 100;  // Where win and no win are equally likely.
  double spread_centipawns = 18;
};
Fields FieldsOf(WdlModel& model);

// What the score itself tells where it does, else by the model; a mate is certain.
Wdl WdlOf(const MoverScore& score, const WdlModel& model);

// Of a position where the game is over: lost for the side to move, or drawn.
Wdl WdlOfEnding(bool checkmate);

// Mates as centipawns beyond all others, nearer ones further out: 32000 - 100 for each move.
double AsCentipawns(const MoverScore& score);

}  // namespace kibitz::oracles
