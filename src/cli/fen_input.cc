#include "cli/fen_input.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
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
  fields.Add("skip", input.skip,
             "with --fens: skip so many positions, to continue a run that was stopped",
             {.min = 0, .metavar = "N"});
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
  return AnswerInBatches(input, 1, [&](std::span<const chess::Board> boards, size_t) {
    return std::vector<nlohmann::ordered_json>{answer(boards.front())};
  });
}

namespace {

// The lines of --fens, read one by one and printed in order when they are answered.
class Lines {
 public:
  explicit Lines(const FenInput& input)
      : reading_(ReadingOf(input)),
        skip_(input.skip),
        // On a terminal the answers themselves show the progress.
        progress_("positions", 0,
                  {.mode = isatty(STDOUT_FILENO) != 0 ? Progress::Options::Mode::kSilent
                                                      : Progress::Options::Mode::kAuto,
                   .start = static_cast<uint64_t>(input.skip)}) {
    if (!input.fen.empty()) throw Error::Usage("--fen and --fens exclude each other");
    if (input.fens == "-") return;
    file_.open(input.fens);
    if (!file_) throw Error::System("cannot read " + input.fens);
    in_ = &file_;
  }

  bool failed() const { return failed_; }

  // The next line that is a position. Lines that are none are answered here.
  std::optional<NumberedBoard> Next() {
    std::string line;
    while (std::getline(*in_, line)) {
      ThrowIfInterrupted();
      const std::string_view text = Trim(line);
      if (text.empty()) continue;
      const auto board = chess::ParseFen(text, reading_);
      const size_t number = positions_;
      positions_ += board ? 1 : 0;
      if (skip_ > 0) {
        --skip_;
        continue;
      }
      waiting_.push_back({.text = std::string(text), .number = number});
      if (board) return NumberedBoard{.number = number, .board = *board};
      Fail(waiting_.back(), board.reason());
      PrintReady();
    }
    ThrowIfInterrupted();  // Ctrl-C ends a read that waits for input.
    return std::nullopt;
  }
  void Answer(size_t number, const nlohmann::ordered_json& answer) {
    Find(number).answer = answer;
    PrintReady();
  }
  void Fail(size_t number, const std::string& reason) {
    Fail(Find(number), reason);
    PrintReady();
  }

 private:
  struct Line {
    std::string text;
    size_t number = 0;  // A position's; the next position's where the line is none.
    std::optional<nlohmann::ordered_json> answer = {};
  };

  Line& Find(size_t number) {
    return *std::ranges::find_if(
        waiting_, [&](const Line& line) { return line.number == number && !line.answer; });
  }
  void Fail(Line& line, const std::string& reason) {
    line.answer = {{"fen", line.text}, {"error", reason}};
    failed_ = true;
  }
  void PrintReady() {
    while (!waiting_.empty() && waiting_.front().answer) {
      PrintJson(*waiting_.front().answer);
      waiting_.pop_front();
      progress_.Add(1);
    }
  }

  chess::FenReading reading_;
  std::ifstream file_;
  std::istream* in_ = &std::cin;
  std::deque<Line> waiting_;  // In order; the first is not answered yet.
  size_t positions_ = 0;      // Read so far, those skipped included.
  int64_t skip_;
  bool failed_ = false;
  Progress progress_;
};

}  // namespace

int AnswerInAnyOrder(const FenInput& input,
                     const std::function<void(const NextBoard&, const Answered&)>& answer_all) {
  Lines lines(input);
  answer_all(
      [&] { return lines.Next(); },
      [&](size_t number, const nlohmann::ordered_json& answer) { lines.Answer(number, answer); });
  ThrowIfInterrupted();
  return lines.failed() ? 1 : 0;
}

int AnswerInBatches(const FenInput& input, size_t batch, const BatchAnswer& answer) {
  Lines lines(input);
  std::vector<chess::Board> boards;
  size_t first = 0;
  const auto answer_batch = [&] {
    try {
      const std::vector<nlohmann::ordered_json> answers = answer(boards, first);
      for (size_t i = 0; i < boards.size(); ++i) lines.Answer(first + i, answers.at(i));
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kFailed) throw;
      for (size_t i = 0; i < boards.size(); ++i) lines.Fail(first + i, error.message());
    }
    boards.clear();
  };
  while (const auto next = lines.Next()) {
    if (boards.empty()) first = next->number;
    boards.push_back(next->board);
    if (boards.size() == batch) answer_batch();
  }
  if (!boards.empty()) answer_batch();
  return lines.failed() ? 1 : 0;
}

}  // namespace kibitz::cli
