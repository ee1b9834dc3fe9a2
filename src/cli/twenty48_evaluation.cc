#include "cli/twenty48_evaluation.h"

#include <filesystem>

#include "base/error.h"
#include "oracles/twenty48/ntuple.h"
#include "oracles/twenty48/row_heuristic.h"
#include "oracles/twenty48/snake_heuristic.h"

namespace kibitz::cli {

std::unique_ptr<oracles::AfterstateValue> OpenEvaluation(const std::string& oracle) {
  if (oracle.empty() || oracle == "heuristic") return std::make_unique<oracles::RowHeuristic>();
  if (oracle == "snake") return std::make_unique<oracles::SnakeHeuristic>();
  if (!std::filesystem::exists(oracle)) {
    throw Error::Usage(
        "{}: no such oracle; expected 'heuristic', 'snake', or the file of an n-tuple "
        "network, which 'kibitz 2048 oracle --weights FILE' writes",
        oracle);
  }
  return std::make_unique<oracles::NTupleNetwork>(oracles::NTupleNetwork::Load(oracle));
}

}  // namespace kibitz::cli
