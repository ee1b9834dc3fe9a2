// All commands of the program, in the order the help lists them.
#pragma once

#include <vector>

#include "cli/command.h"

namespace kibitz::cli {

Command ChessShow();
Command ChessMoves();
Command ChessPerft();
Command ChessPgn();
Command FileShow();
Command FileConvert();
Command DataCheck();
Command DecoderVocab();
Command DecoderTokens();
Command DecoderDump();
Command DecoderMigrate();
Command DecoderWiden();
Command DecoderPriors();
Command DecoderVotes();
Command DecoderExport();
Command DecoderPredict();
Command DecoderThink();
Command OracleGames();
Command OracleVariations();
Command OracleEvals();
Command OraclePgn();
Command OracleLc0();
Command Play();
Command Uci();
Command Serve();
Command OracleSearch();
Command ArenaMatch();
Command ArenaSeries();
Command ArenaTournament();
Command ArenaLadder();
Command ArenaPuzzles();
Command ArenaPositions();
Command ArenaThinking();
Command ArenaOpenings();
Command Twenty48Oracle();
Command Twenty48Generate();
Command Twenty48Pack();
Command Twenty48Merge();
Command Twenty48Inspect();
Command Twenty48Export();
Command Twenty48Play();
Command Twenty48Eval();
Command PolicyPrecompute();
Command PolicyMerge();
Command PolicyExport();
Command PolicyVocab();
Command PolicyVerify();
Command PolicyLabels();
Command PolicyEval();
Command PolicyPredict();
Command TrainPlot();
Command Version();
Command Completion();

std::vector<Command> AllCommands();

}  // namespace kibitz::cli
