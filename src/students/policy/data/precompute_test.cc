#include "students/policy/data/precompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "io/bytes/byte_sink.h"
#include "io/tables/parquet.h"
#include "students/policy/data/dataset.h"
#include "students/policy/data/export.h"
#include "students/policy/data/group.h"
#include "students/policy/data/verify.h"
#include "tests/support/test_data.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;
using io::ColumnType;
using kibitz::testing::MessageOf;
using kibitz::testing::ReadWhole;
using kibitz::testing::TempFolder;
using ::testing::HasSubstr;

const std::vector<io::ColumnSpec> kColumns = {
    {"fen", ColumnType::kText},     {"line", ColumnType::kText}, {"depth", ColumnType::kInt64},
    {"knodes", ColumnType::kInt64}, {"cp", ColumnType::kInt64},  {"mate", ColumnType::kInt64}};

// Rows of random games' positions, few enough that many come again, far apart.
void WriteRows(const std::string& path, int rows, uint64_t row_group_rows) {
  std::vector<chess::Board> boards;
  Rng rng({.seed = 5});
  chess::Board board;
  while (static_cast<int>(boards.size()) < rows / 3) {
    const chess::MoveList moves = LegalMoves(board);
    if (moves.empty() || board.fullmove_number() > 60) {
      board = chess::Board();
      continue;
    }
    board = board.After(moves[rng.Below(moves.size())]);
    if (HasLegalMove(board)) boards.push_back(board);
  }
  io::ParquetWriter writer(path,
                           {{"fen", ColumnType::kText},
                            {"line", ColumnType::kText},
                            {"depth", ColumnType::kInt64},
                            {"knodes", ColumnType::kInt64},
                            {"cp", ColumnType::kInt64},
                            {"mate", ColumnType::kInt64}},
                           {.row_group_rows = row_group_rows});
  for (int row = 0; row < rows; ++row) {
    const chess::Board& at = boards[rng.Below(boards.size())];
    const chess::MoveList moves = LegalMoves(at);
    writer.SetText(0, chess::ToFen(at, {.counters = false}));
    writer.SetText(1, ToText(at, moves[rng.Below(moves.size())], chess::MoveStyle::kUciRook));
    writer.SetInt(2, static_cast<int64_t>(10 + rng.Below(30)));
    writer.SetInt(3, static_cast<int64_t>(rng.Below(1000)));
    const bool mate = rng.Below(10) == 0;
    writer.SetInt(mate ? 5 : 4, static_cast<int64_t>(rng.Below(400)) - 200);
    writer.EndRow();
  }
  writer.Finish();
}

// The files of a data set, one after another.
std::string BytesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::string bytes;
  for (const std::string& name : names) bytes += name + ReadWhole(folder + "/" + name);
  return bytes;
}

