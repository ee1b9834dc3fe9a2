#include "cli/commands.h"

namespace kibitz::cli {

std::vector<Command> AllCommands() {
  return {
      ChessShow(),       ChessMoves(),       ChessPerft(),     ChessPgn(),      FileShow(),
      FileConvert(),     DecoderVocab(),     DecoderTokens(),  DecoderDump(),   DecoderPretrain(),
      DecoderFinetune(), DecoderMigrate(),   DecoderPredict(), DecoderThink(),  OracleSearch(),
      OracleGames(),     OracleVariations(), OracleEvals(),    OraclePgn(),     Uci(),
      Twenty48Oracle(),  Twenty48Generate(), Twenty48Pack(),   Twenty48Merge(), Twenty48Inspect(),
      Twenty48Train(),   Twenty48Export(),   Twenty48Play(),   Twenty48Eval(),  PolicyPrecompute(),
      PolicyMerge(),     PolicyExport(),     PolicyVocab(),    PolicyVerify(),  PolicyLabels(),
      PolicyTrain(),     PolicyPredict(),    TrainCheck(),     TrainPlot(),     Version(),
      Completion()};
}

}  // namespace kibitz::cli
