#include "oracles/records/part_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MessageOf;
using Json = PartStore::Json;

std::string UnitsIn(const PartStore& store) {
  std::string all;
  store.ForEachUnit([&](const io::JsonLine& line) { all += line.text(); });
  return all;
}

TEST(PartStoreTest, KeepsPartsInOrderOverRuns) {
  const testing::TempFolder folder;
  const Json options = {{"nodes", 5}};
  {
    const PartStore store(folder.File("a"), options);
    store.Write(11, std::vector<Json>{3});
    store.Write(2, std::vector<Json>{1, 2});
    EXPECT_TRUE(store.Needs(0));
  }
  {
    const PartStore store(folder.File("a"), options);
    EXPECT_EQ(store.kept(), 2);
    EXPECT_FALSE(store.Needs(2));
    EXPECT_EQ(UnitsIn(store), "123");
    EXPECT_THAT(MessageOf([&] { PartStore(folder.File("a"), options, true); }),
                HasSubstr("is being written by process"));
  }
  WriteFileAtomically(folder.File("a"), "x");  // Killed before it could say so.
  {
    PartStore store(folder.File("a"), options);
    EXPECT_FALSE(store.finished());
    store.Finish({{"rows", 3}});
  }
  EXPECT_FALSE(testing::Exists(folder.File("a.parts")));
  const PartStore again(folder.File("a"), options);
  EXPECT_TRUE(again.finished());
  EXPECT_EQ(again.summary()["rows"], 3);
}

TEST(PartStoreTest, SlicesFillOneFolder) {
  const testing::TempFolder folder;
  const Json options = {{"nodes", 5}};
  {
    const PartStore even(folder.File("a"), options, false, {2, 0});
    const PartStore odd(folder.File("a"), options, false, {2, 1});
    for (int part = 0; part < 5; ++part) {
      EXPECT_NE(even.Needs(part), odd.Needs(part));
      (even.Needs(part) ? even : odd).Write(part, std::vector<Json>{part});
    }
    EXPECT_THAT(MessageOf([&] { PartStore(folder.File("a"), options); }),
                HasSubstr("is being written by process"));
  }
  const PartStore all(folder.File("a"), options);
  EXPECT_EQ(UnitsIn(all), "01234");
  EXPECT_FALSE(all.Needs(4));
  EXPECT_TRUE(all.Needs(5));
}

TEST(PartStoreTest, RefusesWhatOthersHaveMade) {
  const testing::TempFolder folder;
  PartStore(folder.File("a"), {{"teacher", {{"nodes", 5}}}}).Write(0, std::vector<Json>{1});
  const auto open = [&](const Json& options, bool fresh = false) {
    return MessageOf([&] { PartStore(folder.File("a"), options, fresh); });
  };
  EXPECT_THAT(open({{"teacher", {{"nodes", 6}}}}),
              AllOf(HasSubstr("/teacher/nodes is '5' there and '6' now"), HasSubstr("--fresh")));
  EXPECT_EQ(open({{"teacher", {{"nodes", 5}}}}), "");
  EXPECT_EQ(open({{"teacher", {{"nodes", 6}}}}, true), "");
  PartStore(folder.File("a"), {{"teacher", {{"nodes", 6}}}}).Finish({});
  WriteFileAtomically(folder.File("a"), "x");
  EXPECT_THAT(open({{"teacher", {{"nodes", 5}}}}), HasSubstr("a.json: made with other options"));
  WriteFileAtomically(folder.File("b"), "x");
  EXPECT_THAT(MessageOf([&] { PartStore(folder.File("b"), {}); }),
              HasSubstr("not made by this command"));
}

TEST(PartStoreTest, NamesADamagedPart) {
  const testing::TempFolder folder;
  const PartStore store(folder.File("a"), {});
  store.Write(0, std::vector<Json>{1});
  WriteFileAtomically(folder.File("a.parts/part-00000000.jsonl.zst"), "{\"x\":");
  EXPECT_THAT(MessageOf([&] { UnitsIn(store); }),
              AllOf(HasSubstr("part-00000000"), HasSubstr("make this part again")));
}

}  // namespace
}  // namespace kibitz::oracles
