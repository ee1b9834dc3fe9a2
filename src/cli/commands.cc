#include "cli/commands.h"

namespace kibitz::cli {

std::vector<Command> AllCommands() {
  return {ChessShow(),      ChessMoves(),       ChessPerft(),      ChessPgn(),
          FileShow(),       FileConvert(),      DecoderVocab(),    DecoderTokens(),
          DecoderDump(),    DecoderPretrain(),  DecoderFinetune(), DecoderMigrate(),
          Twenty48Oracle(), Twenty48Generate(), TrainCheck(),      TrainPlot(),
          Version(),        Completion()};
}

}  // namespace kibitz::cli
