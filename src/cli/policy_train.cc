#include "cli/policy_train.h"

#include "cli/commands.h"
#include "cli/sibling.h"

namespace kibitz::cli {

CommandText PolicyTrainText() {
  return {
      .name = "policy train",
      .group = "Policy",
      .summary = "teach a network the moves of the evaluation database",
      .details =
          "Everything comes from the config file (YAML, TOML or JSON) and from flags, which win.\n"
          "The run's folder is training.checkpoint_dir/run_name. Where it has a checkpoint the "
          "run\n"
          "goes on from there, exactly as if it had never stopped. Ctrl-C, --max-seconds and\n"
          "--max-steps save and stop.",
      .example =
          "kibitz policy train --config configs/policy/small.toml --data-dir data "
          "--max-seconds 3600",
      .config = true};
}

Command PolicyTrain() { return RunBySibling<policy::TrainOptions>(PolicyTrainText()); }

}  // namespace kibitz::cli