class PrecomputeTest : public ::testing::Test {
 protected:
  PrecomputeTest() : rows_(folder_.File("rows.parquet")) { WriteRows(rows_, 20'000, 2048); }

  std::string Out(const std::string& name) const { return folder_.File(name); }

  TempFolder folder_;
  std::string rows_;
};

// The plain way: a map of everything, as the reference does it.
TEST_F(PrecomputeTest, AgreesWithThePlainWay) {
  Precompute({rows_}, Out("a"), {.threads = 2});
  std::map<std::string, std::multiset<std::string>> plain;
  io::ParquetReader reader({rows_});
  auto scan = reader.Scan(kColumns);
  const auto text = [](std::string_view move, int64_t depth, int64_t knodes, bool mate,
                       int64_t score) {
    return fmt::format("{} {} {} {} {}", move, depth, knodes, mate ? "mate" : "cp", score);
  };
  while (const io::Chunk* chunk = scan.Next()) {
    for (size_t i = 0; i < chunk->rows; ++i) {
      const bool mate = chunk->IsNull(4, i);
      plain[std::string(chunk->columns[0].texts[i])].insert(
          text(chunk->columns[1].texts[i], chunk->columns[2].ints[i], chunk->columns[3].ints[i],
               mate, chunk->columns[mate ? 5 : 4].ints[i]));
    }
  }
  std::map<std::string, std::multiset<std::string>> ours;
  const Dataset data = Dataset::Open(Out("a"));
  std::vector<Analysis> scratch;
  for (Split split : kSplits) {
    for (uint64_t i = 0; i < data.split(split).size(); ++i) {
      const Sample sample = data.split(split).At(i, scratch);
      auto& list = ours[chess::ToFen(BoardOf(sample.position), {.counters = false})];
      EXPECT_TRUE(list.empty());
      EXPECT_TRUE(std::is_sorted(sample.analyses.begin(), sample.analyses.end(), ComesBefore));
      for (const Analysis& a : sample.analyses) {
        list.insert(
            text(data.vocabulary()[a.move].Text(), a.depth(), a.knodes, a.is_mate(), a.score));
      }
    }
  }
  EXPECT_EQ(ours, plain);
  EXPECT_GT(data.split(Split::kVal).size(), 0U);
  EXPECT_GT(data.split(Split::kTest).size(), 0U);
}

TEST_F(PrecomputeTest, SameBytesForAnyThreadsMemoryAndShards) {
  Precompute({rows_}, Out("one"), {.threads = 1});
  const std::string expected = BytesIn(Out("one"));
  Precompute({rows_}, Out("three"), {.memory_bytes = uint64_t{128} << 20, .threads = 3});
  EXPECT_TRUE(BytesIn(Out("three")) == expected);
  for (uint64_t shards : {1U, 2U, 5U}) {
    const std::string out = Out("shards" + std::to_string(shards));
    for (uint64_t shard = shards; shard-- > 0;) {
      PrecomputeShard({rows_}, out, shards, shard, {.threads = 2});
    }
    Merge({out}, out + "-merged", {.threads = 2});
    EXPECT_TRUE(BytesIn(out + "-merged") == expected) << shards;
  }
  // A second time there is nothing to do.
  const auto before = fs::last_write_time(Out("one") + "/manifest.json");
  Precompute({rows_}, Out("one"), {.threads = 1});
  EXPECT_EQ(fs::last_write_time(Out("one") + "/manifest.json"), before);
}

// As machines with 1, 2 and 48 cores would make them, with no more memory than allowed.
TEST_F(PrecomputeTest, ShardsOfMachinesWithDifferentCoresMerge) {
  constexpr uint64_t kMemory = uint64_t{128} << 20;
  Precompute({rows_}, Out("whole"), {.memory_bytes = kMemory, .threads = 1});
  uint64_t shard = 0;
  for (const int threads : {1, 2, 48}) {
    PrecomputeShard({rows_}, Out("s"), 3, shard++, {.memory_bytes = kMemory, .threads = threads});
  }
  Merge({Out("s")}, Out("m"), {.threads = 2});
  EXPECT_TRUE(BytesIn(Out("m")) == BytesIn(Out("whole")));
}

// The rows as Lichess has them, packed in one frame or in many.
std::string LinesOf(const std::string& parquet, const std::string& path, size_t frames) {
  io::ParquetReader reader({parquet});
  auto scan = reader.Scan(kColumns);
  std::string text;
  while (const io::Chunk* chunk = scan.Next()) {
    const auto& columns = chunk->columns;
    for (size_t i = 0; i < chunk->rows; ++i) {
      const bool mate = chunk->IsNull(4, i);
      text += fmt::format(
          R"({{"fen":"{}","evals":[{{"pvs":[{{"{}":{},"line":"{}"}}],"knodes":{},"depth":{}}}]}})",
          columns[0].texts[i], mate ? "mate" : "cp", columns[mate ? 5 : 4].ints[i],
          columns[1].texts[i], columns[3].ints[i], columns[2].ints[i]);
      text += '\n';
    }
  }
  std::string packed;
  const size_t size = text.size() / frames + 1;
  for (size_t at = 0; at < text.size(); at += size) {
    io::ByteSink sink(path);
    sink.Write(std::string_view(text).substr(at, size));
    sink.Commit();
    packed += ReadWhole(path);
  }
  WriteFileAtomically(path, packed);
  return path;
}

TEST_F(PrecomputeTest, LinesOfOneFrameAndOfManyInShards) {
  constexpr uint64_t kPiece = 20'000;
  for (const size_t frames : {1, 30}) {
    const std::string name = std::to_string(frames);
    const std::string path = LinesOf(rows_, folder_.File("rows" + name + ".jsonl.zst"), frames);
    Precompute({path}, Out("one" + name), {.threads = 2, .piece_bytes = kPiece});
    for (uint64_t shard : {2, 0, 1}) {
      const ShardState made =
          PrecomputeShard({path}, Out("s" + name), 3, shard,
                          {.threads = 2, .work = Out("work" + name), .piece_bytes = kPiece});
      EXPECT_GT(made.rows, 20'000U / 10);
    }
    // One frame was unpacked for all shards, which have removed what they have read.
    EXPECT_EQ(fs::exists(Out("work" + name)), frames == 1);
    if (frames == 1) {
      size_t files = 0;
      for (const auto& entry : fs::recursive_directory_iterator(Out("work1"))) {
        files += entry.is_regular_file() ? 1 : 0;
      }
      EXPECT_EQ(files, 1U) << "state.json";
    }
    Merge({Out("s" + name)}, Out("m" + name), {.threads = 2});
    EXPECT_TRUE(BytesIn(Out("m" + name)) == BytesIn(Out("one" + name)));
  }
}

TEST_F(PrecomputeTest, ARowLimitCountsRowsOfBothLayouts) {
  EXPECT_EQ(Precompute({rows_}, Out("a"), {.threads = 2, .rows = 5000}).rows, 5000U);
  EXPECT_EQ(Precompute({testing::GoldenPath("policy/rows/lichess_db_eval.jsonl.zst")}, Out("b"),
                       {.threads = 2, .rows = 100})
                .rows,
            100U);
}

TEST_F(PrecomputeTest, MissingAndUnfinishedShardsAreRefused) {
  PrecomputeShard({rows_}, Out("s"), 3, 0, {.threads = 1});
  PrecomputeShard({rows_}, Out("s"), 3, 2, {.threads = 1});
  EXPECT_THAT(MessageOf([&] { Merge({Out("s")}, Out("m"), {}); }),
              HasSubstr("shard 1 of 3 is missing"));
  PrecomputeShard({rows_}, Out("s"), 3, 1, {.threads = 1});
  const std::string path = Out("s") + "/shard-0001-of-0003/shard.json";
  const std::string journal = ReadWhole(path);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(journal);
  json["done"] = false;
  WriteFileAtomically(path, json.dump());
  EXPECT_THAT(MessageOf([&] { Merge({Out("s")}, Out("m"), {}); }), HasSubstr("not finished"));
  WriteFileAtomically(path, journal);
  EXPECT_FALSE(Manifest::Exists(Out("m")));
  EXPECT_EQ(Merge({Out("s")}, Out("m"), {}).rows, 20'000U);
}

// A partition that is shorter, or zeros where rows were, never passes.
TEST_F(PrecomputeTest, DamagedShardsAreRefused) {
  PrecomputeShard({rows_}, Out("s"), 1, 0, {.threads = 1});
  const std::string part = Out("s") + "/shard-0000-of-0001/part-0000.rows";
  const std::string good = ReadWhole(part);
  ASSERT_GT(good.size(), 1000U);
  for (const std::string& bad :
       {good.substr(0, good.size() - 40), std::string(good.size(), '\0')}) {
    std::ofstream(part, std::ios::binary) << bad;
    EXPECT_THAT(MessageOf([&] { Merge({Out("s")}, Out("m"), {}); }), HasSubstr("damaged"));
    EXPECT_FALSE(Manifest::Exists(Out("m")));
    EXPECT_THAT(MessageOf([&] { Dataset::Open(Out("m")); }), HasSubstr("unfinished"));
  }
  std::ofstream(part, std::ios::binary) << good;
  Merge({Out("s")}, Out("m"), {});
  EXPECT_TRUE(Verify(Dataset::Open(Out("m")), {}).good());
}

TEST_F(PrecomputeTest, OtherInputInTheSameFolderIsRefused) {
  Precompute({rows_}, Out("a"), {.threads = 1, .rows = 1000});
  EXPECT_THAT(MessageOf([&] { Precompute({rows_}, Out("a"), {.threads = 1, .rows = 2000}); }),
              HasSubstr("other input"));
}

TEST_F(PrecomputeTest, VerifySeesEveryKindOfDamage) {
  Precompute({rows_}, Out("a"), {.threads = 2});
  const std::string positions = Out("a") + "/train_positions.npy";
  const std::string good = ReadWhole(positions);
  const auto faults_after = [&](size_t from_end, size_t bytes, char value) {
    std::string bad = good;
    std::fill_n(bad.end() - static_cast<std::ptrdiff_t>(from_end), bytes, value);
    std::ofstream(positions, std::ios::binary) << bad;
    std::string faults;
    for (const auto& [what, finding] : Verify(Dataset::Open(Out("a")), {}).faults)
      faults += what + ";";
    return faults;
  };
  EXPECT_THAT(faults_after(280, 28, '\0'), HasSubstr("differ from the manifest"));
  EXPECT_THAT(faults_after(280, 26, '\0'), HasSubstr("rows of zeros"));
  EXPECT_THAT(faults_after(280, 8, '\x7f'), HasSubstr("invalid positions"));
  EXPECT_THAT(faults_after(2, 2, '\x01'), HasSubstr("add up"));
  std::ofstream(positions, std::ios::binary) << good;
  EXPECT_TRUE(Verify(Dataset::Open(Out("a")), {}).good());
}

TEST_F(PrecomputeTest, ExportThereAndBack) {
  Precompute({rows_}, Out("a"), {.threads = 2});
  Export(Out("a"), Out("planes"), {.storage = Storage::kPlanes});
  Export(Out("planes"), Out("back"), {.storage = Storage::kPacked});
  EXPECT_TRUE(BytesIn(Out("back")) == BytesIn(Out("a")));
  const VerifyReport report = Verify(Dataset::Open(Out("planes")), {});
  EXPECT_TRUE(report.good());
  // Arrays of another program: without our manifest, and one split.
  fs::remove(Out("planes") + "/manifest.json");
  EXPECT_TRUE(Verify(Dataset::Open(Out("planes")), {}).good());
}

TEST(GroupRows, IllegalMovesAndImpossiblePositionsAreCounted) {
  RowPacker packer;
  std::vector<PackedRow> rows;
  const auto add = [&](std::string_view fen, std::string_view line) {
    PackedRow row;
    packer.Pack({.fen = fen, .line = line, .depth = 9, .knodes = 1, .cp = 0, .mate = {}}, row);
    rows.push_back(row);
  };
  add("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -", "e2e4");
  add("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -", "a1a8");
  add("4k3/8/8/8/8/8/4R3/4K3 w - -", "e2e3");  // Black is in check, White to move.
  const GroupedPartition grouped = GroupRows(rows, {0, 0});
  EXPECT_EQ(grouped.skipped.CountOf("analyses of an illegal move"), 1U);
  EXPECT_EQ(grouped.skipped.CountOf("positions with the side not to move in check"), 1U);
  ASSERT_EQ(grouped.splits[0].positions.size(), 1U);
  EXPECT_EQ(grouped.splits[0].positions[0].analyses, 1);
}

}  // namespace
}  // namespace kibitz::policy
