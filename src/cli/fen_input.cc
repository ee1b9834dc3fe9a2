#include "cli/fen_input.h"

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"

namespace kibitz::cli {
namespace {

chess::FenReading ReadingOf(const FenInput& input) {
  return {.chess960 = input.chess960, .drop_wrong_castling = input.for_decoder};
}

}  // namespace

Fields FieldsOf(FenInput& input) {
  Fields fields;
  fields.Add("fen", input.fen, "position as FEN, 4 or 6 fields; default: the starting position",
             {.metavar = "FEN"});
  fields.Add("fens", input.fens, "many positions: a file with one FEN a line, - for standard input",
             {.metavar = "FILE"});
  if (!input.for_decoder) {
    fields.Add("chess960", input.chess960, "castling rights as in Chess960 (X-FEN, Shredder-FEN)");
  }
  return fields;
}

chess::Board BoardOf(const FenInput& input) {
  if (input.fen.empty()) return chess::Board();
  auto board = chess::ParseFen(input.fen, ReadingOf(input));
  if (!board) {
    throw Error(
        "--fen {}: {}{}", Quoted(input.fen, 120), board.reason(),
        input.for_decoder || input.chess960 || board.reason().find("Chess960") == std::string::npos
            ? ""
            : ": try --chess960");
  }
  return *board;
}

int AnswerEach(const FenInput& input,
               const std::function<nlohmann::ordered_json(const chess::Board&)>& answer) {
  if (!input.fen.empty()) throw Error::Usage("--fen and --fens exclude each other");
  std::ifstream file;
  if (input.fens != "-") {
    file.open(input.fens);
    if (!file) throw Error::System("cannot read " + input.fens);
  }
  std::istream& in = input.fens == "-" ? std::cin : file;
  int code = 0;
  std::string line;
  while (std::getline(in, line)) {
    ThrowIfInterrupted();
    const std::string_view text = Trim(line);
    if (text.empty()) continue;
    try {
      PrintJson(answer(chess::ParseFen(text, ReadingOf(input)).OrThrow("fen")));
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kFailed) throw;
      PrintJson({{"fen", text}, {"error", error.message()}});
      code = 1;
    }
  }
  return code;
}

}  // namespace kibitz::cli
