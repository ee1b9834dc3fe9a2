#include "uci/engine.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "games/chess/diagram.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/perft.h"

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

Engine::Engine(EngineOptions options, MakePlayer make, Output::Write write)
    : options_(std::move(options)),
      table_(options_),
      seed_(std::random_device()()),
      output_(std::move(write)),
      searcher_(std::move(make), output_) {}

void Engine::Load(std::function<void(const std::string&)> on_failure) {
  searcher_.Load(options_, std::move(on_failure));
}

bool Engine::Handle(std::string_view line) {
  const Command command = ParseCommand(line);
  switch (command.verb) {
    case Verb::kNothing:
    case Verb::kRegister:
      break;
    case Verb::kNewGame:
      new_game_ = true;
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
  for (const std::string& line : table_.Lines()) output_.Say(line);
  output_.Say("uciok");
}

void Engine::SetPosition(std::string_view rest) {
  const auto request = ParsePosition(rest);
  if (!request) {
    game_.reset();
    output_.Remark(request.reason() + "; there is no position now");
    return;
  }
  for (const std::string& problem : request->problems) output_.Remark(problem);
  game_ = request->game;
}

void Engine::Go(std::string_view rest) {
  if (!game_) {
    searcher_.Go({.game = {}, .refused = true, .go = {}, .options = options_});
    return;
  }
  GoRequest go = ParseGo(rest, game_->Current());
  for (const std::string& problem : go.problems) output_.Remark(problem);
  if (go.perft) {
    CountMoves(static_cast<int>(*go.perft));
    return;
  }
  const uint64_t seed = options_.seed ? static_cast<uint64_t>(*options_.seed) : seed_;
  Rng rng({.seed = seed, .sample = searches_++, .purpose = Purpose("uci")});
  searcher_.Go({.game = *game_,
                .go = std::move(go),
                .options = options_,
                .seed = rng.Next(),
                .new_game = std::exchange(new_game_, false),
                .debug = debug_});
}

void Engine::CountMoves(int depth) {
  const chess::Board board = game_->Current();
  uint64_t nodes = 0;
  for (const chess::PerftMove& move : chess::PerftDivide(board, depth, {})) {
    output_.Say(fmt::format("{}: {}", ToText(board, move.move), move.nodes));
    nodes += move.nodes;
  }
  output_.Say(fmt::format("Nodes searched: {}", nodes));
}

void Engine::Set(std::string_view rest) {
  const auto setting = ParseSetOption(rest);
  const std::string before = table_.Strength();
  const std::string reason = setting ? table_.Set(setting->name, setting->value) : setting.reason();
  const std::string strength = table_.Strength();
  if (strength != before && !strength.empty()) output_.Remark(strength);
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
  const chess::Board board = game_ ? game_->Current() : chess::Board();
  const std::string picture = Diagram(board, {.unicode = false, .last_move = {}});
  for (std::string_view line : Split(picture, '\n')) output_.Say(line);
  output_.Say("fen " + ToFen(board));
}

void Engine::ShowHelp() {
  for (std::string_view line : Split(kHelp, '\n')) output_.Say(line);
}

}  // namespace kibitz::uci
