// Scan speed of Parquet: the six columns of the Lichess evaluation database, as text and int64.
#include "bench/io_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/random.h"
#include "base/text.h"
#include "io/tables/parquet.h"

namespace kibitz::bench {
namespace {

namespace fs = std::filesystem;
using io::ColumnType;

constexpr double kTargetRows = 4e6;  // A second, on two cores.

const std::vector<io::ColumnSpec> kColumns = {
    {"fen", ColumnType::kText},     {"line", ColumnType::kText}, {"depth", ColumnType::kInt64},
    {"knodes", ColumnType::kInt64}, {"cp", ColumnType::kInt64},  {"mate", ColumnType::kInt64}};

// A rank of a board: empty squares as digits, pieces with the given chance.
void AddRank(std::string& fen, double fill, std::string_view pieces, Rng& rng) {
  int empty = 0;
  const auto flush = [&] {
    if (empty > 0) fen += static_cast<char>('0' + empty);
    empty = 0;
  };
  for (int file = 0; file < 8; ++file) {
    if (rng.Uniform() >= fill) {
      ++empty;
      continue;
    }
    flush();
    fen += pieces[rng.Below(pieces.size())];
  }
  flush();
}

// Four fields; looks like a middle game, and hardly ever comes twice.
std::string MakeFen(Rng& rng) {
  constexpr std::array<double, 8> kFill = {0.5, 0.65, 0.3, 0.2, 0.2, 0.3, 0.65, 0.5};
  constexpr std::array<std::string_view, 8> kPieces = {"rnbqkr", "pppnbq", "ppnNbq", "pPnN",
                                                       "PpNn",   "PPNnBq", "PPPNBQ", "RNBQKR"};
  std::string fen;
  for (size_t rank = 0; rank < 8; ++rank) {
    if (rank > 0) fen += '/';
    AddRank(fen, kFill[rank], kPieces[rank], rng);
  }
  constexpr std::array<std::string_view, 4> kRights = {"KQkq", "-", "kq", "-"};
  fen += rng.Below(2) == 0 ? " w " : " b ";
  fen += kRights[rng.Below(kRights.size())];
  return fen + " -";
}

// Seven to ten moves in UCI, each the step of some piece.
std::string MakeLine(Rng& rng) {
  constexpr std::array<std::array<int, 2>, 16> kSteps = {{{0, 1},
                                                          {0, 2},
                                                          {0, -1},
                                                          {1, 0},
                                                          {-1, 0},
                                                          {1, 1},
                                                          {-1, 1},
                                                          {1, -1},
                                                          {-1, -1},
                                                          {1, 2},
                                                          {2, 1},
                                                          {-1, 2},
                                                          {-2, -1},
                                                          {0, 3},
                                                          {2, 2},
                                                          {-3, 0}}};
  std::string line;
  for (uint64_t left = 7 + rng.Below(4); left > 0; --left) {
    if (!line.empty()) line += ' ';
    const auto file = static_cast<int>(rng.Below(8));
    const auto rank = static_cast<int>(rng.Below(8));
    const auto& step = kSteps[rng.Below(kSteps.size())];
    for (int part :
         {'a' + file, '1' + rank, 'a' + ((file + step[0]) & 7), '1' + ((rank + step[1]) & 7)}) {
      line += static_cast<char>(part);
    }
  }
  return line;
}

void WriteRows(const std::string& path, uint64_t rows) {
  io::ParquetWriter writer(path, kColumns);
  for (uint64_t row = 0; row < rows; ++row) {
    Rng rng({.seed = 1, .sample = row, .purpose = Purpose("bench row")});
    writer.SetText(0, MakeFen(rng));
    writer.SetText(1, MakeLine(rng));
    writer.SetInt(2, static_cast<int64_t>(18 + rng.Below(40)));
    writer.SetInt(3, static_cast<int64_t>(rng.Below(300'000)));
    const bool mate = rng.Below(12) == 0;
    const auto score = static_cast<int64_t>(rng.Below(mate ? 40 : 1000)) - (mate ? 20 : 500);
    writer.SetInt(mate ? 5 : 4, score);
    writer.EndRow();
  }
  writer.Finish();
}

// Made once; the name tells what is in it.
std::string DataFile(Bench& bench, uint64_t rows) {
  std::string path = fmt::format("{}/evals-v2-{}.parquet", MadeDataFolder(), rows);
  if (!fs::exists(path)) {
    bench.Say(fmt::format("writing {} rows to {} once", rows, path));
    const Timer timer;
    WriteRows(path, rows);
    bench.Say(fmt::format("written at {} rows/s, making them up included",
                          HumanCount(static_cast<double>(rows) / timer.Seconds())));
  }
  return path;
}

struct Scanned {
  uint64_t rows = 0;
  uint64_t sum = 0;  // Depends on every cell; the order of rows does not matter.
};

Scanned ScanAll(io::ParquetScan scan) {
  Scanned result;
  while (const io::Chunk* chunk = scan.Next()) {
    result.rows += chunk->rows;
    for (const io::Column& column : chunk->columns) {
      for (std::string_view text : column.texts) {
        result.sum += text.size() * 31 + static_cast<unsigned char>(text[text.size() / 2]);
      }
      for (int64_t value : column.ints) result.sum += static_cast<uint64_t>(value) * 0x9e3779b9;
      for (uint8_t null : column.nulls) result.sum += null;
    }
  }
  return result;
}

// The best of some runs: the file is in memory after the first, other work on the machine is not.
template <typename Scan>
void Measure(Bench& bench, const std::string& name, Scan scan) {
  Scanned scanned;
  double rate = 0;
  for (int run = 0; run < (bench.quick() ? 3 : 7); ++run) {
    const Timer timer;
    scanned = ScanAll(scan());
    rate = std::max(rate, static_cast<double>(scanned.rows) / timer.Seconds());
  }
  Signature signature;
  signature.Add(scanned.rows);
  signature.Add(scanned.sum);
  bench.Report({.name = name,
                .value = rate,
                .unit = "rows/s",
                .yardstick = kTargetRows,
                .yardstick_name = "target",
                .signature = signature.value()});
}

}  // namespace

void BenchParquet(Bench& bench) {
  const io::ParquetReader reader({DataFile(bench, bench.quick() ? 1'000'000 : 4'000'000)},
                                 {.threads = 2});
  Measure(bench, "parquet scan, 2 threads", [&] { return reader.Scan(kColumns); });
  std::vector<io::RowGroupId> order = reader.RowGroups();
  Rng({.seed = 2}).Shuffle(order);
  Measure(bench, "parquet row groups, shuffled",
          [&] { return reader.ScanRowGroups(kColumns, order); });
}

}  // namespace kibitz::bench
