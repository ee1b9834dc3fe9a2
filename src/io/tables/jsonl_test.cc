#include "io/tables/jsonl.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/bytes/byte_sink.h"
#include "io/tables/json_tree.h"
#include "tests/support/corruption.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using ::kibitz::testing::Cut;
using ::kibitz::testing::DataPath;
using ::kibitz::testing::Flip;
using ::kibitz::testing::GoldenPath;
using ::kibitz::testing::MessageOf;
using ::kibitz::testing::ReadWhole;
using ::kibitz::testing::StaysWithin;
using ::kibitz::testing::TempFolder;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxForALie = 64 << 20;

JsonLines Lines(std::string text, const JsonLinesOptions& options = {}) {
  return JsonLines(Unpacked(MemoryBytes(std::move(text), "a.jsonl"), options.source), options);
}

void WalkAll(std::string_view bytes) {
  auto lines = Lines(std::string(bytes), {.source = {.read_ahead = false}});
  while (const JsonLine* line = lines.Next()) {
    if (line->ok()) ToTree(line->root());
  }
}

TEST(Jsonl, ReadsTheExample) {
  auto lines = Lines(
      R"({"fen":"8/8 w - -","evals":[{"pvs":[{"cp":34,"line":"e2e4 e7e5"},{"mate":-3,"line":""}],)"
      R"("knodes":9251,"depth":26}]})");
  const JsonLine* line = lines.Next();
  ASSERT_NE(line, nullptr);
  ASSERT_TRUE(line->ok());
  EXPECT_EQ(line->root()["fen"].String(), "8/8 w - -");
  int pvs = 0;
  for (const JsonValue eval : line->root()["evals"].Items()) {
    EXPECT_EQ(eval["depth"].Int(), 26);
    for (const JsonValue pv : eval["pvs"].Items()) {
      EXPECT_EQ(pv["cp"].OptionalInt(), pvs == 0 ? std::optional<int64_t>(34) : std::nullopt);
      EXPECT_EQ(pv["mate"].OptionalInt(), pvs == 0 ? std::nullopt : std::optional<int64_t>(-3));
      ++pvs;
    }
  }
  EXPECT_EQ(pvs, 2);
  EXPECT_EQ(lines.Next(), nullptr);
  EXPECT_EQ(lines.Next(), nullptr);
}

TEST(Jsonl, CountsLinesAndPassesOverBlankOnes) {
  auto lines = Lines("\xef\xbb\xbf{\"a\":1}\r\n\n  \t\r\n[2]\n\n3");
  std::vector<std::pair<uint64_t, std::string>> found;
  while (const JsonLine* line = lines.Next()) {
    EXPECT_TRUE(line->ok()) << line->problem();
    found.emplace_back(line->number(), line->text());
  }
  const std::vector<std::pair<uint64_t, std::string>> expected = {
      {1, "{\"a\":1}\r"}, {4, "[2]"}, {6, "3"}};
  EXPECT_EQ(found, expected);
}

TEST(Jsonl, EmptyFilesHaveNoLines) {
  EXPECT_EQ(Lines("").Next(), nullptr);
  EXPECT_EQ(Lines("\n\n").Next(), nullptr);
  EXPECT_EQ(Lines("\xef\xbb\xbf").Next(), nullptr);
}

TEST(Jsonl, ReportsBrokenLinesAndGoesOn) {
  const std::vector<std::string> broken = {"{\"a\":1",
                                           "{\"a\" 1}",
                                           "[1,]",
                                           "{} {}",
                                           "nul",
                                           "\"open",
                                           "[01]",
                                           "[1e999]",
                                           "\xef\xbb\xbf{}",
                                           "\"\xff\"",
                                           "[\"\t\"]",
                                           "\"\\ud800\"",
                                           "[123456789012345678901234567890]"};
  for (const std::string& text : broken) {
    auto lines = Lines("{}\n" + text + "\n{\"b\":2}\n");
    ASSERT_TRUE(lines.Next()->ok());
    const JsonLine* line = lines.Next();
    ASSERT_NE(line, nullptr);
    EXPECT_FALSE(line->ok()) << text;
    EXPECT_EQ(line->problem().find("a.jsonl, line 2: found "), 0U) << line->problem();
    EXPECT_EQ(line->text(), text);
    line = lines.Next();
    ASSERT_NE(line, nullptr);
    ASSERT_TRUE(line->ok()) << text << " spoils the next line: " << line->problem();
    EXPECT_EQ(line->root()["b"].Int(), 2);
  }
}

