// A tree search on the command line: which network, how it searches. Every command that searches
// takes it this way.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/options.h"
#include "nn/kernels/network_options.h"
#include "oracles/search/evaluator.h"
#include "oracles/search/search.h"

namespace kibitz::cli {

struct SearchInput {
  nn::NetworkOptions network = {};  // Any that a player can have.
  int64_t cache = 100000;           // Positions; 0: none.
  double policy_temperature = 1.359;
  bool lc0_rounding = false;
  oracles::TreeOptions tree = {.leaves = 0};  // 0: by LeavesFor.
  bool net_required = true;                   // Set by the command, not by the user.
};

Fields FieldsOf(SearchInput& input);

// The network of --net behind its cache. Throws Error.
std::shared_ptr<oracles::Evaluator> LoadEvaluator(const SearchInput& input);

// With the number of leaves set.
oracles::TreeOptions TreeOptionsOf(const SearchInput& input, int64_t visits,
                                   const oracles::Evaluator& evaluator);

}  // namespace kibitz::cli
