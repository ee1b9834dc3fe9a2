// "2048 train" is known to both programs: kibitz lists it and runs kibitz-train, which has torch.
#pragma once

#include "cli/command.h"
#include "students/twenty48/data/train_options.h"

namespace kibitz::cli {

CommandText Twenty48TrainText();

}  // namespace kibitz::cli
