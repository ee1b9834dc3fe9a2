// Reading PGN with every move checked, on one thread, beside the plain way: write the SAN of every
// legal move and compare texts.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "bench/bench.h"
#include "games/chess/movegen.h"
#include "games/chess/pgn.h"
#include "games/chess/rules.h"
#include "games/chess/san.h"

namespace kibitz::bench {
namespace {

using chess::Board;
using chess::Move;

constexpr double kTargetMovesPerSecond = 1.5e6;

// Games of random moves: no data needed, and more odd moves than people make.
std::string RandomGames(int games) {
  std::string text;
  for (int i = 0; i < games; ++i) {
    Rng rng({.seed = 1, .sample = static_cast<uint64_t>(i), .purpose = Purpose("bench pgn")});
    text += fmt::format("[Event \"random {}\"]\n[Result \"*\"]\n\n", i);
    Board board;
    for (int ply = 0; ply < 160; ++ply) {
      const auto moves = chess::LegalMoves(board);
      if (moves.empty()) break;
      const Move move = moves[rng.Below(moves.size())];
      if (ply % 2 == 0) text += fmt::format("{}. ", ply / 2 + 1);
      text += ToSan(board, move);
      text += ply % 16 == 15 ? '\n' : ' ';
      board = board.After(move);
    }
    text += "*\n\n";
  }
  return text;
}

struct Replay {
  uint64_t moves = 0;
  uint64_t signature = 0;
  double seconds = 0;
};

Replay ReadGames(const std::string& text, int times) {
  Replay replay;
  Signature signature;
  Timer timer;
  for (int i = 0; i < times; ++i) {
    chess::PgnReader reader(chess::TextSource(text), {.comments = false});
    chess::PgnGame game;
    for (auto read = reader.Next(game); read != chess::PgnRead::kEnd; read = reader.Next(game)) {
      if (read == chess::PgnRead::kBroken) throw Error("{}", reader.problem().reason);
      replay.moves += game.moves.size();
      if (i > 0) continue;
      for (Move move : game.moves) signature.Add(move.bits());
    }
  }
  replay.seconds = timer.Seconds();
  replay.signature = signature.value();
  return replay;
}

std::optional<Move> PlainSan(const Board& board, std::string_view token) {
  for (Move move : chess::LegalMoves(board)) {
    if (ToSan(board, move) == token) return move;
  }
  return std::nullopt;
}

// Knows just the text this bench feeds it.
Replay ReadPlainly(const std::string& text, int times) {
  Replay replay;
  Signature signature;
  Timer timer;
  for (int i = 0; i < times; ++i) {
    Board board;
    for (std::string_view line : Split(text, '\n')) {
      if (line.starts_with('[')) {
        board = Board();
        continue;
      }
      for (std::string_view token : SplitWords(line)) {
        if (token.ends_with('.')) continue;
        if (token == "*" || token == "1-0" || token == "0-1" || token == "1/2-1/2") continue;
        const auto move = PlainSan(board, token);
        if (!move) throw Error("{} is not legal", token);
        board = board.After(*move);
        ++replay.moves;
        if (i == 0) signature.Add(move->bits());
      }
    }
  }
  replay.seconds = timer.Seconds();
  replay.signature = signature.value();
  return replay;
}

void Measure(Bench& bench, const std::string& name, const std::string& text) {
  const double wanted = bench.quick() ? 1.0 : 4.0;
  const Replay once = ReadGames(text, 1);
  const Replay fast = ReadGames(text, 1 + static_cast<int>(wanted / once.seconds));
  const Replay plain = ReadPlainly(text, 1);
  if (fast.signature != plain.signature) bench.Fail(name + ": the two ways read different moves");
  auto rate = [](const Replay& replay) {
    return static_cast<double>(replay.moves) / replay.seconds;
  };
  bench.Report({.name = name,
                .value = rate(fast),
                .unit = "moves/s",
                .yardstick = rate(plain),
                .yardstick_name = "plain SAN",
                .signature = fast.signature});
  bench.Report({.name = name + ", against the target",
                .value = rate(fast),
                .unit = "moves/s",
                .yardstick = kTargetMovesPerSecond,
                .yardstick_name = "target",
                .signature = fast.signature,
                .promised_ratio = 1.0});
}

int Main(int argc, char** argv) {
  Bench bench("pgn", argc, argv);
  Measure(bench, "random games", RandomGames(2000));
  const std::string folder = DataFolder() + "/games";
  if (std::filesystem::exists(folder)) {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".pgn") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      text.append(std::istreambuf_iterator<char>(in), {});
    }
    Measure(bench, "real games", text);
  }
  return bench.Finish();
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) { return kibitz::bench::Main(argc, argv); }
