#include "uci/command.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"

namespace kibitz::uci {
namespace {

using chess::Board;

constexpr std::pair<std::string_view, Verb> kVerbs[] = {
    {"uci", Verb::kUci},
    {"debug", Verb::kDebug},
    {"isready", Verb::kIsReady},
    {"go", Verb::kGo},
    {"stop", Verb::kStop},
    {"position", Verb::kPosition},
    {"quit", Verb::kQuit},
    {"register", Verb::kRegister},
    {"setoption", Verb::kSetOption},
    {"ponderhit", Verb::kPonderHit},
    {"ucinewgame", Verb::kNewGame},
};

// Of people's own; only as the first word, for they are easily met in the middle of something.
constexpr std::pair<std::string_view, Verb> kFirstVerbs[] = {{"d", Verb::kBoard},
                                                             {"help", Verb::kHelp}};

std::optional<Verb> VerbOf(std::string_view word,
                           std::span<const std::pair<std::string_view, Verb>> verbs) {
  for (const auto& [name, verb] : verbs) {
    if (word == name) return verb;
  }
  return std::nullopt;
}

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Takes the first word off the text; "" at its end.
std::string_view TakeWord(std::string_view& text) {
  size_t start = 0;
  while (start < text.size() && IsBlank(text[start])) ++start;
  size_t end = start;
  while (end < text.size() && !IsBlank(text[end])) ++end;
  const std::string_view word = text.substr(start, end - start);
  text.remove_prefix(end);
  return word;
}

// A move in UCI; a promotion may be a capital letter, as some programs write it.
Result<chess::Move> ReadMove(const Board& board, std::string_view word) {
  return chess::ParseMove(board, word.size() == 5 ? LowerCase(word) : std::string(word));
}

// Reads "go" word by word.
class GoReader {
 public:
  GoReader(std::string_view rest, const Board& board) : words_(SplitWords(rest)), board_(board) {}

  GoRequest Read() {
    while (at_ < words_.size()) ReadField(words_[at_++]);
    return std::move(request_);
  }

 private:
  void ReadField(std::string_view key) {
    constexpr int64_t kLongest = 1'000'000'000'000;  // Thirty years: no sum of times overflows.
    constexpr int64_t kMax = 1'000'000'000;
    if (key == "infinite") request_.infinite = true;
    if (key == "ponder") request_.ponder = true;
    if (key == "movetime") Number(key, request_.movetime, 0, kLongest);
    if (key == "wtime") Number(key, request_.white_time, 0, kLongest);
    if (key == "btime") Number(key, request_.black_time, 0, kLongest);
    if (key == "winc") Number(key, request_.white_increment, 0, kLongest);
    if (key == "binc") Number(key, request_.black_increment, 0, kLongest);
    if (key == "movestogo") Number(key, request_.moves_to_go, 1, kMax);
    if (key == "depth") Number(key, request_.depth, 1, kMax);
    if (key == "nodes") Number(key, request_.nodes, 1, kMax);
    if (key == "perft") Number(key, request_.perft, 1, 20);
    if (key == "mate") {
      std::optional<int64_t> moves;
      Number(key, moves, 1, kMax);
      if (moves) request_.problems.push_back("go: mate is not searched for; it is left out");
    }
    if (key == "searchmoves") ReadMoves();
  }

  // Numbers out of range are taken as the nearest one in it: clocks do run below zero.
  void Number(std::string_view key, std::optional<int64_t>& field, int64_t min, int64_t max) {
    const std::string_view word = at_ < words_.size() ? words_[at_] : "";
    const auto number = ParseInt(word);
    if (!number) {
      request_.problems.push_back(
          fmt::format("go: {} {} is no whole number and is left out", key, Quoted(word, 20)));
      return;
    }
    ++at_;
    field = std::clamp(*number, min, max);
  }

  void ReadMoves() {
    for (; at_ < words_.size() && !IsKey(words_[at_]); ++at_) {
      const auto move = ReadMove(board_, words_[at_]);
      auto& moves = request_.search_moves;
      if (move) {
        if (std::find(moves.begin(), moves.end(), *move) == moves.end()) moves.push_back(*move);
      } else if (request_.problems.size() < 8) {
        request_.problems.push_back("go: searchmoves: " + move.reason());
      }
    }
  }

