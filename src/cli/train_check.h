// "train check" is known to both programs: kibitz lists it and runs kibitz-train, which has torch.
#pragma once

#include "base/options.h"
#include "cli/command.h"

namespace kibitz::cli {

struct TrainCheckOptions {
  int threads = 0;
};
Fields FieldsOf(TrainCheckOptions& options);

CommandText TrainCheckText();

}  // namespace kibitz::cli
