// The judge of 2048 boards that a command searches with, by its option.
#pragma once

#include <memory>
#include <string>

#include "oracles/twenty48/afterstate_value.h"

namespace kibitz::cli {

// "" or "heuristic", "snake", or the file of an n-tuple network. Throws Error.
std::unique_ptr<oracles::AfterstateValue> OpenJudge(const std::string& tables);

}  // namespace kibitz::cli
