// The policy student's data against recorded results: vocabulary, arrays, labels, odd rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "io/tables/npy.h"
#include "students/policy/data/dataset.h"
#include "students/policy/data/export.h"
#include "students/policy/data/labels.h"
#include "students/policy/data/planes.h"
#include "students/policy/data/precompute.h"
#include "students/policy/data/verify.h"
#include "students/policy/data/vocabulary.h"
#include "tests/support/golden_kit.h"

namespace kibitz::policy {
namespace {

using kibitz::testing::Compared;
using kibitz::testing::GoldenPath;
using kibitz::testing::ReadWhole;
using kibitz::testing::TempFolder;
using Json = nlohmann::json;

std::string Golden(const std::string& name) { return GoldenPath("policy/" + name); }
Json GoldenJson(const std::string& name) { return Json::parse(ReadWhole(Golden(name))); }

std::vector<std::string> Lines(const std::string& path) {
  const std::string text = ReadWhole(path);
  std::vector<std::string> lines;
  for (std::string_view line : kibitz::Split(text, '\n')) {
    if (!Trim(line).empty()) lines.emplace_back(Trim(line));
  }
  return lines;
}

template <typename T>
std::vector<T> Numbers(const std::string& path) {
  const io::NpyFile file = io::NpyFile::Open(path);
  std::vector<T> numbers(file.bytes().size() / sizeof(T));
  if (!numbers.empty()) {
    std::memcpy(numbers.data(), file.bytes().data(), numbers.size() * sizeof(T));
  }
  return numbers;
}

TEST(GoldenPolicy, Vocabulary) {
  const Vocabulary golden = Vocabulary::Read(Golden("expected/vocab.npy"));
  const Vocabulary& full = Vocabulary::Full();
  EXPECT_EQ(full.size(), kFullVocabularySize);
  EXPECT_TRUE(full == golden);
  const std::vector<std::string> texts = Lines(Golden("expected/vocab_uci.txt"));
  ASSERT_EQ(texts.size(), static_cast<size_t>(full.size()));
  for (int i = 0; i < full.size(); ++i) {
    EXPECT_EQ(full[i].Text(), texts[static_cast<size_t>(i)]);
    EXPECT_EQ(full.IndexOf(*MoveWord::FromText(texts[static_cast<size_t>(i)])), i);
  }
}

TEST(GoldenPolicy, FlipTable) {
  const std::vector<int32_t> table = Numbers<int32_t>(Golden("expected/flip_table.npy"));
  ASSERT_EQ(table.size(), static_cast<size_t>(kFullVocabularySize));
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(Vocabulary::Full().Flipped(static_cast<uint16_t>(i)), table[i]);
  }
}

TEST(GoldenPolicy, MateScores) {
  const Json golden = GoldenJson("expected/mate_scores.json");
  for (const auto& [moves, score] : golden.items()) {
    EXPECT_NEAR(MateScore(std::stoi(moves)), score.get<double>(), 1e-9) << moves;
  }
}

using Row = std::array<int32_t, 5>;  // move, depth, knodes, score, is_mate

// The arrays of a data set by FEN, analyses sorted: neither order is promised.
struct Arrays {
  std::map<std::string, std::vector<uint8_t>> planes;
  std::map<std::string, std::vector<int8_t>> meta;
  std::map<std::string, std::vector<Row>> analyses;
};

// From arrays on disk, with FENs beside them or read from the planes.
void ReadArrays(const std::string& folder, const std::string& split,
                const std::vector<std::string>* fens, Arrays& arrays) {
  const std::string prefix = folder + "/" + split + "_";
  const auto planes = Numbers<uint8_t>(prefix + "planes.npy");
  const auto meta = Numbers<int8_t>(prefix + "meta.npy");
  const auto data = Numbers<int32_t>(prefix + "analysis_data.npy");
  const auto offsets = Numbers<uint32_t>(prefix + "analysis_offsets.npy");
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const std::span<const uint8_t> these(&planes[i * kPlaneBytes], kPlaneBytes);
    const std::span<const int8_t> those(&meta[i * kMeta], kMeta);
    const std::string fen =
        fens != nullptr
            ? (*fens)[i]
            : chess::ToFen(BoardOf(*FromPlanes(these.first<kPlaneBytes>(), those.first<kMeta>())),
                           {.counters = false});
    EXPECT_FALSE(arrays.planes.contains(fen)) << fen << " is there twice";
    arrays.planes[fen].assign(these.begin(), these.end());
    arrays.meta[fen].assign(those.begin(), those.end());
    for (size_t row = offsets[i]; row < offsets[i + 1]; ++row) {
      Row numbers;
      std::copy_n(&data[row * 5], 5, numbers.begin());
      arrays.analyses[fen].push_back(numbers);
    }
    std::sort(arrays.analyses[fen].begin(), arrays.analyses[fen].end());
  }
}

