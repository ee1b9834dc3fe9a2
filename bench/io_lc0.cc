// lc0's training data: unpacking and decoding rows on one core, and the whole way to Parquet. Part
// of the bench "io".
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/progress.h"
#include "base/skip_counter.h"
#include "bench/bench.h"
#include "bench/io_parts.h"
#include "oracles/lc0/training_row.h"
#include "oracles/records/lc0_records.h"

namespace kibitz::bench {
namespace {

constexpr double kRowsPromised = 100'000;  // A second and core.

std::string WholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

void BenchLc0(Bench& bench) {
  const std::string path = KIBITZ_SOURCE_DIR "/examples/lc0/game.gz";
  const std::string packed = WholeFile(path);
  const int repeats = bench.quick() ? 2000 : 10000;
  Signature signature;
  SkipCounter skipped;
  uint64_t rows = 0;
  const double seconds = SecondsOf([&] {
    for (int i = 0; i < repeats; ++i) {
      const oracles::Lc0Game game = oracles::ReadLc0Game(packed, path, {}, skipped);
      rows += game.rows;
      if (i > 0) continue;
      for (const oracles::Lc0Ply& ply : game.plies) {
        signature.Add(ply.board.key());
        signature.Add(ply.played.bits());
        signature.Add(ply.visited.size());
      }
    }
  });
  bench.Report({.name = "lc0 rows, gzip to positions",
                .value = static_cast<double>(rows) / seconds,
                .unit = "rows/s",
                .yardstick = kRowsPromised,
                .yardstick_name = "promised",
                .signature = signature.value(),
                .promised_ratio = 1});

  const std::string out = MadeDataFolder() + "/lc0.parquet";
  Progress progress("rows", 0, {.mode = Progress::Options::Mode::kSilent});
  const std::vector<std::string> files(static_cast<size_t>(repeats), path);
  oracles::Lc0Records made;
  const double written = SecondsOf([&] {
    made = oracles::MakeLc0Records(files, {.games = out, .threads = 1}, skipped, progress);
  });
  std::filesystem::remove(out);
  bench.Report({.name = "lc0 rows, files to Parquet, one decoding thread",
                .value = static_cast<double>(made.rows) / written,
                .unit = "rows/s",
                .signature = static_cast<uint64_t>(made.positions)});
}

}  // namespace kibitz::bench
