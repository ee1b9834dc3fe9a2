// How fast the decoder's batches come out of Parquet files: games and thoughts mixed, everything
// checked, on one core. Nothing is kept between epochs, so every record is read and decoded anew.
#include <fmt/format.h>
#include <sched.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "bench/bench.h"
#include "students/decoder/data/stream.h"
#include "tests/support/decoder_records.h"

namespace kibitz::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kTargetTokens = 2e6;  // A second, on one core.

void PinToOneCore() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) throw Error::System("sched_getaffinity");
  int first = 0;
  while (!CPU_ISSET(first, &cores)) ++first;
  CPU_ZERO(&cores);
  CPU_SET(first, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) throw Error::System("sched_setaffinity");
}

// Made once; the name tells what is in it.
template <typename Write>
std::string DataFile(Bench& bench, const std::string& kind, uint64_t count, Write write) {
  std::string path = fmt::format("{}/decoder-{}-v1-{}.parquet", MadeDataFolder(), kind, count);
  if (!fs::exists(path)) {
    bench.Say(fmt::format("writing {} {} to {} once", count, kind, path));
    write(path, testing::RecordPlan{.count = count, .row_group_rows = 20480});
  }
  return path;
}

uint64_t Hash(const decoder::Batch& batch) {
  Signature signature;
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    signature.Add(static_cast<uint64_t>(batch.ids[i]) << 32 |
                  static_cast<uint32_t>(batch.board_targets[i]));
  }
  for (const decoder::MoveTarget& move : batch.moves) {
    signature.Add(static_cast<uint64_t>(move.position) << 32 | static_cast<uint32_t>(move.move));
  }
  for (const decoder::ValueTarget& value : batch.values) {
    signature.Add(static_cast<uint64_t>(value.wl_position));
    signature.Add(fmt::format("{} {}", value.wl, value.d));
  }
  return signature.value();
}

struct Drawn {
  uint64_t samples = 0;
  uint64_t tokens = 0;
  uint64_t signature = 0;
  double seconds = 0;
};

// One epoch; the signature is of its first batches, and taken outside of the time.
Drawn DrawEpoch(const decoder::Source& games, const decoder::Source& searches, double ratio) {
  constexpr size_t kSigned = 50;
  decoder::BatchStream stream(
      &games, &searches,
      {.seed = 1, .batch_size = 16, .variation_ratio = ratio, .cache_mb = 0, .epochs = 1});
  Drawn drawn;
  std::vector<decoder::Batch> first;
  const Timer timer;
  while (auto next = stream.Next()) {
    drawn.samples += static_cast<uint64_t>(next->batch.sequences());
    drawn.tokens += static_cast<uint64_t>(next->batch.tokens());
    if (first.size() < kSigned) first.push_back(std::move(next->batch));
  }
  drawn.seconds = timer.Seconds();
  Signature signature;
  for (const decoder::Batch& batch : first) signature.Add(Hash(batch));
  drawn.signature = signature.value();
  return drawn;
}

void Measure(Bench& bench, const decoder::Source& games, const decoder::Source& searches,
             double ratio) {
  Drawn best;
  for (int run = 0; run < (bench.quick() ? 2 : 5); ++run) {
    const Drawn drawn = DrawEpoch(games, searches, ratio);
    if (best.seconds == 0 || drawn.seconds < best.seconds) best = drawn;
  }
  const std::string name = fmt::format("variation_ratio {}", ratio);
  bench.Report({.name = name + ", samples",
                .value = static_cast<double>(best.samples) / best.seconds,
                .unit = "samples/s",
                .signature = best.signature});
  bench.Report({.name = name + ", tokens",
                .value = static_cast<double>(best.tokens) / best.seconds,
                .unit = "tokens/s",
                .yardstick = kTargetTokens,
                .yardstick_name = "target",
                .signature = best.signature,
                .promised_ratio = 1});
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  using namespace kibitz;
  bench::Bench bench("loader", argc, argv);
  const uint64_t scale = bench.quick() ? 1 : 5;
  const std::string games_file =
      bench::DataFile(bench, "games", 4000 * scale,
                      [](const auto& path, const auto& plan) { testing::WriteGames(path, plan); });
  const std::string searches_file = bench::DataFile(
      bench, "searches", 4000 * scale,
      [](const auto& path, const auto& plan) { testing::WriteSearches(path, plan); });
  bench::PinToOneCore();
  const bench::PeakMemory memory;
  const auto games = decoder::OpenGames({games_file}, {.skip_board_prob = 0.2});
  const auto searches = decoder::OpenSearches({searches_file}, {});
  for (double ratio : {0.2, 0.5, 1.0}) bench::Measure(bench, *games, *searches, ratio);
  bench.Say(fmt::format("memory beyond the start: {:.0f} MB", memory.ExtraMegabytes()));
  return bench.Finish();
}
