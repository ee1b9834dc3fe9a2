// The golden 2048 kit by folder and kind, so that another kit of the same form can take its place.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/test_data.h"

namespace kibitz::testing {

// The folders of twenty48/model whose config.json has this head_type, "binned_ev" or
// "action_policy", in order of their names; of any head_type when it is "". Fails the test when
// there are none.
inline std::vector<std::string> Twenty48Models(const std::string& head_type = "") {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenPath("twenty48/model"))) {
    const std::string config = entry.path().string() + "/config.json";
    if (!Exists(config)) continue;
    const std::string type = nlohmann::json::parse(ReadWhole(config)).value("head_type", "");
    if (head_type.empty() || type == head_type) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  EXPECT_FALSE(folders.empty()) << "twenty48/model has no folder of head_type " << head_type;
  return folders;
}

// Prints what a golden test compared; fails it when that was nothing.
inline void Compared(int64_t count, const std::string& what) {
  EXPECT_GT(count, 0) << "no " << what << " in the kit";
  std::printf("[ compared ] %lld %s\n", static_cast<long long>(count), what.c_str());
}

}  // namespace kibitz::testing
