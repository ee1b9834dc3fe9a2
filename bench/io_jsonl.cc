// JSON lines: how fast the rows of a Lichess evaluations file come out of .jsonl.zst.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/thread_pool.h"
#include "bench/bench.h"
#include "bench/io_parts.h"
#include "io/bytes/byte_sink.h"
#include "io/tables/jsonl.h"

namespace kibitz::bench {
namespace {

constexpr double kPromisedRows = 2e6;  // PV rows a second on two cores.

std::string Square(Rng& rng) {
  return {static_cast<char>('a' + rng.Below(8)), static_cast<char>('1' + rng.Below(8))};
}

// Text of the right form and variety; io knows no chess, so that moves need not be legal.
std::string RandomFen(Rng& rng) {
  constexpr std::string_view kPieces = "pppppppprrnnbbqkPPPPPPPPRRNNBBQK";
  std::string fen;
  for (int rank = 0; rank < 8; ++rank) {
    int empty = 0;
    for (int file = 0; file < 8; ++file) {
      if (rng.Below(3) != 0) {
        ++empty;
        continue;
      }
      if (empty > 0) fen += static_cast<char>('0' + empty);
      fen += kPieces[rng.Below(kPieces.size())];
      empty = 0;
    }
    if (empty > 0) fen += static_cast<char>('0' + empty);
    fen += rank < 7 ? "/" : "";
  }
  constexpr std::array<std::string_view, 4> kCastling = {"KQkq", "-", "-", "Kk"};
  return fmt::format("{} {} {} -", fen, rng.Below(2) == 0 ? 'w' : 'b', kCastling[rng.Below(4)]);
}

// 7 to 10 moves. Lines of one position often share their beginning, as real ones do.
std::vector<std::string> RandomPv(Rng& rng, const std::vector<std::string>& earlier) {
  std::vector<std::string> moves(
      earlier.begin(), earlier.begin() + static_cast<std::ptrdiff_t>(
                                             rng.Below(std::min<size_t>(earlier.size(), 6) + 1)));
  const size_t length = 7 + rng.Below(4);
  while (moves.size() < length) moves.push_back(Square(rng) + Square(rng));
  return moves;
}

// One position: 1 to 4 evaluations of 1 to 5 PVs. Adds its PVs to `rows`.
std::string RandomLine(uint64_t index, uint64_t& rows) {
  Rng rng({.seed = 3, .sample = index, .purpose = Purpose("io_jsonl")});
  std::string line = fmt::format("{{\"fen\":\"{}\",\"evals\":[", RandomFen(rng));
  std::vector<std::string> pv;
  const uint64_t evals = 1 + rng.Below(2) * rng.Below(4);
  for (uint64_t e = 0; e < evals; ++e) {
    line += e == 0 ? "{\"pvs\":[" : ",{\"pvs\":[";
    const uint64_t pvs = 1 + rng.Below(2) * rng.Below(5);
    for (uint64_t p = 0; p < pvs; ++p, ++rows) {
      pv = RandomPv(rng, pv);
      const bool mate = rng.Below(12) == 0;
      const int64_t score = static_cast<int64_t>(rng.Below(mate ? 60 : 1600)) - (mate ? 30 : 800);
      line += fmt::format("{}{{\"{}\":{},\"line\":\"{}\"}}", p == 0 ? "" : ",",
                          mate ? "mate" : "cp", score, fmt::join(pv, " "));
    }
    line += fmt::format("],\"knodes\":{},\"depth\":{}}}", rng.Below(5'000'000), 18 + rng.Below(50));
  }
  return line + "]}\n";
}

// Makes the file once and keeps it.
std::string EvaluationsFile(const Bench& bench, uint64_t wanted_rows) {
  std::string path =
      fmt::format("{}/lichess_db_eval_{}k.jsonl.zst", MadeDataFolder(), wanted_rows / 1000);
  if (std::filesystem::exists(path)) return path;
  bench.Say(fmt::format("writing {}", path));
  io::ByteSink sink(path, {.level = 6, .threads = 2});
  uint64_t rows = 0;
  for (uint64_t i = 0; rows < wanted_rows; ++i) sink.Write(RandomLine(i, rows));
  sink.Commit();
  return path;
}

// What is read of each PV; folded so cheaply that reading is what is measured.
struct Totals {
  uint64_t rows = 0;
  uint64_t hash = 0;

