// The arena without thinking: games per second, what a second thread brings, and what a move costs
// beyond the player's own work, in process and over a pipe.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "arena/match.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "bench/bench.h"
#include "oracles/engines/line_process.h"

namespace kibitz::bench {
namespace {

using arena::GameRun;
using arena::GameSetup;
using arena::MatchResult;

MatchResult Match(const std::string& first, const std::string& second, int64_t games,
                  int concurrency) {
  GameSetup setup{.command = "match",
                  .contenders = {{.name = first}, {.name = second}},
                  .openings = {.source = "named"},
                  .run = {.concurrency = concurrency}};
  GameRun run(setup);
  return arena::RunMatch(run, {.games = games}, nullptr);
}

// A thousand games, and the rates on one and two threads.
void BenchGames(Bench& bench) {
  const int64_t games = bench.quick() ? 1000 : 4000;
  std::vector<double> one;
  std::vector<double> two;
  Signature signature;
  for (int round = 0; round < 5; ++round) {
    MatchResult result;
    one.push_back(SecondsOf([&] { result = Match("random", "negamax?depth=1", games, 1); }));
    if (round == 0) signature.Add(result.ToJson().dump());
    MatchResult again;
    two.push_back(SecondsOf([&] { again = Match("random", "negamax?depth=1", games, 2); }));
    if (again.ToJson() != result.ToJson()) bench.Fail("two threads play other games than one");
  }
  const double seconds = Median(two);
  bench.Report({.name = "random against negamax(1), 2 threads",
                .value = static_cast<double>(games) / seconds,
                .unit = "games/s",
                .yardstick = 1000.0 / 60,
                .yardstick_name = "1,000 games a minute",
                .signature = signature.value(),
                .promised_ratio = 1});
  bench.Report(
      {.name = "the same, ratio of 2 threads to 1",
       .value = static_cast<double>(games) / seconds,
       .unit = "games/s",
       .yardstick = static_cast<double>(games) / Median(one),
       .yardstick_name = "1 thread",
       .signature = signature.value(),
       .promised_ratio = HardwareThreads() >= 2 ? std::optional<double>(1.8) : std::nullopt});
}

// Processor time of this process so far: what a move costs, whoever else uses the machine.
double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What a move of a player that does not think costs in a match.
void BenchOverhead(Bench& bench) {
  constexpr double kMicrosecondsAllowed = 50;
  std::vector<double> times;
  std::vector<double> wall_times;
  Signature signature;
  for (int round = 0; round < 5; ++round) {
    const double start = CpuSeconds();
    const Timer timer;
    const MatchResult result = Match("random", "random", bench.quick() ? 200 : 1000, 1);
    const auto plies = static_cast<double>(result.tally.plies());
    wall_times.push_back(1e6 * timer.Seconds() / plies);
    times.push_back(1e6 * (CpuSeconds() - start) / plies);
    if (round == 0) signature.Add(result.ToJson().dump());
  }
  const double value = Median(times);
  bench.Report({.name = "a move of 'random' in a match",
                .value = value,
                .unit = "us of a core",
                .yardstick = kMicrosecondsAllowed,
                .yardstick_name = "allowed",
                .signature = signature.value()});
  // Grows with whatever else runs on the machine: told, not judged.
  bench.Report({.name = "the same, wall time",
                .value = Median(wall_times),
                .unit = "us",
                .yardstick = kMicrosecondsAllowed,
                .yardstick_name = "allowed",
                .signature = signature.value()});
  if (value > kMicrosecondsAllowed) bench.Fail("a move costs more than allowed");
}

// Round trips with a bare pipe: the same two lines there and one back.
double BareRoundTrip(const std::string& script, int count) {
  oracles::LineProcess process({.command = {"/bin/sh", script}});
  const auto trip = [&] {
    process.Send("position startpos", oracles::SecondsFromNow(5));
    process.Send("go nodes 1", oracles::SecondsFromNow(5));
    if (!process.Read(oracles::SecondsFromNow(5))) throw Error("{} does not answer", script);
  };
  for (int i = 0; i < 100; ++i) trip();
  const Timer timer;
  for (int i = 0; i < count; ++i) trip();
  return 1e6 * timer.Seconds() / count;
}

// The same through a player that is a UCI engine.
double EngineRoundTrip(const std::string& script, int count) {
  const auto player = players::MakePlayer("engine:/bin/sh " + script);
  const players::Request request{.game = {}, .limits = {.nodes = 1}};
  const auto trip = [&] {
    if (!player->Play(request).move) throw Error("{} gives no move", script);
  };
  for (int i = 0; i < 100; ++i) trip();
  const Timer timer;
  for (int i = 0; i < count; ++i) trip();
  return 1e6 * timer.Seconds() / count;
}

// An engine in shell that answers at once.
std::string PipeEngine() {
  const std::string path = MadeDataFolder() + "/pipe_engine.sh";
  WriteFileAtomically(path, R"(while read -r line; do
case "$line" in
uci) echo 'id name pipe'; echo uciok;;
isready) echo readyok;;
go*) echo 'bestmove e2e4';;
quit) exit 0;;
esac
done
)");
  return path;
}

void BenchEngine(Bench& bench) {
  const std::string script = PipeEngine();
  const int count = bench.quick() ? 2000 : 10000;
  std::vector<double> bare;
  std::vector<double> engine;
  for (int round = 0; round < 5; ++round) {
    bare.push_back(BareRoundTrip(script, count));
    engine.push_back(EngineRoundTrip(script, count));
  }
  bench.Report({.name = "a move of a UCI engine that does not think",
                .value = Median(engine),
                .unit = "us",
                .yardstick = Median(bare),
                .yardstick_name = "bare round trip",
                .signature = static_cast<uint64_t>(count)});
  if (Median(engine) > 1.2 * Median(bare)) {
    bench.Fail("a move of an engine takes more than 1.2 bare round trips");
  }
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  kibitz::bench::Bench bench("arena", argc, argv);
  kibitz::bench::BenchGames(bench);
  kibitz::bench::BenchOverhead(bench);
  kibitz::bench::BenchEngine(bench);
  return bench.Finish();
}
