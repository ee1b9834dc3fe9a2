#include "learn/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_data.h"

namespace kibitz::learn {
namespace {

using ::testing::HasSubstr;
using testing::MessageOf;

TEST(DeviceTest, KnowsTheCpu) { EXPECT_TRUE(DeviceOf("cpu").is_cpu()); }

TEST(DeviceTest, RefusesOtherNames) {
  for (const char* name : {"", "tpu", "cuda:", "cuda:x", "cuda:-1", "cuda:0x"}) {
    EXPECT_THAT(MessageOf([&] { DeviceOf(name); }), HasSubstr("expected cpu, cuda or cuda:N"));
  }
}

TEST(DeviceTest, RefusesADeviceThatIsNotThere) {
  EXPECT_THAT(MessageOf([] { DeviceOf("cuda:100"); }), HasSubstr("use --device cpu"));
  if (torch::cuda::device_count() == 0) {
    EXPECT_THAT(MessageOf([] { DeviceOf("cuda"); }), HasSubstr("finds 0 CUDA devices"));
  }
}

}  // namespace
}  // namespace kibitz::learn
