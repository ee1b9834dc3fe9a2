#include "cli/train_check.h"

#include "cli/commands.h"
#include "cli/sibling.h"

namespace kibitz::cli {

Fields FieldsOf(TrainCheckOptions& options) {
  Fields fields;
  fields.Add("threads", options.threads, "threads; 0 = all cores", {.min = 0, .max = 1024});
  return fields;
}

CommandText TrainCheckText() {
  return {.name = "train check",
          .group = "Training",
          .summary = "whether libtorch is set up well on this machine",
          .details =
              "Measures a matrix product: a missing OpenBLAS makes training a hundred times\n"
              "slower and shows here first.",
          .example = "kibitz train check"};
}

Command TrainCheck() { return RunBySibling<TrainCheckOptions>(TrainCheckText()); }

}  // namespace kibitz::cli
