// The 2048 student's data against recorded results: moves, packs, targets, augmentation.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "games/twenty48/slide.h"
#include "io/bytes/little_endian.h"
#include "io/tables/npy.h"
#include "io/tables/sqlite.h"
#include "students/twenty48/data/augment.h"
#include "students/twenty48/data/pack.h"
#include "students/twenty48/data/pack_writer.h"
#include "students/twenty48/data/targets.h"
#include "students/twenty48/play/model.h"
#include "tests/support/golden_kit.h"
#include "tests/support/test_data.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::Compared;
using kibitz::testing::GoldenPath;
using kibitz::testing::ReadWhole;
using kibitz::testing::TempFolder;
using kibitz::testing::Twenty48Models;
using Json = nlohmann::json;

Json Golden(const std::string& name) {
  return Json::parse(ReadWhole(GoldenPath("twenty48/" + name)));
}

Board BoardFrom(const Json& ranks) { return *Board::FromRanks(ranks.get<std::vector<int>>()); }

TEST(GoldenTwenty48, Moves) {
  const std::string text = ReadWhole(GoldenPath("twenty48/moves.jsonl"));
  int count = 0;
  for (std::string_view line : Split(text, '\n')) {
    if (Trim(line).empty()) continue;
    const Json object = Json::parse(line);
    const Board board = BoardFrom(object["board"]);
    EXPECT_EQ(fmt::format("{:016x}", board.packed()), object["packed_hex"]);
    EXPECT_EQ(board.Over32768(), object["tile_65536_mask"].get<int>());
    EXPECT_EQ(LegalMoves(board) == 0, object["game_over"].get<bool>());
    for (Move move : kMoves) {
      const Json& expected = object["moves"][std::string(NameOf(move))];
      const Slid slid = Slide(board, move);
      EXPECT_EQ(slid.board, BoardFrom(expected["board"])) << line;
      EXPECT_EQ(slid.points, expected["score"].get<int>()) << line;
      EXPECT_EQ(slid.legal(board), expected["legal"].get<bool>()) << line;
    }
    ++count;
  }
  Compared(count, "boards");
}

// The file with every row's board_eval set to 0: that is another program's heuristic.
std::string WithoutBoardEval(std::string bytes, size_t row_bytes) {
  const size_t text =
      10 + static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
  for (size_t at = text; at < bytes.size(); at += row_bytes) std::memset(&bytes[at + 16], 0, 4);
  return bytes;
}

TEST(GoldenTwenty48, PackByteForByte) {
  const TempFolder folder;
  const std::string out = folder.File("pack");
  PackRawGames(GoldenPath("twenty48/raws"), out, {.threads = 2});
  EXPECT_TRUE(ReadWhole(out + "/steps.npy") ==
              WithoutBoardEval(ReadWhole(GoldenPath("twenty48/pack/steps.npy")), 48));
  EXPECT_EQ(Trim(ReadWhole(out + "/valuation_types.json")),
            Trim(ReadWhole(GoldenPath("twenty48/pack/valuation_types.json"))));
  const auto dump = [](const std::string& path) {
    io::SqliteDb db(path, io::SqliteDb::Mode::kRead);
    std::string text;
    for (const io::SqliteTable& table : db.Tables()) {
      text += table.sql + "\n";
      auto rows = db.Prepare("SELECT * FROM " + io::SqliteName(table.name) + " ORDER BY 1");
      while (rows.Step()) {
        for (int i = 0; i < rows.columns(); ++i) text += std::string(rows.Text(i)) + " ";
        text += "\n";
      }
    }
    return text;
  };
  EXPECT_EQ(dump(out + "/metadata.db"), dump(GoldenPath("twenty48/pack/metadata.db")));
  const Pack ours = Pack::Open(out);
  const Json order = Golden("pack/run_order.json");
  ASSERT_EQ(ours.runs().size(), order.size());
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(ours.runs()[i].steps, order[i]["steps"]);
  Compared(static_cast<int64_t>(ours.rows()), "rows of the pack");
}

