#include "cli/twenty48_train.h"

#include "cli/commands.h"
#include "cli/sibling.h"

namespace kibitz::cli {

CommandText Twenty48TrainText() {
  return {
      .name = "2048 train",
      .group = "2048",
      .summary = "teach a network the oracle's moves, in one of three ways",
      .details =
          "Everything comes from the config file (YAML, TOML or JSON) and from flags, which win;\n"
          "target.mode is binned_ev, hard_move or tsad_soft. The run's folder is\n"
          "training.checkpoint_dir/run_name. Where it has a checkpoint the run goes on from\n"
          "there, exactly as if it had never stopped. Ctrl-C, --max-seconds and --max-steps save\n"
          "and stop.",
      .example = "kibitz 2048 train --config configs/twenty48/small-tsad.toml --max-seconds 1200",
      .config = true};
}

Command Twenty48Train() { return RunBySibling<twenty48::TrainOptions>(Twenty48TrainText()); }

}  // namespace kibitz::cli
