#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/pgn.h"
#include "games/chess/rules.h"
#include "io/bytes/byte_source.h"

namespace kibitz::cli {
namespace {

using chess::GameResult;
using chess::PgnGame;
using chess::PgnRead;
using Json = nlohmann::ordered_json;

struct PgnOptions {
  std::vector<std::string> files;
  bool variations = false;
  bool strict = false;
};

Fields FieldsOf(PgnOptions& options) {
  Fields fields;
  fields.Add("files", options.files, "PGN files, also .gz and .zst; - for standard input",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("variations", options.variations, "also read variations and check their moves");
  fields.Add("strict", options.strict, "exit with code 1 if any game is broken");
  return fields;
}

// Reads a file, compressed or not, or standard input, and tells how far it is.
class Input {
 public:
  explicit Input(const std::string& path) : name_(path == "-" ? "standard input" : path) {
    if (path != "-") source_ = io::OpenBytes(path);
  }

  const std::string& name() const { return name_; }
  uint64_t Position() const { return source_ ? source_->Position() : read_; }

  size_t Read(char* buffer, size_t size) {
    ThrowIfInterrupted();
    const size_t count = source_ ? source_->Read(buffer, size) : std::fread(buffer, 1, size, stdin);
    ThrowIfInterrupted();
    if (count == 0 && !source_ && std::ferror(stdin) != 0) {
      throw Error::System("cannot read " + name_);
    }
    read_ += count;
    return count;
  }

 private:
  std::string name_;
  std::unique_ptr<io::ByteSource> source_;  // Null: standard input.
  uint64_t read_ = 0;
};

Json MovesOf(chess::Board board, const std::vector<chess::Move>& moves) {
  Json texts = Json::array();
  for (chess::Move move : moves) {
    texts.push_back(ToText(board, move));
    board = board.After(move);
  }
  return texts;
}

Json NotesOf(const chess::Board& start, const std::vector<chess::Move>& moves,
             const std::vector<chess::PgnNote>& notes) {
  Json list = Json::array();
  chess::Board before = start;  // Before move number `made`.
  size_t made = 0;
  for (const chess::PgnNote& note : notes) {
    Json item = {{"ply", note.ply}};
    if (!note.comment.empty()) item["comment"] = note.comment;
    if (!note.nags.empty()) item["nags"] = note.nags;
    if (const auto clock = chess::ClockOf(note.comment)) item["clock"] = *clock;
    if (const auto eval = chess::EvalOf(note.comment)) {
      if (eval->centipawns) item["cp"] = *eval->centipawns;
      if (eval->mate) item["mate"] = *eval->mate;
    }
    for (; made + 1 < note.ply; ++made) before = before.After(moves[made]);
    for (const chess::PgnVariation& variation : note.variations) {
      Json line = {{"moves", MovesOf(before, variation.moves)}};
      if (!variation.notes.empty()) {
        line["notes"] = NotesOf(before, variation.moves, variation.notes);
      }
      item["variations"].push_back(std::move(line));
    }
    list.push_back(std::move(item));
  }
  return list;
}

Json Answer(const PgnGame& game) {
  Json tags = Json::object();
  for (const auto& [name, value] : game.tags) tags[name] = value;
  Json answer = {{"line", game.line},          {"tags", std::move(tags)},
                 {"fen", ToFen(game.start)},   {"result", NameOf(game.result)},
                 {"plies", game.moves.size()}, {"moves", MovesOf(game.start, game.moves)}};
  if (!game.notes.empty()) answer["notes"] = NotesOf(game.start, game.moves, game.notes);
  return answer;
}

struct Totals {
  uint64_t games = 0;
  uint64_t broken = 0;
  uint64_t moves = 0;
  std::array<uint64_t, 4> results{};  // By GameResult.
};

void PrintTotals(const Totals& totals, double seconds) {
  auto of = [&](GameResult result) { return totals.results[static_cast<size_t>(result)]; };
  fmt::print("{} games, {} moves, all legal", totals.games, totals.moves);
  fmt::print("; {} broken games skipped\n", totals.broken);
  fmt::print("1-0 {}   0-1 {}   1/2-1/2 {}   * {}\n", of(GameResult::kWhiteWins),
             of(GameResult::kBlackWins), of(GameResult::kDraw), of(GameResult::kUnknown));
  fmt::print("{:.2f} s, {} moves/s\n", seconds,
             HumanCount(static_cast<double>(totals.moves) / std::max(seconds, 1e-9)));
}

void ReadFile(const std::string& path, const PgnOptions& options, bool json, Totals& totals) {
  Input input(path);
  std::error_code no_size;
  const auto size = path == "-" ? 0 : std::filesystem::file_size(path, no_size);
  chess::PgnReader reader(
      [&input](char* buffer, size_t count) { return input.Read(buffer, count); },
      {.comments = json, .variations = options.variations});
  Progress progress("bytes", no_size ? 0 : size);
  PgnGame game;
  const auto next = [&] {
    try {
      return reader.Next(game);
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kFailed || error.message().starts_with(input.name())) throw;
      throw Error("{}, {}", input.name(), error.message());
    }
  };
  for (auto read = next(); read != PgnRead::kEnd; read = next()) {
    progress.Add(input.Position() - progress.done());
    if (read == PgnRead::kBroken) {
      const auto& problem = reader.problem();
      LogWarn("{}:{}: {}; the game that starts at line {} is skipped", input.name(), problem.line,
              problem.reason, problem.game_line);
      ++totals.broken;
      continue;
    }
    ++totals.games;
    totals.moves += game.moves.size();
    ++totals.results[static_cast<size_t>(game.result)];
    if (!json) continue;
    Json answer = Answer(game);
    if (options.files.size() > 1) answer["file"] = path;
    PrintJson(answer);
  }
}

int Run(const PgnOptions& options, const Context& context) {
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  for (const std::string& path : options.files) ReadFile(path, options, context.json, totals);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!context.json) PrintTotals(totals, seconds);
  const bool nothing = totals.games == 0 && totals.broken > 0;
  return nothing || (options.strict && totals.broken > 0) ? 1 : 0;
}

}  // namespace

Command ChessPgn() {
  return MakeCommand<PgnOptions>(
      {.name = "chess pgn",
       .group = "Chess",
       .summary = "read PGN files and check every move",
       .details =
           "Prints totals, or with --json one object for each game: tags, starting position, "
           "result,\n"
           "moves in UCI, and by ply its comments, NAGs, clocks and evaluations. A broken game is\n"
           "skipped; its file and line go to standard error. Without any sound game the exit code "
           "is 1.",
       .example = "kibitz chess pgn examples/immortal.pgn --json > games.jsonl"},
      Run);
}

}  // namespace kibitz::cli
