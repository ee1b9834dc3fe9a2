// Positions on the command line: --fen F for one, --fens FILE for many, one FEN a line, "-" for
// standard input. Every command that takes a position takes it this way.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "games/chess/board.h"

namespace kibitz::cli {

struct FenInput {
  std::string fen = {};   // Empty: the starting position.
  std::string fens = {};  // A file of FENs; empty: none.
  bool chess960 = false;
  // Set by the command, not by the user: for the decoder, which knows no Chess960 and whose data
  // may claim castling rights that the pieces do not support; those are dropped.
  bool for_decoder = false;
};

Fields FieldsOf(FenInput& input);

// The one position of --fen. Throws Error with the reason.
chess::Board BoardOf(const FenInput& input);

// With --fens: one JSON line for each FEN, in order; `answer` makes it. A line that is no
// position, or for which `answer` throws, is answered by {"fen", "error"}. Returns the exit code: 1
// if any line failed.
int AnswerEach(const FenInput& input,
               const std::function<nlohmann::ordered_json(const chess::Board&)>& answer);

// The same, `batch` positions at a time: answers to all of them, in order.
using BatchAnswer =
    std::function<std::vector<nlohmann::ordered_json>(std::span<const chess::Board>)>;
int AnswerInBatches(const FenInput& input, size_t batch, const BatchAnswer& answer);

}  // namespace kibitz::cli
