#include "oracles/records/wdl_model.h"

#include <algorithm>
#include <cmath>

namespace kibitz::oracles {
namespace {

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

Fields FieldsOf(WdlModel& model) {
  Fields fields;
  fields.Add("even_centipawns", model.even_centipawns,
             "centipawns at which a win has probability 1/2, for engines without UCI_ShowWDL",
             {.min = 0, .max = 10000});
  fields.Add("spread_centipawns", model.spread_centipawns,
             "scale of the logistic curve around it, in centipawns", {.min = 1, .max = 10000});
  return fields;
}

Wdl WdlOf(const MoverScore& score, const WdlModel& model) {
  if (score.wdl) {
    const auto [win, draw, loss] = *score.wdl;
    const double sum = win + draw + loss;
    if (win >= 0 && draw >= 0 && loss >= 0 && sum > 0) return {win / sum, draw / sum, loss / sum};
  }
  if (score.mate) return score.mate->wins ? Wdl{1, 0, 0} : Wdl{0, 0, 1};
  const double centipawns = score.centipawns.value_or(0);
  const auto chance = [&model](double for_us) {
    return Logistic((for_us - model.even_centipawns) / model.spread_centipawns);
  };
  const double win = chance(centipawns);
  const double loss = std::min(chance(-centipawns), 1 - win);
  return {win, 1 - win - loss, loss};
}

Wdl WdlOfEnding(bool checkmate) { return checkmate ? Wdl{0, 0, 1} : Wdl{0, 1, 0}; }

double AsCentipawns(const MoverScore& score) {
  if (!score.mate) return score.centipawns.value_or(0);
  const double size = 32000 - 100.0 * std::min(score.mate->moves, 200);
  return score.mate->wins ? size : -size;
}

}  // namespace kibitz::oracles
