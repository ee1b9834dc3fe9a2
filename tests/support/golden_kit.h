// The golden kits by folder and kind, so that another kit of the same form can take their place.
#pragma once

#include <fmt/format.h>
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

// The folders of policy/models that hold a model and this file, in order of their names. Fails the
// test when there are none.
inline std::vector<std::string> PolicyModels(const std::string& file = "config.json") {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenPath("policy/models"))) {
    const std::string folder = entry.path().string();
    if (Exists(folder + "/config.json") && Exists(folder + "/" + file)) folders.push_back(folder);
  }
  std::sort(folders.begin(), folders.end());
  EXPECT_FALSE(folders.empty()) << "policy/models has no folder with " << file;
  return folders;
}

// Prints what a golden test compared; fails it when that was nothing.
inline void Compared(int64_t count, const std::string& what) {
  EXPECT_GT(count, 0) << "no " << what << " in the kit";
  std::printf("[ compared ] %lld %s\n", static_cast<long long>(count), what.c_str());
}

// The same for rows of which some were passed over, as too close to call: fails the test when it
// compared less than half of them.
inline void Compared(int64_t count, int64_t rows, const std::string& what) {
  Compared(count, fmt::format("of {} {}", rows, what));
  EXPECT_GE(2 * count, rows) << "too few " << what << " were compared";
}

}  // namespace kibitz::testing
