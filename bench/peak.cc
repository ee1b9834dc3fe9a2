#include "bench/peak.h"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "bench/bench.h"
#include "nn/kernels/lanes.h"

namespace kibitz::bench {
namespace {

// Multiplications with additions that a core can do: ten independent sums, nothing else. The
// factors are volatile: a compiler that knows them sees that a sum of 1 stays 1, and leaves it out.
double FmaLoop(int64_t rounds) {
  nn::Lanes sums[10];
  for (int i = 0; i < 10; ++i) sums[i] = nn::Spread(static_cast<float>(i));
  auto [a, b, c, d, e, f, g, h, i, j] = sums;
  const volatile float shrink = 0.999F;
  const volatile float grow = 0.001F;
  const nn::Lanes factor = nn::Spread(shrink);
  const nn::Lanes addend = nn::Spread(grow);
  const Timer timer;
  for (int64_t round = 0; round < rounds; ++round) {
    a = a * factor + addend;
    b = b * factor + addend;
    c = c * factor + addend;
    d = d * factor + addend;
    e = e * factor + addend;
    f = f * factor + addend;
    g = g * factor + addend;
    h = h * factor + addend;
    i = i * factor + addend;
    j = j * factor + addend;
  }
  const double seconds = timer.Seconds();
  const float used = nn::Sum(a + b + c + d + e + f + g + h + i + j);
  return used > 0 ? 2.0 * 10 * nn::kLanes * static_cast<double>(rounds) / seconds : 0;
}

}  // namespace

double MeasurePeak(int rounds) {
  double peak = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> rates(static_cast<size_t>(HardwareThreads()));
    std::vector<std::thread> threads;
    for (double& rate : rates) threads.emplace_back([&rate] { rate = FmaLoop(60'000'000); });
    for (std::thread& thread : threads) thread.join();
    double sum = 0;
    for (double rate : rates) sum += rate;
    peak = std::max(peak, sum);
  }
  return peak;
}

}  // namespace kibitz::bench
