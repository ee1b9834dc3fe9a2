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

}  // namespace
}  // namespace kibitz::learn