TEST(Jsonl, KeepsNumbersExact) {
  auto lines = Lines(
      "[-9223372036854775808, 9223372036854775807, 9223372036854775808, 18446744073709551615, "
      "0.1, 3.0, 1e3, -0.0, 5e-324]");
  std::vector<JsonKind> kinds;
  std::vector<double> doubles;
  for (const JsonValue value : lines.Next()->root().Items()) {
    kinds.push_back(value.kind());
    doubles.push_back(value.Double());
  }
  const std::vector<JsonKind> expected_kinds = {
      JsonKind::kInt,    JsonKind::kInt,    JsonKind::kDouble, JsonKind::kDouble, JsonKind::kDouble,
      JsonKind::kDouble, JsonKind::kDouble, JsonKind::kDouble, JsonKind::kDouble};
  EXPECT_EQ(kinds, expected_kinds);
  const std::vector<double> expected = {-0x1p63, 0x1p63, 0x1p63, 0x1p64, 0.1,
                                        3.0,     1000.0, -0.0,   5e-324};
  EXPECT_EQ(doubles, expected);
}

TEST(Jsonl, TellsWhatDoesNotFit) {
  auto lines = Lines("\n{\"a\":\"x\",\"b\":1.5,\"n\":null,\"big\":9223372036854775808}");
  const JsonValue root = lines.Next()->root();
  const std::string place = "a.jsonl, line 2: ";
  EXPECT_EQ(MessageOf([&] { root["a"].Int(); }),
            place + "\"a\": found a string, expected a whole number of 64 bits");
  EXPECT_EQ(MessageOf([&] { root["big"].Int(); }),
            place + "\"big\": found a number, expected a whole number of 64 bits");
  EXPECT_EQ(MessageOf([&] { root["b"].Int(); }),
            place + "\"b\": found a number, expected a whole number of 64 bits");
  EXPECT_EQ(MessageOf([&] { root["b"].OptionalString(); }),
            place + "\"b\": found a number, expected a string");
  EXPECT_EQ(MessageOf([&] { root["a"].Double(); }),
            place + "\"a\": found a string, expected a number");
  EXPECT_EQ(MessageOf([&] { root["n"].Bool(); }),
            place + "\"n\": found null, expected true or false");
  EXPECT_EQ(MessageOf([&] { root["c"].String(); }),
            place + "\"c\": found nothing, expected a string");
  EXPECT_EQ(MessageOf([&] { root["a"].Items(); }),
            place + "\"a\": found a string, expected an array");
  EXPECT_EQ(MessageOf([&] { root["c"]["d"].Fields(); }),
            place + "\"d\": found nothing, expected an object");
  EXPECT_EQ(MessageOf([&] { root["a"]["d"]; }),
            place + "\"a\": found a string, expected an object");
  EXPECT_EQ(MessageOf([&] { root.Items(); }), place + "found an object, expected an array");
  EXPECT_EQ(root["n"].OptionalDouble(), std::nullopt);
  EXPECT_EQ(root["b"].OptionalDouble(), 1.5);
  EXPECT_EQ(root["c"]["d"].OptionalInt(), std::nullopt);
  EXPECT_EQ(root["c"].kind(), JsonKind::kMissing);
}

TEST(Jsonl, RefusesLongLines) {
  const JsonLinesOptions options = {.max_line_bytes = 100};
  auto within = Lines(fmt::format("{:100}\n[1]\n", "\"x\""), options);
  EXPECT_TRUE(within.Next()->ok());
  const std::string message =
      "a.jsonl, line 2: longer than 100 bytes; is this JSON lines? give --allow line=256 if it is "
      "right";
  auto beyond = Lines(fmt::format("1\n{:101}\n[1]\n", "\"x\""), options);
  EXPECT_TRUE(beyond.Next()->ok());
  EXPECT_EQ(MessageOf([&] { beyond.Next(); }), message);
  auto endless = Lines("1\n" + std::string(10 << 20, ' '), options);
  EXPECT_EQ(MessageOf([&] {
              while (endless.Next() != nullptr) {
              }
            }),
            message);
}

TEST(Jsonl, ReadsLinesLongerThanItsPieces) {
  const std::string content(1'900'000, 'x');
  auto lines = Lines("[1]\n\"" + content + "\"\n[2]");
  EXPECT_TRUE(lines.Next()->ok());
  EXPECT_EQ(lines.Next()->root().String(), content);
  EXPECT_EQ(ToTree(lines.Next()->root()), Json::parse("[2]"));
  EXPECT_EQ(lines.Next(), nullptr);
}

TEST(Jsonl, AgreesWithAnotherParserOnGoldenFiles) {
  for (const std::string name :
       {"policy/rows/lichess_db_eval.jsonl.zst",
        "twenty48/raws/d3_v1/depth03_worker01_seed0272350806_game000003.jsonl.gz",
        "twenty48/raws/legacy_d2/depth02_worker00_seed1781025990_game000000.jsonl.gz"}) {
    JsonLines lines(GoldenPath(name));
    uint64_t count = 0;
    while (const JsonLine* line = lines.Next()) {
      ASSERT_TRUE(line->ok()) << line->problem();
      ASSERT_EQ(ToTree(line->root()), Json::parse(line->text())) << line->Place();
      ASSERT_EQ(line->number(), ++count);
    }
    EXPECT_GT(count, 100U);
  }
}