TEST(GoldenTwenty48, RowsOf46BytesReadAsThoseOf48) {
  const TempFolder folder;
  const std::string packed = folder.File("packed");
  std::filesystem::create_directories(packed);
  std::filesystem::copy_file(GoldenPath("twenty48/pack/steps_packed46.npy"), packed + "/steps.npy");
  for (const char* name : {"metadata.db", "valuation_types.json"}) {
    std::filesystem::copy_file(GoldenPath("twenty48/pack/") + name, packed + "/" + name);
  }
  const Pack narrow = Pack::Open(packed);
  const Pack wide = Pack::Open(GoldenPath("twenty48/pack"));
  EXPECT_EQ(narrow.row_bytes(), 46);
  ASSERT_EQ(narrow.rows(), wide.rows());
  for (uint64_t i = 0; i < wide.rows(); ++i) {
    const StepRow a = narrow.Row(i);
    const StepRow b = wide.Row(i);
    ASSERT_EQ(std::memcmp(&a, &b, sizeof(a)), 0) << i;
  }
  wide.CheckRows();
  Compared(static_cast<int64_t>(wide.rows()), "rows");
}

TEST(GoldenTwenty48, Augmentation) {
  const Json golden = Golden("augment.json");
  for (int turns = 0; turns < 4; ++turns) {
    const Json cells = golden["rotation_index_maps"][static_cast<size_t>(turns)];
    EXPECT_EQ(Json(CellMap({.turns = turns})), cells);
    EXPECT_EQ(Json(MoveMap({.turns = turns})),
              golden["rotation_move_map"][static_cast<size_t>(turns)]);
  }
  for (int flip = 0; flip < 3; ++flip) {
    EXPECT_EQ(Json(CellMap({.flip = flip})), golden["flip_index_maps"][static_cast<size_t>(flip)]);
    EXPECT_EQ(Json(MoveMap({.flip = flip})), golden["flip_move_map"][static_cast<size_t>(flip)]);
  }
  const auto row_of = [](const Json& item, const std::string& prefix) {
    const Board board = BoardFrom(item[prefix + "board"]);
    StepRow row;
    row.board = board.packed();
    row.tile_65536_mask = board.Over32768();
    row.move_dir = item[prefix + "move"].get<uint8_t>();
    row.ev_legal = item[prefix + "ev_legal"].get<uint8_t>();
    row.branch_evs = item[prefix + "branch_evs"].get<std::array<float, 4>>();
    return row;
  };
  for (const Json& item : golden["cases"]) {
    const StepRow out =
        Augmented(row_of(item, ""), {item["k"].get<int>(), item["axis"].get<int>()});
    const StepRow expected = row_of(item, "out_");
    ASSERT_EQ(std::memcmp(&out, &expected, sizeof(out)), 0) << item.dump();
  }
  Compared(std::ssize(golden["cases"]), "augmented rows");
}

BinningOptions BinningFrom(const Json& item) {
  BinningOptions options;
  options.strategy = item["strategy"] == "edges" ? BinStrategy::kEdges : BinStrategy::kUpperBounds;
  options.special_zero_one = item["special_zero_one"].get<bool>();
  options.edges = item["edges"].get<std::vector<double>>();
  return options;
}

TEST(GoldenTwenty48, Binning) {
  const Json golden = Golden("binning.json");
  int64_t values = 0;
  for (const Json& item : golden["binning"]) {
    const Binner binner(BinningFrom(item));
    EXPECT_EQ(binner.bins(), item["n_bins"].get<int>()) << item["name"];
    for (size_t i = 0; i < item["values"].size(); ++i) {
      const auto value = static_cast<float>(item["values"][i].get<double>());
      EXPECT_EQ(binner.BinOf(value), item["bins"][i].get<int>()) << item["name"] << " " << value;
      ++values;
    }
  }
  const Binner binner(BinningOptions{});
  for (const Json& item : golden["macroxue_rows_unnormalised"]) {
    for (size_t i = 0; i < 4; ++i) {
      const Json& value = item["branch_evs"][i];
      const float number = value.is_null() ? 0 : static_cast<float>(value.get<double>());
      EXPECT_EQ(binner.BinOf(number), item["bins_default"][i].get<int>());
      ++values;
    }
  }
  Compared(values, "binned values");
}