  static bool IsKey(std::string_view word) {
    constexpr std::array<std::string_view, 13> kKeys = {
        "infinite", "ponder", "movetime", "wtime",     "btime",       "winc", "binc",
        "depth",    "nodes",  "mate",     "movestogo", "searchmoves", "perft"};
    return std::find(kKeys.begin(), kKeys.end(), word) != kKeys.end();
  }

  const std::vector<std::string_view> words_;
  const Board& board_;
  size_t at_ = 0;
  GoRequest request_;
};

// Adds the moves to the game, or tells which of them is wrong.
std::string Play(oracles::GameSoFar& game, std::string_view moves) {
  Board board = game.start;
  for (std::string_view word = TakeWord(moves); !word.empty(); word = TakeWord(moves)) {
    const auto move = ReadMove(board, word);
    if (!move) return fmt::format("move {}: {}", game.moves.size() + 1, move.reason());
    game.moves.push_back(*move);
    board = board.After(*move);
  }
  return "";
}

// A FEN with the fields that programs leave out.
std::string CompletedFen(const std::vector<std::string_view>& fields) {
  constexpr std::array<std::string_view, 6> kDefaults = {"", "w", "-", "-", "0", "1"};
  std::string fen;
  for (size_t i = 0; i < std::max(fields.size(), kDefaults.size()); ++i) {
    if (i > 0) fen += ' ';
    fen += i < fields.size() ? fields[i] : kDefaults[i];
  }
  return fen;
}

Result<Board> ReadFen(std::vector<std::string_view> fields, std::vector<std::string>& problems) {
  const std::string fen = CompletedFen(fields);
  auto board = chess::ParseFen(fen, {.drop_wrong_castling = true});
  const auto other = chess::ParseFen(fen, {.chess960 = true, .drop_wrong_castling = true});
  if (other && (!board || other->castling_rooks() != board->castling_rooks())) {
    problems.push_back(
        fmt::format("position: castling {}: Chess960 is not supported, these rights are left out",
                    Quoted(fields.size() > 2 ? fields[2] : "-", 10)));
    if (!board) {
      fields[2] = "-";
      board = chess::ParseFen(CompletedFen(fields));
    }
  }
  if (!board) return Bad("{}: {}", Quoted(fen, 100), board.reason());
  return board;
}

}  // namespace

Command ParseCommand(std::string_view line) {
  std::string_view rest = line;
  std::string_view word = TakeWord(rest);
  if (word.empty()) return {};
  if (const auto verb = VerbOf(word, kFirstVerbs)) return {*verb, rest};
  for (; !word.empty(); word = TakeWord(rest)) {
    if (const auto verb = VerbOf(word, kVerbs)) return {*verb, rest};
  }
  return {Verb::kUnknown, line};
}

Result<OptionSetting> ParseSetOption(std::string_view rest) {
  std::string_view text = rest;
  if (TakeWord(text) != "name") return Bad("setoption: expected 'name NAME value VALUE'");
  OptionSetting setting;
  for (std::string_view word = TakeWord(text); !word.empty(); word = TakeWord(text)) {
    if (word == "value") {
      setting.value = Trim(text);
      break;
    }
    if (!setting.name.empty()) setting.name += ' ';
    setting.name += word;
  }
  if (setting.name.empty()) return Bad("setoption: the name is missing");
  return setting;
}

Result<PositionRequest> ParsePosition(std::string_view rest) {
  std::string_view text = rest;
  const std::string_view kind = TakeWord(text);
  PositionRequest request;
  std::string_view word = TakeWord(text);
  if (kind == "fen") {
    std::vector<std::string_view> fields;
    for (; !word.empty() && word != "moves"; word = TakeWord(text)) fields.push_back(word);
    if (fields.empty()) return Bad("position: the FEN is missing");
    auto board = ReadFen(fields, request.problems);
    if (!board) return Bad("position: {}", board.reason());
    request.game.start = *board;
  } else if (kind != "startpos") {
    return Bad("position: found {}, expected startpos or fen", Quoted(kind, 20));
  } else if (!word.empty() && word != "moves") {
    return Bad("position: found {} behind startpos, expected moves", Quoted(word, 20));
  }
  const std::string reason = Play(request.game, text);
  if (!reason.empty()) return Bad("position: {}", reason);
  return request;
}

GoRequest ParseGo(std::string_view rest, const Board& board) {
  return GoReader(rest, board).Read();
}

}  // namespace kibitz::uci
