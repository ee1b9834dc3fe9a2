#include "cli/twenty48_judge.h"

#include "oracles/twenty48/ntuple.h"
#include "oracles/twenty48/row_heuristic.h"
#include "oracles/twenty48/snake_heuristic.h"

namespace kibitz::cli {

std::unique_ptr<oracles::AfterstateValue> OpenJudge(const std::string& tables) {
  if (tables.empty() || tables == "heuristic") return std::make_unique<oracles::RowHeuristic>();
  if (tables == "snake") return std::make_unique<oracles::SnakeHeuristic>();
  return std::make_unique<oracles::NTupleNetwork>(oracles::NTupleNetwork::Load(tables));
}

}  // namespace kibitz::cli
