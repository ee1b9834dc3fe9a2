// Our perft beside the installed Stockfish's "go perft", one thread each, in turns, and every line
// of the perft suites counted and compared.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "bench/bench.h"
#include "games/chess/attacks.h"
#include "games/chess/fen.h"
#include "games/chess/perft.h"
#include "oracles/engines/line_process.h"
#include "tests/support/perft_suite.h"

namespace kibitz::bench {
namespace {

using chess::Board;
using chess::PerftLeaf;

struct Position {
  const char* name;
  const char* fen;
  int depth;
  uint64_t nodes;
};

constexpr Position kPositions[] = {
    {"start position depth 6", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 6,
     119060324},
    {"kiwipete depth 5", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 5,
     193690690},
};

// A running Stockfish that counts on request.
class Stockfish {
 public:
  explicit Stockfish(const std::string& program) : process_({.command = {program}}) {
    Say("setoption name Threads value 1");
    Say("isready");
    ReadUntil("readyok");
  }

  uint64_t Perft(const std::string& fen, int depth) {
    Say("position fen " + fen);
    Say(fmt::format("go perft {}", depth));
    const std::string line = ReadUntil("Nodes searched: ");
    return ParseUnsigned(Trim(line.substr(line.find(": ") + 2))).value_or(0);
  }

 private:
  void Say(const std::string& line) { process_.Send(line, oracles::SecondsFromNow(10)); }
  std::string ReadUntil(std::string_view start) {
    while (const auto line = process_.Read(oracles::SecondsFromNow(600))) {
      if (line->starts_with(start)) return *line;
    }
    throw Error("Stockfish hangs: '{}' was awaited", start);
  }

  oracles::LineProcess process_;
};

// In turns, so that a slow moment of the machine hits both. The figures are medians of the rounds.
void Race(Bench& bench, const Position& position, const std::string& program) {
  const Board board = chess::ParseFen(position.fen).OrThrow(position.name);
  const int rounds = bench.quick() ? 3 : 7;
  const auto nodes = static_cast<double>(position.nodes);
  std::optional<Stockfish> stockfish;
  if (!program.empty()) stockfish.emplace(program);
  std::vector<double> counting;
  std::vector<double> listing;
  std::vector<double> theirs;
  auto check = [&](uint64_t counted, const char* who) {
    if (counted != position.nodes) {
      bench.Fail(fmt::format("{}: {} counts {}, expected {}", position.name, who, counted,
                             position.nodes));
    }
  };
  for (int round = 0; round < rounds; ++round) {
    Timer list_time;
    check(Perft(board, position.depth, PerftLeaf::kList), "kibitz");
    listing.push_back(nodes / list_time.Seconds());
    if (stockfish) {
      Timer time;
      check(stockfish->Perft(position.fen, position.depth), "Stockfish");
      theirs.push_back(nodes / time.Seconds());
    }
    Timer count_time;
    check(Perft(board, position.depth, PerftLeaf::kCount), "kibitz");
    counting.push_back(nodes / count_time.Seconds());
  }
  std::optional<double> yardstick;
  if (stockfish) yardstick = Median(theirs);
  for (const bool list : {true, false}) {
    bench.Report({.name = fmt::format("{}, {}", position.name, list ? "lists" : "counts"),
                  .value = Median(list ? listing : counting),
                  .unit = "nodes/s",
                  .yardstick = yardstick,
                  .yardstick_name = "Stockfish",
                  .signature = position.nodes,
                  .promised_ratio = 1.2});
  }
}

// All lines of the suites up to a number of nodes, on all cores.
void CountSuites(Bench& bench) {
  const std::string folder = DataFolder() + "/perft";
  if (!std::filesystem::exists(folder)) {
    bench.Say(fmt::format("no suites at {}: set KIBITZ_DATA", folder));
    return;
  }
  const uint64_t max = bench.quick() ? 1000000 : 100000000;
  auto lines = testing::ReadPerftSuites(folder);
  std::erase_if(lines, [&](const auto& line) { return line.nodes > max; });
  std::vector<uint64_t> counts(lines.size());
  Timer time;
  ThreadPool pool(HardwareThreads());
  pool.ParallelFor(lines.size(),
                   [&](size_t i) { counts[i] = Perft(lines[i].board, lines[i].depth); });
  const double seconds = time.Seconds();
  Signature signature;
  uint64_t nodes = 0;
  size_t wrong = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    signature.Add(counts[i]);
    nodes += counts[i];
    if (counts[i] == lines[i].nodes) continue;
    ++wrong;
    bench.Fail(fmt::format("{}: {} depth {}: counted {}, expected {}", lines[i].place, lines[i].fen,
                           lines[i].depth, counts[i], lines[i].nodes));
  }
  bench.Report({.name = fmt::format("suites, {} lines, {} wrong", lines.size(), wrong),
                .value = static_cast<double>(nodes) / seconds,
                .unit = "nodes/s",
                .signature = signature.value()});
}

int Main(int argc, char** argv) {
  Bench bench("perft", argc, argv);
  const std::string program = oracles::FindProgram("stockfish");
  if (program.empty()) bench.Say("no Stockfish here (Debian package stockfish): no yardstick");
  bench.Say(
      fmt::format("one thread; sliders by {}; 'lists' makes the move list of every leaf as "
                  "Stockfish does, 'counts' only counts it",
                  chess::SliderIndexName()));
  for (const Position& position : kPositions) Race(bench, position, program);
  CountSuites(bench);
  return bench.Finish();
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) { return kibitz::bench::Main(argc, argv); }