  void Add(const io::JsonLine& line) {
    const io::JsonValue root = line.root();
    const std::string_view fen = root["fen"].String();
    for (const io::JsonValue eval : root["evals"].Items()) {
      const auto depth = static_cast<uint64_t>(eval["depth"].Int());
      const auto knodes = static_cast<uint64_t>(eval["knodes"].Int());
      for (const io::JsonValue pv : eval["pvs"].Items()) {
        const auto cp = pv["cp"].OptionalInt();
        const auto score = static_cast<uint64_t>(cp ? *cp : pv["mate"].Int() + 100'000);
        const std::string_view moves = pv["line"].String();
        const uint64_t row = score * 31 + depth * 1009 + knodes * 65537 + moves.size() * 7 +
                             static_cast<uint8_t>(moves[2]) + fen.size() * 131;
        hash += row * 0x9e3779b97f4a7c15;  // A sum: the same in any order.
        ++rows;
      }
    }
  }
};

void ReportRows(Bench& bench, const std::string& name, double seconds, const Totals& totals,
                std::optional<double> promised_ratio) {
  bench.Report({.name = name,
                .value = static_cast<double>(totals.rows) / seconds,
                .unit = "PV rows/s",
                .yardstick = kPromisedRows,
                .yardstick_name = "target",
                .signature = totals.hash,
                .promised_ratio = promised_ratio});
}

// Unpacking on one thread, parsing on this one.
Totals ReadWithOneParser(const std::string& path) {
  Totals totals;
  io::JsonLines lines(path);
  while (const io::JsonLine* line = lines.Next()) totals.Add(*line);
  return totals;
}

Totals ReadWithTwoParsers(const std::string& path) {
  Totals totals;
  ThreadPool pool(2);
  io::JsonLines lines(path);
  io::ForEachBatch(
      lines, pool,
      [](io::JsonLines& some) {
        Totals part;
        while (const io::JsonLine* line = some.Next()) part.Add(*line);
        return part;
      },
      [&](const Totals& part) {
        totals.rows += part.rows;
        totals.hash += part.hash;
      });
  return totals;
}

// The best of three, so that a busy moment of the machine does not count.
Totals Measure(Bench& bench, const std::string& name, std::optional<double> promised_ratio,
               const std::function<Totals()>& read) {
  double best = std::numeric_limits<double>::infinity();
  Totals totals;
  for (int i = 0; i < 3; ++i) {
    const Timer timer;
    totals = read();
    best = std::min(best, timer.Seconds());
  }
  ReportRows(bench, name, best, totals, promised_ratio);
  return totals;
}

}  // namespace

void BenchJsonl(Bench& bench) {
  const std::string path = EvaluationsFile(bench, bench.quick() ? 500'000 : 2'500'000);
  const PeakMemory memory;
  const Totals one =
      Measure(bench, "jsonl.zst, one parser", 1.0, [&] { return ReadWithOneParser(path); });
  const double megabytes = memory.ExtraMegabytes();
  const Totals two = Measure(bench, "jsonl.zst, two parsers", std::nullopt,
                             [&] { return ReadWithTwoParsers(path); });
  if (one.hash != two.hash) bench.Fail("one and two parsers read different rows");
  bench.Report({.name = "jsonl.zst, one parser, extra memory",
                .value = megabytes,
                .unit = "MB",
                .signature = one.rows});
}

}  // namespace kibitz::bench
