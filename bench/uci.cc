// The engine as a chess program feels it: how soon the program says uciok, and how soon after
// "stop", at any moment of a thought, a network of the real size gives its move.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "bench/bench.h"
#include "games/chess/move_text.h"
#include "oracles/engines/line_process.h"
#include "students/decoder/play/player.h"
#include "uci/engine.h"

namespace kibitz::bench {
namespace {

constexpr double kMillisecondsAllowed = 50;

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

void ReportTimes(Bench& bench, const std::string& name, const std::vector<double>& milliseconds,
                 uint64_t signature) {
  for (const double share : {0.5, 0.99}) {
    const double value = Quantile(milliseconds, share);
    bench.Report({.name = fmt::format("{}, p{:.0f} of {}", name, 100 * share, milliseconds.size()),
                  .value = value,
                  .unit = "ms",
                  .yardstick = kMillisecondsAllowed,
                  .yardstick_name = "allowed",
                  .signature = signature});
    if (value > kMillisecondsAllowed) bench.Fail(name + " takes longer than allowed");
  }
}

// From the start of the process to uciok.
void BenchUciok(Bench& bench) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const std::string program = (folder / "kibitz").string();
  std::vector<double> times;
  Signature signature;
  for (int i = 0; i < (bench.quick() ? 30 : 200); ++i) {
    const Timer timer;
    oracles::LineProcess engine({.command = {program, "uci", "--threads", "1"}});
    engine.Send("uci", oracles::SecondsFromNow(10));
    while (true) {
      const auto line = engine.Read(oracles::SecondsFromNow(10));
      if (!line) throw Error("{} uci does not say uciok", program);
      if (i == 0) signature.Add(*line);
      if (*line == "uciok") break;
    }
    times.push_back(1000 * timer.Seconds());
    engine.Send("quit", oracles::SecondsFromNow(10));
    engine.WaitForEnd(oracles::SecondsFromNow(10));
  }
  ReportTimes(bench, "uciok", times, signature.value());
}

// An engine in this process, and what it said.
class Engine {
 public:
  explicit Engine(uci::LoadThinker load)
      : engine_({}, std::move(load), [this](std::string_view line) {
          const std::lock_guard lock(mutex_);
          last_ = line;
          if (line.starts_with("bestmove")) ++answers_;
          if (line == "readyok") ready_ = true;
          heard_.notify_all();
          return true;
        }) {}

  void Say(std::string_view line) { engine_.Handle(line); }
  void AwaitReady() {
    std::unique_lock lock(mutex_);
    heard_.wait(lock, [&] { return ready_; });
  }
  std::string AwaitAnswer(int number) {
    std::unique_lock lock(mutex_);
    heard_.wait(lock, [&] { return answers_ >= number; });
    return last_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable heard_;
  std::string last_;
  int answers_ = 0;
  bool ready_ = false;
  uci::Engine engine_;
};

// "go infinite", then "stop" at a random moment of the thought.
void BenchStop(Bench& bench, nn::Precision precision, std::string_view precision_name) {
  Engine engine([&](const nn::NetworkOptions&) {
    return uci::ThinkerOf(decoder::Player::Random({}, 1, {.precision = precision}));
  });
  engine.Say("isready");
  engine.AwaitReady();
  Rng rng({.seed = 1, .epoch = 0, .sample = 0, .purpose = Purpose("stop")});
  // The first second of a thought has its largest passes: the root, and a whole drafted board in
  // both streams. Random weights go on for much longer, which is checked.
  constexpr uint64_t kLongestMicroseconds = 800'000;
  std::vector<double> times;
  int legal = 0;
  const int count = bench.quick() ? 40 : 300;
  for (int i = 1; i <= count; ++i) {
    engine.Say("go infinite");
    std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(kLongestMicroseconds)));
    const Timer timer;
    engine.Say("stop");
    const std::string answer = engine.AwaitAnswer(i);
    times.push_back(1000 * timer.Seconds());
    legal += ParseMove(chess::Board(), answer.substr(9, answer.find(' ', 9) - 9)) ? 1 : 0;
  }
  const Timer timer;
  engine.Say("go movetime 1000");
  engine.AwaitAnswer(count + 1);
  if (timer.Seconds() < 1) bench.Fail("the thought ends by itself: nothing was stopped");
  if (legal != count)
    bench.Fail(fmt::format("{} of {} moves were not legal", count - legal, count));
  Signature signature;
  signature.Add(static_cast<uint64_t>(legal));
  ReportTimes(bench, fmt::format("stop, 1024/16/12/1536, {}", precision_name), times,
              signature.value());
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  using namespace kibitz;
  bench::Bench bench("uci", argc, argv);
  bench::BenchUciok(bench);
  for (const auto& [name, precision] : nn::kPrecisions) bench::BenchStop(bench, precision, name);
  return bench.Finish();
}
