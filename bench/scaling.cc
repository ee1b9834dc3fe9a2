// Two ranks of one thread against one rank of one thread, each bound to a core: training of a
// decoder where computing dominates, and precompute. Also the share of the time that ranks wait for
// each other.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "bench/bench.h"
#include "io/bytes/byte_sink.h"
#include "io/bytes/byte_source.h"
#include "tests/support/job.h"
#include "tests/support/policy_rows.h"

namespace kibitz::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Words;

constexpr double kTrainingRatio = 1.7;
constexpr double kPrecomputeRatio = 1.4;  // At these few rows; 60 million have 1.8.
constexpr double kOfSeparate = 0.9;       // Where two cores are not twice as fast as one.
constexpr int kSteps = 6;
constexpr size_t kFrameText = 16 << 20;
constexpr int kFirstSteps = 2;  // Not counted: threads start, buffers grow.

// Of a command for each entry, all at once; throws when one fails.
double SecondsOfAll(const std::vector<Words>& commands) {
  const Timer timer;
  std::vector<std::future<testing::Ran>> running;
  for (const Words& words : commands) {
    running.push_back(std::async(std::launch::async, [&] { return testing::RunCommand(words); }));
  }
  for (auto& future : running) {
    const testing::Ran ran = future.get();
    if (ran.code != 0) throw std::runtime_error(ran.err);
  }
  return timer.Seconds();
}

Words Ranks(int ranks, const Words& words) {
  return testing::Joined({"mpirun", "--allow-run-as-root", "--mca", "plm", "isolated", "--bind-to",
                          "core", "-n", std::to_string(ranks)},
                         words);
}

struct Training {
  double rate = 0;     // Tokens a second, of all ranks.
  double waiting = 0;  // Share of the time.
};

Training Train(int ranks, const std::string& folder) {
  const std::string run = fmt::format("ranks-{}", ranks);
  const std::string data = testing::SourcePath("examples/decoder/");
  fs::remove_all(folder + "/" + run);
  Words words = {testing::ProgramPath("kibitz"),
                 "decoder",
                 "finetune",
                 "--pretrain-parquet-dir",
                 data + "games.parquet",
                 "--variation-parquet-dir",
                 data + "searches.parquet",
                 "--run-name",
                 run,
                 "--checkpoint-dir",
                 folder};
  const std::string options = fmt::format(
      "--embed-dim 192 --num-heads 6 --num-layers 4 --d-ff 288 --model.max-seq-len 512 "
      "--data.max-seq-len 512 --variation-ratio 0.5 --num-epochs 0 --save-every-n-steps 1000 "
      "--log-every-n-steps {} --max-steps {} --batch-size 8 --threads 1 --quiet",
      kFirstSteps, kSteps);
  for (std::string_view word : SplitWords(options)) words.emplace_back(word);
  SecondsOfAll({Ranks(ranks, words)});
  std::ifstream file(folder + "/" + run + "/timing.jsonl");
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  const auto tokens = [](const json& line) {
    for (const auto& [name, value] : line.items()) {
      if (name.ends_with("_per_second")) return value.get<double>() * line["seconds"].get<double>();
    }
    return 0.0;
  };
  const json& first = lines.front();
  const json& last = lines.back();
  return {(tokens(last) - tokens(first)) /
              (last["seconds"].get<double>() - first["seconds"].get<double>()),
          last.value("communication_share", 0.0)};
}

struct Precomputed {
  double seconds = 0;
  uint64_t signature = 0;
};

Words PrecomputeTo(const std::string& out, const std::string& rows) {
  fs::remove_all(out);
  return {testing::ProgramPath("kibitz"),
          "policy",
          "precompute",
          rows,
          "--out",
          out,
          "--threads",
          "1",
          "--memory",
          "512M",
          "--quiet"};
}

Precomputed Precompute(int ranks, const std::string& rows, const std::string& folder) {
  const std::string out = folder + "/precompute-ranks";
  Precomputed done;
  done.seconds = SecondsOfAll({Ranks(ranks, PrecomputeTo(out, rows))});
  Signature signature;
  signature.Add(testing::ReadWhole(out + "/manifest.json"));
  done.signature = signature.value();
  fs::remove_all(out);
  return done;
}

