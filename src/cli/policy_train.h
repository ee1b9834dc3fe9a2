// "policy train" is known to both programs: kibitz lists it and runs kibitz-train, which has torch.
#pragma once

#include "cli/command.h"
#include "students/policy/data/train_options.h"

namespace kibitz::cli {

CommandText PolicyTrainText();

}  // namespace kibitz::cli
