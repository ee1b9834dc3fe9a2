// The commands that kibitz-train really runs. kibitz lists the same ones and passes them on.
#pragma once

#include "cli/command.h"

namespace kibitz::cli {

Command TrainCheckHere();
Command DecoderPretrainHere();
Command DecoderFinetuneHere();
Command Twenty48TrainHere();
Command PolicyTrainHere();

}  // namespace kibitz::cli
