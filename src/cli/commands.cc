#include "cli/commands.h"

#include <iterator>

#include "cli/train_commands.h"

namespace kibitz::cli {

std::vector<Command> AllCommands() {
  std::vector<Command> commands = {ChessShow(),
                                   ChessMoves(),
                                   ChessPerft(),
                                   ChessPgn(),
                                   FileShow(),
                                   FileConvert(),
                                   DataCheck(),
                                   DecoderVocab(),
                                   DecoderTokens(),
                                   DecoderDump(),
                                   DecoderMigrate(),
                                   DecoderWiden(),
                                   DecoderPriors(),
                                   DecoderVotes(),
                                   DecoderExport(),
                                   DecoderPredict(),
                                   DecoderThink(),
                                   OracleSearch(),
                                   OracleGames(),
                                   OracleVariations(),
                                   OracleEvals(),
                                   OraclePgn(),
                                   OracleLc0(),
                                   Play(),
                                   Uci(),
                                   Serve(),
                                   ArenaMatch(),
                                   ArenaSeries(),
                                   ArenaTournament(),
                                   ArenaLadder(),
                                   ArenaPuzzles(),
                                   ArenaPositions(),
                                   ArenaThinking(),
                                   ArenaOpenings(),
                                   Twenty48Oracle(),
                                   Twenty48Generate(),
                                   Twenty48Pack(),
                                   Twenty48Merge(),
                                   Twenty48Inspect(),
                                   Twenty48Export(),
                                   Twenty48Play(),
                                   Twenty48Eval(),
                                   PolicyPrecompute(),
                                   PolicyMerge(),
                                   PolicyExport(),
                                   PolicyVocab(),
                                   PolicyVerify(),
                                   PolicyLabels(),
                                   PolicyEval(),
                                   PolicyPredict(),
                                   TrainPlot(),
                                   Version(),
                                   Completion()};
  std::vector<Command> train = TrainCommandsBySibling();
  // Before "version" and "completion".
  commands.insert(commands.end() - 2, std::make_move_iterator(train.begin()),
                  std::make_move_iterator(train.end()));
  return commands;
}

}  // namespace kibitz::cli
