#include "cli/fen_input.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/san.h"

namespace kibitz::cli {
namespace {

chess::FenReading ReadingOf(const FenInput& input) {
  return {
      .chess960 = input.chess960, .drop_wrong_castling = input.for_decoder, .epd_operations = true};
}

// "12." and "12...", as PGN numbers moves; the rest of "12.e4" is the move.
std::string_view WithoutMoveNumber(std::string_view word) {
  const size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  if (digits == 0 || digits == word.size() || word[digits] != '.') return word;
  return word.substr(std::min(word.find_first_not_of('.', digits), word.size()));
}

}  // namespace

Fields FieldsOf(FenInput& input) {
  Fields fields;
  fields.Add("fen", input.fen,
             "position as FEN (4 to 6 fields) or EPD; default: the starting position",
             {.metavar = "FEN"});
  fields.Add("fens", input.fens,
             "many positions: a file with one FEN or EPD a line, - for standard input",
             {.metavar = "FILE"});
  if (!input.for_decoder) {
    fields.Add("chess960", input.chess960,
               "read castling rights as Chess960 (X-FEN, Shredder-FEN)");
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

void AddMoves(Fields& fields, std::string& moves, const std::string& help) {
  fields.Add("moves", moves, help, {.metavar = "\"MOVE MOVE ...\""});
}

std::vector<chess::Move> MovesOf(chess::Board board, const std::string& moves) {
  std::vector<chess::Move> played;
  for (std::string_view word : SplitWords(moves)) {
    word = WithoutMoveNumber(word);
    if (word.empty()) continue;
    auto move = chess::ParseMove(board, word);
    if (!move) move = chess::ParseSan(board, word);
    if (!move) throw Error("--moves: {}", move.reason());
    played.push_back(*move);
    board = board.After(*move);
  }
  return played;
}

int AnswerEach(const FenInput& input,
               const std::function<nlohmann::ordered_json(const chess::Board&)>& answer) {
  return AnswerInBatches(input, 1, [&](std::span<const chess::Board> boards) {
    return std::vector<nlohmann::ordered_json>{answer(boards.front())};
  });
}

namespace {

// Lines of --fens, each a board or the reason it is not one, answered together and printed in
// order.
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
  // On a terminal the answers themselves show the progress.
  Progress::Options shown;
  if (isatty(STDOUT_FILENO) != 0) shown.mode = Progress::Options::Mode::kSilent;
  Progress progress("positions", 0, std::move(shown));
  std::string line;
  while (std::getline(in, line)) {
    ThrowIfInterrupted();
    const std::string_view text = Trim(line);
    if (text.empty()) continue;
    lines.Add(text);
    progress.Add(1);
    if (lines.size() == batch || (batch == 1 && lines.size() == 0)) lines.Answer();
  }
  ThrowIfInterrupted();  // Ctrl-C ends a read that waits for input.
  lines.Answer();
  return lines.failed() ? 1 : 0;
}

}  // namespace kibitz::cli
