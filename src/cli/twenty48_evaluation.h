// The evaluation function that a 2048 command's expectimax searches with: the option --oracle.
#pragma once

#include <memory>
#include <string>

#include "oracles/twenty48/afterstate_value.h"

namespace kibitz::cli {

// Of the option, in every command that takes it.
inline constexpr char kOracleHelp[] =
    "evaluation of the expectimax: 'heuristic', 'snake', or the file of an n-tuple network";

// "" is the heuristic. Throws Error; Error::Usage where there is no such file.
std::unique_ptr<oracles::AfterstateValue> OpenEvaluation(const std::string& oracle);

}  // namespace kibitz::cli
