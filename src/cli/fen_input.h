// Positions on the command line: --fen F for one, --fens FILE for many, one a line, "-" for
// standard input; --moves for the moves played from them. FEN and EPD are both read. Every command
// that takes a position takes it this way. Answers to --fens come in the order of the file, one
// line each, so --skip with their number continues a run that was stopped.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "games/chess/board.h"

namespace kibitz::cli {

struct FenInput {
  std::string fen = {};   // Empty: the starting position.
  std::string fens = {};  // A file of FEN or EPD lines; empty: none.
  int64_t skip = 0;       // Lines of it that were answered before.
  bool chess960 = false;
  // Set by the command, not by the user: the decoder cannot represent Chess960, and its data may
  // claim castling rights that the pieces do not support; those are dropped.
  bool for_decoder = false;
};

Fields FieldsOf(FenInput& input);

// The one position of --fen. Throws Error with the reason.
chess::Board BoardOf(const FenInput& input);

// Adds --moves.
void AddMoves(Fields& fields, std::string& moves, const std::string& help);
// The moves of --moves from `start`, in UCI or SAN between blanks; move numbers ("1.", "12...") are
// skipped. Throws Error that names the first move that is not legal.
std::vector<chess::Move> MovesOf(chess::Board start, const std::string& moves);

// With --fens: prints one JSON line for each position, in order; `answer` makes it. A line that is
// not a position, or for which `answer` throws, yields {"fen", "error"}. Returns the exit code: 1
// if any line failed.
int AnswerEach(const FenInput& input,
               const std::function<nlohmann::ordered_json(const chess::Board&)>& answer);

// The same, `batch` positions at a time; `answer` returns one object for each, in order. `first` is
// the number of the first among all positions of the file, from 0.
using BatchAnswer =
    std::function<std::vector<nlohmann::ordered_json>(std::span<const chess::Board>, size_t first)>;
int AnswerInBatches(const FenInput& input, size_t batch, const BatchAnswer& answer);

// The same for answers that are ready in any order: `answer_all` takes positions until there are no
// more, and hands over each answer with the number of its position. Lines are printed in order, as
// soon as all before them are.
struct NumberedBoard {
  size_t number = 0;  // Among all positions of the file, from 0.
  chess::Board board;
};
using NextBoard = std::function<std::optional<NumberedBoard>()>;
using Answered = std::function<void(size_t number, nlohmann::ordered_json answer)>;
int AnswerInAnyOrder(const FenInput& input,
                     const std::function<void(const NextBoard&, const Answered&)>& answer_all);

}  // namespace kibitz::cli