TEST(GoldenTwenty48, Normalisation) {
  const Binner binner(BinningOptions{});
  const Json golden = Golden("binning.json");
  for (const Json& item : golden["rust_run_normalisation"]) {
    Judged judged{.move = item["chosen"].get<int>()};
    std::array<double, 4> raw{};
    for (size_t i = 0; i < 4; ++i) {
      if (item["raw_ev"][i].is_null()) continue;
      judged.legal |= 1U << i;
      raw[i] = item["raw_ev"][i].get<double>();
    }
    EXPECT_EQ(judged.legal, item["ev_legal"].get<unsigned>());
    // Rows hold floats; the sources' values of millions of points lose too much there. The lowest
    // value is taken off first, which changes nothing.
    double low = 1e300;
    for (size_t i = 0; i < 4; ++i) {
      if ((judged.legal >> i & 1) != 0) low = std::min(low, raw[i]);
    }
    for (size_t i = 0; i < 4; ++i) judged.values[i] = static_cast<float>(raw[i] - low);
    const std::array<float, 4> values = Normalised(judged);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(values[i], item["ev_values"][i].get<float>(), 1e-6) << item.dump();
      EXPECT_EQ(binner.BinOf(values[i]), item["bins_default"][i].get<int>()) << item.dump();
    }
  }
  Compared(std::ssize(golden["rust_run_normalisation"]), "normalised positions");
}

TargetOptions TargetFrom(const Json& config) {
  TargetOptions options;
  FieldsOf(options).ReadTree(nlohmann::ordered_json::parse(config.dump()), "tsad.json");
  return options;
}

TEST(GoldenTwenty48, TsadTargets) {
  int64_t rows = 0;
  const Json golden = Golden("tsad.json");
  for (const Json& batch : golden["batches"]) {
    for (const Json& result : batch["results"]) {
      const TargetOptions options = TargetFrom(result["config"]);
      for (size_t row = 0; row < batch["positions"].size(); ++row) {
        const Json& position = batch["positions"][row];
        Judged judged{.values = position["branch_evs"].get<std::array<float, 4>>(),
                      .move = position["move"].get<int>()};
        for (size_t i = 0; i < 4; ++i) {
          judged.legal |= (position["legal"][i].get<bool>() ? 1U : 0U) << i;
        }
        const std::array<float, 4> targets = SoftTargets(judged, options);
        for (size_t i = 0; i < 4; ++i) {
          EXPECT_NEAR(targets[i], result["policy_targets"][row][i].get<float>(), 1e-6)
              << batch["name"] << " " << row << " " << position.dump() << result["config"];
        }
        ++rows;
      }
    }
  }
  Compared(rows, "softened targets");
}

std::vector<Board> BoardsFrom(const io::Tensor& tokens) {
  std::vector<Board> boards;
  for (size_t at = 0; at < tokens.bytes.size(); at += 16 * 8) {
    std::vector<int> ranks;
    for (size_t i = 0; i < 16; ++i) {
      ranks.push_back(static_cast<int>(io::LoadLittle<int64_t>(tokens.bytes, at + 8 * i)));
    }
    boards.push_back(*Board::FromRanks(ranks));
  }
  return boards;
}

float LargestGap(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float gap = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    gap = std::max(gap, std::abs(a[i] - b[i]));
  }
  return gap;
}

// The network at play, without torch.
TEST(GoldenTwenty48, ModelOutputs) {
  int64_t compared = 0;
  for (const std::string& folder : Twenty48Models()) {
    const auto numbers = [&](const std::string& file) {
      return io::ToFloats(io::NpyFile::Open(folder + "/" + file).AsTensor());
    };
    const std::vector<Board> boards =
        BoardsFrom(io::NpyFile::Open(folder + "/tokens.npy").AsTensor());
    const std::vector<float> hidden = numbers("hidden.npy");
    const std::vector<float> logits = numbers("logits.npy");
    for (nn::Precision precision : {nn::Precision::kF32, nn::Precision::kInt8}) {
      const float within = precision == nn::Precision::kF32 ? 1e-5F : 0.05F;
      Model model(io::ReadModel(folder), {.precision = precision, .threads = 2});
      std::vector<float> answers(logits.size());
      model.Answer(boards, answers.data());
      EXPECT_LT(LargestGap(answers, logits), within) << folder;
      std::vector<float> rows(hidden.size());
      model.Hidden(boards, rows.data());
      EXPECT_LT(LargestGap(rows, hidden), 10 * within) << folder;
    }
    compared += std::ssize(boards);
  }
  Compared(compared, "boards");
}

}  // namespace
}  // namespace kibitz::twenty48
