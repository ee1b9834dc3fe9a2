#include "cli/search_input.h"

#include "players/networks.h"

namespace kibitz::cli {
using oracles::Evaluator;

Fields FieldsOf(SearchInput& input) {
  Fields fields;
  fields.Add("net", input.network.path, "lc0 network (.pb.gz), decoder or policy",
             {.required = input.net_required, .metavar = "FILE"});
  fields.AddAll(FieldsOf(input.network));
  fields.Add("cache", input.cache, "entries of the evaluation cache; 0: none",
             {.min = 0, .max = 1e9});
  fields.Add("policy_temperature", input.policy_temperature,
             "softmax temperature of the policy priors", {.min = 0.01, .max = 100});
  fields.Add("lc0_rounding", input.lc0_rounding,
             "round priors as lc0 does, to reproduce its searches");
  fields.Add("leaves", input.tree.leaves,
             "leaves to gather for a batch; 0: chosen from the number of nodes",
             {.min = 0, .max = 4096});
  fields.Add("cpuct", input.tree.cpuct, "exploration constant, as CPuct in lc0", {.min = 0});
  fields.Add("cpuct_factor", input.tree.cpuct_factor,
             "growth of cpuct with visits, as CPuctFactor in lc0", {.min = 0});
  fields.Add("cpuct_base", input.tree.cpuct_base,
             "scale of that growth in visits, as CPuctBase in lc0", {.min = 1});
  fields.Add("fpu_reduction", input.tree.fpu_reduction,
             "first play urgency reduction, as FpuValue in lc0", {.min = 0});
  fields.Add("two_fold_draws", input.tree.two_fold_draws,
             "score a repetition within the search as a draw");
  fields.Add("certainty", input.tree.certainty, "propagate proven wins, losses and draws");
  fields.Add("noise", input.tree.noise, "share of Dirichlet noise in the root priors",
             {.min = 0, .max = 1});
  fields.Add("noise_alpha", input.tree.noise_alpha, "alpha of the Dirichlet noise",
             {.min = 0.001, .max = 1000});
  fields.Add("noise_seed", input.tree.seed, "random seed of the noise");
  return fields;
}

std::shared_ptr<Evaluator> LoadEvaluator(const SearchInput& input) {
  nn::NetworkOptions network = input.network;
  network.path = players::FindModel(network.path);
  return players::Networks().Evaluator({.network = network,
                                        .policy_temperature = input.policy_temperature,
                                        .lc0_rounding = input.lc0_rounding,
                                        .cache = input.cache});
}

oracles::TreeOptions TreeOptionsOf(const SearchInput& input, int64_t visits,
                                   const Evaluator& evaluator) {
  oracles::TreeOptions options = input.tree;
  if (options.leaves == 0) options.leaves = oracles::LeavesFor(visits, evaluator.batch());
  return options;
}

}  // namespace kibitz::cli