TEST(Jsonl, ReadsTheSameFromEachPacking) {
  const std::string plain = testing::DataFile("evals", ".jsonl");
  SKIP_WITHOUT(plain);
  for (const std::string& packed : testing::DataFiles("evals", ".jsonl.zst")) {
    JsonLines a(plain);
    JsonLines b(packed);
    int count = 0;
    while (const JsonLine* line = a.Next()) {
      const JsonLine* other = b.Next();
      ASSERT_NE(other, nullptr);
      ASSERT_EQ(line->text(), other->text());
      ASSERT_TRUE(other->ok());
      ++count;
    }
    EXPECT_EQ(b.Next(), nullptr);
    EXPECT_GT(count, 0);
  }
}

// Numbers, one a line, over several batches; every seventh line is blank.
std::string ManyLines(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) {
    text += i % 7 == 0 ? "\n" : fmt::format("{{\"i\":{},\"pad\":\"{:50}\"}}\n", i, "");
  }
  return text;
}

TEST(ForEachBatch, KeepsTheOrder) {
  constexpr int kCount = 50'000;
  for (int threads : {1, 3}) {
    auto lines = Lines(ManyLines(kCount));
    ThreadPool pool(threads);
    std::vector<int64_t> found;
    int batches = 0;
    ForEachBatch(
        lines, pool,
        [](JsonLines& some) {
          std::vector<int64_t> numbers;
          while (const JsonLine* line = some.Next()) {
            numbers.push_back(line->root()["i"].Int());
            EXPECT_EQ(static_cast<int64_t>(line->number()), numbers.back());
          }
          return numbers;
        },
        [&](const std::vector<int64_t>& numbers) {
          found.insert(found.end(), numbers.begin(), numbers.end());
          ++batches;
        });
    EXPECT_GT(batches, 5);
    std::vector<int64_t> expected;
    for (int i = 1; i <= kCount; ++i) {
      if (i % 7 != 0) expected.push_back(i);
    }
    EXPECT_TRUE(found == expected);
  }
}

TEST(ForEachBatch, TakesAllBeforeAFault) {
  const TempFolder folder;
  ByteSink sink(folder.File("a.gz"));
  sink.Write(ManyLines(50'000));
  sink.Commit();
  const std::string packed = ReadWhole(folder.File("a.gz"));
  auto lines = Lines(packed.substr(0, packed.size() - 4));
  ThreadPool pool(2);
  uint64_t last = 0;
  const auto read = [&] {
    ForEachBatch(
        lines, pool,
        [](JsonLines& some) {
          uint64_t number = 0;
          while (const JsonLine* line = some.Next()) number = line->number();
          return number;
        },
        [&](uint64_t number) { last = std::max(last, number); });
  };
  EXPECT_NE(MessageOf(read).find("cut short"), std::string::npos);
  EXPECT_EQ(last, 50'000U);
}

TEST(ForEachBatch, PassesOnWhatIsThrown) {
  auto text = ManyLines(50'000);
  for (const bool in_map : {true, false}) {
    auto lines = Lines(text);
    ThreadPool pool(2);
    const auto read = [&] {
      ForEachBatch(
          lines, pool,
          [&](JsonLines& some) {
            const uint64_t number = some.Next()->number();
            if (in_map && number > 10'000) throw Error("in map");
            return number;
          },
          [&](uint64_t number) {
            if (!in_map && number > 10'000) throw Error("in take");
          });
    };
    EXPECT_EQ(MessageOf(read), in_map ? "in map" : "in take");
  }
}

TEST(Jsonl, LongLinesInBombsStayWithinMemory) {
  const TempFolder folder;
  for (const char letter : {'[', '"', ' ', '1', '\n', ','}) {
    const std::string path = folder.File("bomb.zst");
    ByteSink sink(path, {.level = 1});
    sink.Write("[1]\n");
    for (int i = 0; i < 3; ++i) {  // Lines just below the limit, then one that never ends.
      sink.Write(std::string((2 << 20) - 1, letter));
      sink.Write("\n");
    }
    for (int i = 0; i < 100; ++i) sink.Write(std::string(1 << 20, letter));
    sink.Commit();
    EXPECT_TRUE(StaysWithin(kMaxForALie, [&] {
      JsonLines lines(path);
      while (const JsonLine* line = lines.Next()) {
        if (line->ok()) ToTree(line->root());
      }
    })) << letter;
  }
}

TEST(Jsonl, SurvivesDamage) {
  const std::string packed = ReadWhole(
      GoldenPath("twenty48/raws/d3_v1/depth03_worker01_seed0272350806_game000003.jsonl.gz"));
  EXPECT_EQ(Cut(packed, {}, WalkAll).reads, 2) << "0 and 1 bytes are no gzip yet";
  const std::string plain =
      "{\"fen\":\"8/8 w - -\",\"evals\":[{\"pvs\":[{\"cp\":34}]}]}\n[1,2.5e3]\n";
  const auto flips = Flip(plain, {}, WalkAll);
  EXPECT_EQ(flips.reads, 10'000) << "broken lines are reported, not thrown";
}

}  // namespace
}  // namespace kibitz::io
