// How fast a table of evaluations becomes a data set, and in how much memory: 20 million rows of 8
// million positions, made once, from Parquet and from JSON lines.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "bench/bench.h"
#include "students/policy/data/precompute.h"
#include "tests/support/policy_rows.h"

namespace kibitz::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kParquetRows = 1e6;  // A second, on two cores.
constexpr double kJsonRows = 7e5;
constexpr uint64_t kMemory = uint64_t{1} << 30;
constexpr double kLichessRows = 844e6;

struct Files {
  std::string parquet;
  std::string jsonl;
};

// Made once; the names tell what is in them.
Files MakeFiles(Bench& bench, uint64_t rows) {
  const std::string stem = fmt::format("{}/evaluations-v2-{}", MadeDataFolder(), rows);
  Files files = {stem + ".parquet", stem + ".jsonl.zst"};
  if (!fs::exists(files.parquet) || !fs::exists(files.jsonl)) {
    bench.Say(fmt::format("writing {} rows to {}.* once", rows, stem));
    testing::WriteEvaluations({.rows = rows, .positions = rows * 2 / 5}, files.parquet,
                              files.jsonl);
  }
  return files;
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Run {
  double seconds = 0;
  double cpu_seconds = 0;
  uint64_t rows = 0;
  uint64_t positions = 0;
  uint64_t signature = 0;
};

Run Precompute(const std::string& input, uint64_t rows) {
  const std::string out = MadeDataFolder() + "/precompute-out";
  fs::remove_all(out);
  const double cpu = CpuSeconds();
  const Timer timer;
  const policy::Manifest manifest =
      policy::Precompute({input}, out, {.memory_bytes = kMemory, .rows = rows});
  Run run{timer.Seconds(), CpuSeconds() - cpu, manifest.rows, manifest.positions(), 0};
  Signature signature;
  for (const auto& [name, state] : manifest.files) signature.Add(state.crc);
  run.signature = signature.value();
  fs::remove_all(out);
  return run;
}

void Tell(Bench& bench, const std::string& name, const Run& run, double target, bool promised) {
  const double rate = static_cast<double>(run.rows) / run.seconds;
  bench.Report({.name = fmt::format("{}, {} rows", name, HumanCount(static_cast<double>(run.rows))),
                .value = rate,
                .unit = "rows/s",
                .yardstick = target,
                .yardstick_name = "target",
                .signature = run.signature,
                .promised_ratio = promised ? std::optional<double>(1) : std::nullopt});
  bench.Say(fmt::format(
      "  {:.1f} s, {:.1f} s of processor time ({} rows/s of two cores that have "
      "nothing else to do); {} positions; 844M rows at this rate: {}",
      run.seconds, run.cpu_seconds, HumanCount(2 * static_cast<double>(run.rows) / run.cpu_seconds),
      HumanCount(static_cast<double>(run.positions)), HumanSeconds(kLichessRows / rate)));
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  using namespace kibitz;
  bench::Bench bench("precompute", argc, argv);
  SetLogLevel(LogLevel::kSilent);
  const uint64_t rows = bench.quick() ? 1'000'000 : 20'000'000;
  const bench::Files files = bench::MakeFiles(bench, rows);
  const double before = bench::ResidentMegabytes();
  for (uint64_t part : {rows / 4, rows / 2}) {
    bench::Tell(bench, "parquet", bench::Precompute(files.parquet, part), bench::kParquetRows,
                false);
  }
  const bench::Run parquet = bench::Precompute(files.parquet, 0);
  bench::Tell(bench, "parquet", parquet, bench::kParquetRows, !bench.quick());
  const bench::Run jsonl = bench::Precompute(files.jsonl, 0);
  bench::Tell(bench, "jsonl.zst", jsonl, bench::kJsonRows, !bench.quick());
  if (parquet.signature != jsonl.signature) bench.Fail("the two layouts give different data sets");
  const double peak = static_cast<double>(PeakMemory()) / (1 << 20);
  const double limit = static_cast<double>(bench::kMemory >> 20);
  bench.Report({.name = "peak memory",
                .value = peak,
                .unit = "MB",
                .yardstick = limit,
                .yardstick_name = "--memory",
                .signature = 0});
  bench.Say(fmt::format("  {:.0f} MB before the first row", before));
  if (peak > 1.1 * limit) bench.Fail("more memory than --memory and a tenth");
  return bench.Finish();
}
