#include "base/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/error.h"

namespace kibitz {
namespace {

// What the kernel says of this processor.
std::set<std::string> Flags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(ProcessorTest, AgreesWithTheKernel) {
  const std::set<std::string> flags = Flags();
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo has no flags";
  const auto have = [&](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](const char* name) { return flags.contains(name); });
  };
  const bool v3 = have({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"});
  const bool v4 = v3 && have({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  EXPECT_TRUE(Runs(CpuLevel::kV2));
  EXPECT_EQ(Runs(CpuLevel::kV3), v3);
  EXPECT_EQ(Runs(CpuLevel::kV3Vnni), v3 && have({"avx_vnni"}));
  EXPECT_EQ(Runs(CpuLevel::kV4), v4);
  EXPECT_EQ(Runs(CpuLevel::kV4Vnni), v4 && have({"avx512_vnni"}));
}

TEST(ProcessorTest, ChoosesTheBestOrWhatIsAsked) {
  EXPECT_TRUE(Runs(ChosenLevel("")));
  for (const auto& [name, level] : kCpuLevels) {
    if (Runs(level)) {
      EXPECT_EQ(ChosenLevel(name), level);
      EXPECT_LE(level, ChosenLevel(""));
    } else {
      EXPECT_THROW(ChosenLevel(name), Error);
    }
  }
  EXPECT_THROW(ChosenLevel("v9"), Error);
}

}  // namespace
}  // namespace kibitz
