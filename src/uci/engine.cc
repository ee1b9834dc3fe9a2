#include "uci/engine.h"

#include <fmt/format.h>

#include "base/text.h"
#include "games/chess/diagram.h"
#include "games/chess/fen.h"

namespace kibitz::uci {
namespace {

constexpr std::string_view kHelp =
    R"(This is a chess engine: it talks to chess programs in the language UCI. By hand:
  position startpos moves e2e4     set up a position, also 'position fen FEN'
  go                               think and play; also 'go movetime 500', 'go infinite' and 'stop'
  setoption name Mode value instinct
                                   play without variations; 'uci' lists every option
  d                                show the board
  quit)";

}  // namespace

Engine::Engine(EngineOptions options, LoadThinker load, Output::Write write)
    : options_(std::move(options)),
      output_(std::move(write)),
      searcher_(std::move(load), output_) {}

bool Engine::Handle(std::string_view line) {
  const Command command = ParseCommand(line);
  switch (command.verb) {
    case Verb::kNothing:
    case Verb::kRegister:
    case Verb::kNewGame:  // Positions have no history here: nothing is to be forgotten.
      break;
    case Verb::kUnknown:
      output_.Remark(fmt::format("unknown command {}; 'help' lists some", Quoted(Trim(line), 60)));
      break;
    case Verb::kUci:
      Introduce();
      break;
    case Verb::kDebug:
      SetDebug(command.rest);
      break;
    case Verb::kIsReady:
      searcher_.Ready(options_);
      break;
    case Verb::kSetOption:
      Set(command.rest);
      break;
    case Verb::kPosition:
      SetPosition(command.rest);
      break;
    case Verb::kGo:
      Go(command.rest);
      break;
    case Verb::kStop:
      searcher_.Stop();
      break;
    case Verb::kPonderHit:
      searcher_.PonderHit();
      break;
    case Verb::kBoard:
      ShowBoard();
      break;
    case Verb::kHelp:
      ShowHelp();
      break;
    case Verb::kQuit:
      return false;
  }
  return !output_.closed();
}

bool Engine::Finish(std::chrono::milliseconds patience) { return searcher_.Finish(patience); }

void Engine::Introduce() {
  output_.Say("id name Kibitz " KIBITZ_VERSION);
  output_.Say("id author The Kibitz authors");
  for (const std::string& line : OptionLines(options_)) output_.Say(line);
  output_.Say("uciok");
}

void Engine::SetPosition(std::string_view rest) {
  const auto board = ParsePosition(rest);
  if (board) {
    board_ = *board;
  } else {
    output_.Remark(board.reason() + "; the old position stays");
  }
}

void Engine::Go(std::string_view rest) {
  GoRequest go = ParseGo(rest, board_);
  for (const std::string& problem : go.problems) output_.Remark(problem);
  searcher_.Go({board_, std::move(go), options_, searches_++, debug_});
}

void Engine::Set(std::string_view rest) {
  const auto setting = ParseSetOption(rest);
  const std::string reason =
      setting ? SetOption(options_, setting->name, setting->value) : setting.reason();
  if (!reason.empty()) output_.Remark(reason);
}

void Engine::SetDebug(std::string_view rest) {
  const std::string_view word = Trim(rest);
  if (word == "on" || word == "off") {
    debug_ = word == "on";
  } else {
    output_.Remark(fmt::format("debug: found {}, expected on or off", Quoted(word, 20)));
  }
}

void Engine::ShowBoard() {
  const std::string picture = Diagram(board_, {.unicode = false, .last_move = {}});
  for (std::string_view line : Split(picture, '\n')) output_.Say(line);
  output_.Say("fen " + ToFen(board_));
}

void Engine::ShowHelp() {
  for (std::string_view line : Split(kHelp, '\n')) output_.Say(line);
}

}  // namespace kibitz::uci
