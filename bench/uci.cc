// The engine as a chess program feels it: how soon the program says uciok, how soon after "stop",
// at any moment of a thought, a network of the real size gives its move, and by how much it
// overruns "movetime".
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
#include "players/decoder_player.h"
#include "students/decoder/play/player.h"
#include "uci/engine.h"

namespace kibitz::bench {
namespace {

constexpr double kUciokAllowed = 50;    // Milliseconds.
constexpr double kStopAllowed = 20;     // After "stop".
constexpr double kOverrunAllowed = 10;  // Beyond "movetime".

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

void ReportTimes(Bench& bench, const std::string& name, const std::vector<double>& milliseconds,
                 double allowed, uint64_t signature) {
  for (const double share : {0.5, 0.99}) {
    const double value = Quantile(milliseconds, share);
    bench.Report({.name = fmt::format("{}, p{:.0f} of {}", name, 100 * share, milliseconds.size()),
                  .value = value,
                  .unit = "ms",
                  .yardstick = allowed,
                  .yardstick_name = "allowed",
                  .signature = signature});
    if (value > allowed) bench.Fail(name + " takes longer than allowed");
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
    oracles::LineProcess engine({.command = {program, "uci", "negamax"}});
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
  ReportTimes(bench, "uciok", times, kUciokAllowed, signature.value());
}

// An engine in this process, and what it said.
class Engine {
 public:
  // The name is of no player of ours: `make` makes it.
  explicit Engine(uci::MakePlayer make)
      : engine_({.player = {.kind = "random"}}, std::move(make), [this](std::string_view line) {
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
  int answers() {
    const std::lock_guard lock(mutex_);
    return answers_;
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

// A network of the real size that thinks on and on: its weights are random.
Engine RealSize(nn::Precision precision) {
  return Engine([precision](const players::PlayerName&) {
    return std::make_unique<players::DecoderPlayer>(
        decoder::Player::Random({}, 1, {.precision = precision}), "random weights",
        players::DecoderPlayerOptions{.legal = false});
  });
}

bool IsLegalAnswer(const std::string& answer) {
  return static_cast<bool>(ParseMove(chess::Board(), answer.substr(9, answer.find(' ', 9) - 9)));
}

// "go infinite", then "stop" at a random moment: within the first 20 ms, when memory is touched
// first, or within the first 800 ms, which have the largest passes: the root, and a whole drafted
// board in both streams.
void BenchStop(Bench& bench, Engine& engine, const std::string& precision) {
  Rng rng({.seed = 1, .epoch = 0, .sample = 0, .purpose = Purpose("stop")});
  for (const uint64_t longest : {20'000, 800'000}) {
    std::vector<double> times;
    int legal = 0;
    const int count = bench.quick() ? 40 : 300;
    for (int i = 0; i < count; ++i) {
      const int asked = engine.answers();
      engine.Say("go infinite");
      std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(longest)));
      const Timer timer;
      engine.Say("stop");
      const std::string answer = engine.AwaitAnswer(asked + 1);
      times.push_back(1000 * timer.Seconds());
      legal += IsLegalAnswer(answer) ? 1 : 0;
    }
    if (legal != count)
      bench.Fail(fmt::format("{} of {} moves were not legal", count - legal, count));
    Signature signature;
    signature.Add(static_cast<uint64_t>(legal));
    ReportTimes(
        bench,
        fmt::format("stop in the first {} ms, 1024/16/12/1536, {}", longest / 1000, precision),
        times, kStopAllowed, signature.value());
  }
}

// How far beyond its time a move comes.
void BenchMovetime(Bench& bench, Engine& engine, const std::string& precision) {
  std::vector<double> overruns;
  double shortest = 1e9;
  for (int i = 0; i < (bench.quick() ? 40 : 300); ++i) {
    const int milliseconds = i % 2 == 0 ? 20 : 5 + 7 * i % 200;
    const int asked = engine.answers();
    const Timer timer;
    engine.Say(fmt::format("go movetime {}", milliseconds));
    engine.AwaitAnswer(asked + 1);
    overruns.push_back(1000 * timer.Seconds() - milliseconds);
    shortest = std::min(shortest, overruns.back());
  }
  if (shortest < -1) bench.Fail("the thought ends by itself: nothing was stopped");
  Signature signature;
  signature.Add(static_cast<uint64_t>(overruns.size()));
  ReportTimes(bench, fmt::format("overrun of movetime, 1024/16/12/1536, {}", precision), overruns,
              kOverrunAllowed, signature.value());
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  using namespace kibitz;
  bench::Bench bench("uci", argc, argv);
  bench::BenchUciok(bench);
  for (const auto& [name, precision] : nn::kPrecisions) {
    bench::Engine engine = bench::RealSize(precision);
    engine.Say("isready");
    engine.AwaitReady();
    bench::BenchStop(bench, engine, std::string(name));
    bench::BenchMovetime(bench, engine, std::string(name));
  }
  return bench.Finish();
}
