#include "learn/runtime.h"

#include <gtest/gtest.h>

namespace kibitz::learn {
namespace {

TEST(RuntimeTest, UsesTheThreadsItIsGiven) {
  SetThreads(2);
  EXPECT_EQ(InspectRuntime().threads, 2);
}

// The reference BLAS runs at the plain loop's speed; a tuned one is far above it.
TEST(RuntimeTest, MatrixProductIsTuned) {
  SetThreads(0);
  const RuntimeReport report = InspectRuntime();
  EXPECT_NE(report.matrix_library, "reference") << "install libopenblas-dev";
  EXPECT_GT(report.matmul_gflops, 4 * report.plain_gflops);
}

TEST(RuntimeTest, OldKernelsAreLeftForWhatTheProcessorCanDo) {
  const Instructions avx2 = {.avx2 = true};
  const Instructions avx512 = {.avx2 = true, .avx512 = true};
  EXPECT_EQ(BetterKernels("Prescott", avx512), "SkylakeX");
  EXPECT_EQ(BetterKernels("Nehalem", avx2), "Haswell");
  EXPECT_EQ(BetterKernels("Prescott", {}), std::nullopt);
  EXPECT_EQ(BetterKernels("Zen", avx512), std::nullopt);
  EXPECT_EQ(BetterKernels("SkylakeX", avx512), std::nullopt);
  EXPECT_EQ(BetterKernels("", avx512), std::nullopt);
}

}  // namespace
}  // namespace kibitz::learn
