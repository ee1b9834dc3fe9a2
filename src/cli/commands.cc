#include "cli/commands.h"

namespace kibitz::cli {

std::vector<Command> AllCommands() {
  return {ChessShow(),       ChessMoves(),     ChessPerft(),     ChessPgn(),     FileShow(),
          FileConvert(),     DecoderVocab(),   DecoderTokens(),  DecoderDump(),  DecoderPretrain(),
          DecoderFinetune(), DecoderMigrate(), DecoderPredict(), DecoderThink(), Uci(),
          TrainCheck(),      TrainPlot(),      Version(),        Completion()};
}

}  // namespace kibitz::cli
