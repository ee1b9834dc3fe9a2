// "decoder pretrain" and "decoder finetune" are known to both programs: kibitz lists them and runs
// kibitz-train, which has torch.
#pragma once

#include "cli/command.h"
#include "students/decoder/data/train_options.h"

namespace kibitz::cli {

CommandText DecoderPretrainText();
CommandText DecoderFinetuneText();

}  // namespace kibitz::cli
