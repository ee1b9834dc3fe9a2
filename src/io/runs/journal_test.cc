#include "io/runs/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const Json kGiven = {{"options", {{"games", 10}, {"seed", 1}}}, {"players", {"a", "b"}}};

TEST(JournalTest, KeepsResultsOverARestart) {
  const testing::TempFolder folder;
  const std::string path = folder.File("journal.jsonl");
  {
    Journal journal(path, kGiven);
    EXPECT_EQ(journal.kept(), 0);
    journal.Append(4, {{"result", "1-0"}});
    journal.Append(2, "any value");
  }
  const Journal journal(path, kGiven);
  EXPECT_EQ(journal.kept(), 2);
  ASSERT_NE(journal.Find(4), nullptr);
  EXPECT_EQ((*journal.Find(4))["result"], "1-0");
  EXPECT_EQ(*journal.Find(2), "any value");
  EXPECT_EQ(journal.Find(3), nullptr);
}

// A kill may cut the last line anywhere.
TEST(JournalTest, AnyCutLosesOnlyTheLineInProgress) {
  const testing::TempFolder folder;
  const std::string path = folder.File("journal.jsonl");
  {
    Journal journal(path, kGiven);
    for (int i = 0; i < 3; ++i) journal.Append(i, {{"points", i}});
  }
  const std::string whole = testing::ReadWhole(path);
  for (size_t size = 0; size <= whole.size(); ++size) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    const auto lines = std::count(whole.begin(), whole.begin() + static_cast<long>(size), '\n');
    {
      Journal journal(path, kGiven);
      EXPECT_EQ(journal.kept(), std::max<int64_t>(0, lines - 1));
      for (int i = static_cast<int>(journal.kept()); i < 3; ++i) journal.Append(i, {{"points", i}});
    }
    EXPECT_EQ(testing::ReadWhole(path), whole) << size;
  }
}

TEST(JournalTest, OtherSettingsAreRefusedWithWhatDiffers) {
  const testing::TempFolder folder;
  const std::string path = folder.File("journal.jsonl");
  { Journal journal(path, kGiven); }
  Json other = kGiven;
  other["options"]["seed"] = 2;
  const std::string message = testing::MessageOf([&] { Journal journal(path, other); });
  EXPECT_THAT(message, HasSubstr("/options/seed is '1' there and '2' now"));
  EXPECT_THAT(message, HasSubstr("--fresh"));
  EXPECT_EQ(SettingsDifference(kGiven, kGiven), "");
  const Json turned = {{"players", {"a", "b"}}, {"options", {{"seed", 1}, {"games", 10}}}};
  EXPECT_EQ(SettingsDifference(kGiven, turned), "");
}

TEST(JournalTest, IsForOneProcessAtATime) {
  const testing::TempFolder folder;
  const std::string path = folder.File("journal.jsonl");
  const Journal journal(path, kGiven);
  EXPECT_THAT(testing::MessageOf([&] { Journal second(path, kGiven); }),
              HasSubstr("is being written by process"));
}

TEST(JournalTest, DamageIsNamed) {
  const testing::TempFolder folder;
  const std::string path = folder.File("journal.jsonl");
  { Journal(path, kGiven).Append(0, 1); }
  std::ofstream(path, std::ios::app) << "garbage\n";
  EXPECT_THAT(testing::MessageOf([&] { Journal journal(path, kGiven); }), HasSubstr("line 3"));
}

TEST(JournalTest, TakesResultsFromManyThreads) {
  const testing::TempFolder folder;
  const std::string path = folder.File("journal.jsonl");
  {
    Journal journal(path, kGiven);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&journal, t] {
        for (int i = 0; i < 50; ++i) journal.Append(4 * i + t, {{"by", t}});
      });
    }
  }
  const Journal journal(path, kGiven);
  EXPECT_EQ(journal.kept(), 200);
  EXPECT_EQ((*journal.Find(7))["by"], 3);
}

}  // namespace
}  // namespace kibitz::io