// How much faster two processes on a core each are than one, with nothing to share.
double SeparateRatio(double alone, const std::string& rows, const std::string& folder) {
  std::vector<Words> commands;
  for (const char* core : {"0", "1"}) {
    commands.push_back(testing::Joined({"taskset", "-c", core},
                                       PrecomputeTo(folder + "/precompute-core" + core, rows)));
  }
  const double seconds = SecondsOfAll(commands);
  for (const char* core : {"0", "1"}) fs::remove_all(folder + "/precompute-core" + core);
  return 2 * alone / seconds;
}

void MeasureTraining(Bench& bench) {
  const Training one = Train(1, MadeDataFolder());
  const Training two = Train(2, MadeDataFolder());
  bench.Report({.name = "training, 2 ranks",
                .value = two.rate,
                .unit = "tokens/s",
                .yardstick = one.rate,
                .yardstick_name = "1 rank",
                .signature = 0,
                .promised_ratio = kTrainingRatio});
  bench.Say(
      fmt::format("  {:.1f}% of the time spent waiting for the other rank", 100 * two.waiting));
}

// The same lines in frames of some megabytes, as pzstd writes them.
void CutIntoFrames(const std::string& from, const std::string& to) {
  const auto source = io::OpenBytes(from);
  std::string text(kFrameText, '\0');
  std::ofstream out(to + ".part", std::ios::binary);
  while (true) {
    size_t filled = 0;
    while (filled < text.size()) {
      const size_t count = source->Read(text.data() + filled, text.size() - filled);
      if (count == 0) break;
      filled += count;
    }
    if (filled == 0) break;
    io::ByteSink frame(to + ".frame.zst", {.level = 1});
    frame.Write({text.data(), filled});
    frame.Commit();
    out << testing::ReadWhole(to + ".frame.zst");
  }
  out.close();
  fs::remove(to + ".frame.zst");
  fs::rename(to + ".part", to);
}

// Parquet; lines in many frames, and in one, which a rank unpacks for all.
void MeasurePrecompute(Bench& bench, uint64_t rows) {
  const std::string stem = fmt::format("{}/evaluations-v2-{}", MadeDataFolder(), rows);
  if (!fs::exists(stem + ".parquet") || !fs::exists(stem + ".jsonl.zst")) {
    bench.Say(fmt::format("writing {} rows to {}.* once", rows, stem));
    testing::WriteEvaluations({.rows = rows, .positions = rows * 2 / 5}, stem + ".parquet",
                              stem + ".jsonl.zst");
  }
  if (!fs::exists(stem + "-frames.jsonl.zst")) {
    CutIntoFrames(stem + ".jsonl.zst", stem + "-frames.jsonl.zst");
  }
  struct Input {
    std::string name;
    std::string path;
    bool promised;
  };
  for (const Input& input : {Input{"Parquet", stem + ".parquet", true},
                             Input{"jsonl.zst of many frames", stem + "-frames.jsonl.zst", false},
                             Input{"jsonl.zst of one frame", stem + ".jsonl.zst", false}}) {
    const Precomputed one = Precompute(1, input.path, MadeDataFolder());
    const Precomputed two = Precompute(2, input.path, MadeDataFolder());
    if (one.signature != two.signature) bench.Fail("2 ranks give another data set");
    const double most = SeparateRatio(one.seconds, input.path, MadeDataFolder());
    bench.Report(
        {.name = "precompute of " + input.name,
         .value = static_cast<double>(rows) / two.seconds,
         .unit = "rows/s",
         .yardstick = static_cast<double>(rows) / one.seconds,
         .yardstick_name = "1 rank",
         .signature = two.signature,
         .promised_ratio = input.promised && !bench.quick()
                               ? std::optional(std::min(kPrecomputeRatio, kOfSeparate * most))
                               : std::nullopt});
    bench.Say(fmt::format("  two separate processes at once: {:.2f}x", most));
  }
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  using namespace kibitz;
  bench::Bench bench("scaling", argc, argv);
  if (!testing::HasMpirun()) {
    bench.Say("skipped: mpirun (Debian: openmpi-bin) is not installed");
    return 0;
  }
  bench::MeasureTraining(bench);
  bench::MeasurePrecompute(bench, bench.quick() ? 1'000'000 : 4'000'000);
  return bench.Finish();
}