Arrays MakeArrays(const std::vector<std::string>& input, const std::string& out) {
  PrecomputeOptions options;
  options.threads = 2;
  options.storage = Storage::kPlanes;
  Precompute(input, out, options);
  Arrays arrays;
  for (const char* split : {"train", "val", "test"}) ReadArrays(out, split, nullptr, arrays);
  return arrays;
}

// What the reference leaves as it came and we do not: castling by two squares of the king becomes
// king takes rook, and illegal moves are dropped.
std::vector<Row> AsWeKeepThem(const std::string& fen, std::vector<Row> rows) {
  const PackedPosition position = *PackFen(fen);
  const chess::Board board = BoardOf(position);
  std::vector<Row> kept;
  for (Row& row : rows) {
    const MoveWord word = NormalCastling(position, Vocabulary::Full()[row[0]]);
    if (!chess::ParseMove(board, word.Text(), chess::MoveStyle::kUciRook)) continue;
    row[0] = Vocabulary::Full().IndexOf(word);
    kept.push_back(row);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(GoldenPolicy, ArraysByFen) {
  const TempFolder folder;
  const std::vector<std::string> fens = Lines(Golden("expected/full/fens.txt"));
  Arrays expected;
  ReadArrays(Golden("expected/full"), "train", &fens, expected);
  for (const char* file : {"chess_position_evaluations.parquet", "lichess_db_eval.jsonl.zst"}) {
    const Arrays arrays = MakeArrays({Golden(std::string("rows/") + file)}, folder.File(file));
    ASSERT_EQ(arrays.planes.size(), fens.size());
    for (const std::string& fen : fens) {
      ASSERT_TRUE(arrays.planes.contains(fen)) << fen;
      EXPECT_EQ(arrays.planes.at(fen), expected.planes.at(fen)) << fen;
      EXPECT_EQ(arrays.meta.at(fen), expected.meta.at(fen)) << fen;
      EXPECT_EQ(arrays.analyses.at(fen), AsWeKeepThem(fen, expected.analyses.at(fen))) << fen;
    }
  }
  Compared(std::ssize(fens), "positions");
  const Json stats =
      Json::parse(ReadWhole(folder.File("lichess_db_eval.jsonl.zst/stats.json")))["stats"];
  EXPECT_EQ(stats, GoldenJson("expected/full/stats.json")["stats"]);
}

// Our three shards, merged, hold the analyses of the reference's three shards, which merge equal
// positions only within a shard: for each position, those of all its rows together.
TEST(GoldenPolicy, ShardsOfTheReference) {
  const TempFolder folder;
  const std::string rows = Golden("rows/chess_position_evaluations.parquet");
  for (uint64_t shard = 0; shard < 3; ++shard) {
    PrecomputeShard({rows}, folder.File("shards"), 3, shard, {.threads = 2});
  }
  Merge({folder.File("shards")}, folder.File("merged"),
        {.threads = 2, .shares = {0, 0}, .storage = Storage::kPlanes});
  Arrays ours;
  ReadArrays(folder.File("merged"), "train", nullptr, ours);
  const std::vector<std::string> fens = Lines(Golden("expected/shards3/fens.txt"));
  const auto meta = Numbers<int8_t>(Golden("expected/shards3/train_meta.npy"));
  const auto data = Numbers<int32_t>(Golden("expected/shards3/train_analysis_data.npy"));
  const auto offsets = Numbers<uint32_t>(Golden("expected/shards3/train_analysis_offsets.npy"));
  ASSERT_EQ(offsets.size(), fens.size() + 1);
  std::map<std::string, std::vector<Row>> expected;
  for (size_t i = 0; i < fens.size(); ++i) {
    ASSERT_TRUE(ours.meta.contains(fens[i])) << fens[i];
    EXPECT_EQ(ours.meta.at(fens[i]),
              std::vector<int8_t>(&meta[i * kMeta], &meta[i * kMeta] + kMeta))
        << fens[i];
    for (size_t row = offsets[i]; row < offsets[i + 1]; ++row) {
      Row numbers;
      std::copy_n(&data[row * 5], 5, numbers.begin());
      expected[fens[i]].push_back(numbers);
    }
  }
  EXPECT_EQ(ours.analyses.size(), expected.size());
  for (const auto& [fen, analyses] : expected) {
    EXPECT_EQ(ours.analyses[fen], AsWeKeepThem(fen, analyses)) << fen;
  }
}

TEST(GoldenPolicy, SmallVocabulary) {
  const TempFolder folder;
  const std::string rows = Golden("rows/chess_position_evaluations.parquet");
  Precompute({rows}, folder.File("packed"), {.threads = 2, .shares = {0, 0}});
  Export(folder.File("packed"), folder.File("small"),
         {.storage = Storage::kPlanes, .vocabulary = Golden("expected/vocab_from_rows.npy")});
  const std::vector<std::string> fens = Lines(Golden("expected/full/fens.txt"));
  Arrays ours;
  ReadArrays(folder.File("small"), "train", nullptr, ours);
  const Vocabulary small = Vocabulary::Read(Golden("expected/vocab_from_rows.npy"));
  const auto data =
      Numbers<int32_t>(Golden("expected/full/train_analysis_data_vocab_from_rows.npy"));
  const auto offsets = Numbers<uint32_t>(Golden("expected/full/train_analysis_offsets.npy"));
  for (size_t i = 0; i < fens.size(); ++i) {
    std::vector<Row> expected;
    for (size_t row = offsets[i]; row < offsets[i + 1]; ++row) {
      Row numbers;
      std::copy_n(&data[row * 5], 5, numbers.begin());
      const MoveWord word = NormalCastling(*PackFen(fens[i]), small[numbers[0]]);
      // The rows may have a castling by the king's two squares only.
      if (small.IndexOf(word) == kNoMove) continue;
      numbers[0] = small.IndexOf(word);
      expected.push_back(numbers);
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(ours.analyses[fens[i]], expected) << fens[i];
  }
}

// move -> share, as the files have it.
std::map<std::string, double> LabelOf(const std::vector<Row>& rows, bool black,
                                      const LabelOptions& options) {
  std::vector<Analysis> analyses;
  for (const Row& row : rows) {
    analyses.push_back({.knodes = static_cast<uint32_t>(row[2]),
                        .score = row[3],
                        .move = static_cast<uint16_t>(row[0]),
                        .depth_mate = Analysis::DepthMate(row[1], row[4] != 0)});
  }
  std::vector<MoveShare> shares;
  AppendLabel(analyses, black, options, shares);
  std::map<std::string, double> label;
  for (const MoveShare& share : shares) label[Vocabulary::Full()[share.move].Text()] = share.share;
  return label;
}

void ExpectLabel(const std::map<std::string, double>& label, const Json& expected,
                 const std::string& fen) {
  ASSERT_EQ(label.size(), expected.size()) << fen;
  for (const auto& [move, share] : expected.items()) {
    ASSERT_TRUE(label.contains(move)) << fen << " " << move;
    EXPECT_NEAR(label.at(move), share.get<double>(), 1e-9) << fen << " " << move;
  }
}

TEST(GoldenPolicy, SoftLabelsAndFlippedOnes) {
  const std::vector<std::string> fens = Lines(Golden("expected/full/fens.txt"));
  Arrays arrays;
  ReadArrays(Golden("expected/full"), "train", &fens, arrays);
  int flipped = 0;
  for (const std::string& line : Lines(Golden("expected/soft_labels.jsonl"))) {
    const Json item = Json::parse(line);
    const std::string fen = item["fen"];
    const std::vector<Row>& rows = arrays.analyses.at(fen);
    const bool black = PackFen(fen)->black_to_move();
    int deepest = 0;
    for (const Row& row : rows) deepest = std::max(deepest, row[1]);
    EXPECT_EQ(deepest, item["max_depth"].get<int>());
    ExpectLabel(LabelOf(rows, black, {.temperature = 50}), item["T50"], fen);
    ExpectLabel(LabelOf(rows, black, {.temperature = 120}), item["T120"], fen);
    EXPECT_EQ(item.contains("flip_idx_T50"), black);
    if (!black) continue;
    const auto label = LabelOf(rows, black, {.temperature = 50});
    for (const Json& pair : item["flip_idx_T50"]) {
      const uint16_t move = Vocabulary::Full().Flipped(pair[0].get<uint16_t>());
      EXPECT_NEAR(label.at(Vocabulary::Full()[move].Text()), pair[1].get<double>(), 1e-9);
      ++flipped;
    }
  }
  Compared(flipped, "moves of flipped labels");
}

TEST(GoldenPolicy, MinDepth) {
  const std::vector<std::string> fens = Lines(Golden("expected/full/fens.txt"));
  Arrays arrays;
  ReadArrays(Golden("expected/full"), "train", &fens, arrays);
  const Json golden = GoldenJson("expected/min_depth.json")["kept_position_indices_by_min_depth"];
  for (const auto& [depth, kept] : golden.items()) {
    std::vector<size_t> ours;
    for (size_t i = 0; i < fens.size(); ++i) {
      std::vector<Analysis> analyses;
      for (const Row& row : arrays.analyses.at(fens[i])) {
        analyses.push_back({.depth_mate = Analysis::DepthMate(row[1], false)});
      }
      if (DeepestOf(analyses) >= std::stoi(depth)) ours.push_back(i);
    }
    EXPECT_EQ(ours, kept.get<std::vector<size_t>>()) << depth;
  }
}

// One position of the odd rows, with what our data set must have of it.
struct OddPosition {
  std::vector<Row> rows;    // Castling as king takes rook.
  bool as_recorded = true;  // The reference has these very rows, under one FEN.
};

// The recorded positions by FEN of four fields. A FEN that is no chess position is left out.
std::map<std::string, OddPosition> OddPositions(const Json& golden, const Arrays& arrays) {
  std::map<std::string, OddPosition> positions;
  for (size_t i = 0; i < golden["fens"].size(); ++i) {
    const std::string fen = golden["fens"][i];
    const auto packed = PackFen(fen);
    if (!packed || !chess::ParseFen(fen)) continue;
    const std::string four = chess::ToFen(BoardOf(*packed), {.counters = false});
    if (!arrays.planes.contains(four)) {
      ADD_FAILURE() << fen << " is missing";
      continue;
    }
    const auto& meta = arrays.meta.at(four);
    EXPECT_EQ(Json(std::vector<int>(meta.begin(), meta.end())), golden["meta"][i]) << fen;
    Json marks = Json::array();
    for (int square = 0; square < kPlaneBytes; ++square) {
      if (arrays.planes.at(four)[static_cast<size_t>(square)] != 0) {
        marks.push_back({square / 64, square % 64 / 8, square % 8});
      }
    }
    EXPECT_EQ(marks, golden["planes_nonzero"][i]) << fen;
    std::vector<Row> recorded;
    const size_t end = golden["analysis_offsets"][i + 1].get<size_t>();
    for (size_t row = golden["analysis_offsets"][i].get<size_t>(); row < end; ++row) {
      recorded.push_back(golden["analysis_data"][row].get<Row>());
    }
    std::sort(recorded.begin(), recorded.end());
    const std::vector<Row> ours = AsWeKeepThem(fen, recorded);
    const bool first = !positions.contains(four);
    OddPosition& position = positions[four];
    position.as_recorded = position.as_recorded && first && ours == recorded;
    position.rows.insert(position.rows.end(), ours.begin(), ours.end());
    std::sort(position.rows.begin(), position.rows.end());
  }
  return positions;
}

// Differences from the reference, all on purpose: a FEN of six fields is the same position as the
// one of four, castling has one name, illegal moves are dropped, and what is no chess position is
// left out.
TEST(GoldenPolicy, OddRows) {
  const TempFolder folder;
  const Arrays arrays = MakeArrays({Golden("rows/edge_rows.parquet")}, folder.File("out"));
  const Json golden = GoldenJson("expected/edge_cases.json");
  const auto positions = OddPositions(golden, arrays);
  EXPECT_EQ(positions.size(), arrays.planes.size());
  for (const auto& [fen, position] : positions) {
    const auto ours = arrays.analyses.find(fen);
    EXPECT_EQ(ours == arrays.analyses.end() ? std::vector<Row>() : ours->second, position.rows)
        << fen;
  }
  Compared(std::ssize(positions), std::ssize(golden["fens"]), "odd positions");
  int labels = 0;
  for (const Json& item : golden["labels"]) {
    const std::string fen = item["fen"];
    const auto position = positions.find(fen);
    if (position == positions.end() || !position->second.as_recorded) continue;
    ExpectLabel(LabelOf(position->second.rows, PackFen(fen)->black_to_move(), {}), item["T50"],
                fen);
    ++labels;
  }
  Compared(labels, "labels of odd rows");
}

// Both layouts of the same evaluations give the same bytes, and those are good.
void ExpectSameBytes(const std::vector<std::string>& inputs) {
  const TempFolder folder;
  std::string first;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string out = folder.File(std::to_string(i));
    const Manifest manifest = Precompute({inputs[i]}, out, {.threads = 2});
    std::string bytes;
    for (const auto& [name, state] : manifest.files) bytes += ReadWhole(out + "/" + name);
    if (i == 0) first = bytes;
    EXPECT_TRUE(bytes == first) << inputs[i];
    const VerifyReport report = Verify(Dataset::Open(out), {});
    EXPECT_TRUE(report.good()) << report.faults.begin()->first;
    EXPECT_GT(report.legal_checked, 0U);
  }
}

TEST(GoldenPolicy, BothLayoutsGiveTheSameBytes) {
  ExpectSameBytes({Golden("rows/chess_position_evaluations.parquet"),
                   Golden("rows/lichess_db_eval.jsonl.zst")});
}

TEST(PolicyData, BothLayoutsGiveTheSameBytes) {
  std::vector<std::string> files;
  for (const char* ending : {".parquet", ".jsonl", ".jsonl.zst", ".jsonl.gz"}) {
    for (const std::string& file : testing::DataFiles("evals", ending)) files.push_back(file);
  }
  SKIP_WITHOUT(testing::DataFile("evals", ".parquet"));
  ExpectSameBytes(files);
}

}  // namespace
}  // namespace kibitz::policy
