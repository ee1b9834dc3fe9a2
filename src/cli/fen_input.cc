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
  return AnswerInBatches(input, 1, [&](std::span<const chess::Board> boards) {
    return std::vector<nlohmann::ordered_json>{answer(boards.front())};
  });
}

namespace {

// Lines with their boards or what is wrong with them, answered together and printed in order.
class Lines {
 public:
  Lines(const FenInput& input, const BatchAnswer& answer)
      : reading_(ReadingOf(input)), answer_(answer) {}

  size_t size() const { return boards_.size(); }
  bool failed() const { return failed_; }

  void Add(std::string_view text) {
    auto board = chess::ParseFen(text, reading_);
    lines_.push_back({.text = std::string(text), .error = board ? "" : board.reason()});
    if (board) boards_.push_back(*board);
  }
  void Answer() {
    std::vector<nlohmann::ordered_json> answers;
    std::string trouble;
    try {
      if (!boards_.empty()) answers = answer_(boards_);
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kFailed) throw;
      trouble = error.message();
    }
    size_t next = 0;
    for (const Line& line : lines_) {
      const std::string& error = line.error.empty() ? trouble : line.error;
      failed_ = failed_ || !error.empty();
      if (error.empty()) {
        PrintJson(answers.at(next++));
      } else {
        PrintJson({{"fen", line.text}, {"error", error}});
      }
    }
    lines_.clear();
    boards_.clear();
  }

 private:
  struct Line {
    std::string text;
    std::string error;
  };
  chess::FenReading reading_;
  const BatchAnswer& answer_;
  std::vector<Line> lines_;
  std::vector<chess::Board> boards_;
  bool failed_ = false;
};

}  // namespace

int AnswerInBatches(const FenInput& input, size_t batch, const BatchAnswer& answer) {
  if (!input.fen.empty()) throw Error::Usage("--fen and --fens exclude each other");
  std::ifstream file;
  if (input.fens != "-") {
    file.open(input.fens);
    if (!file) throw Error::System("cannot read " + input.fens);
  }
  std::istream& in = input.fens == "-" ? std::cin : file;
  Lines lines(input, answer);
  std::string line;
  while (std::getline(in, line)) {
    ThrowIfInterrupted();
    const std::string_view text = Trim(line);
    if (text.empty()) continue;
    lines.Add(text);
    if (lines.size() == batch || (batch == 1 && lines.size() == 0)) lines.Answer();
  }
  lines.Answer();
  return lines.failed() ? 1 : 0;
}

}  // namespace kibitz::cli
