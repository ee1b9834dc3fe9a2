// Values that cannot be right: weights that are NaN or infinite, numbers out of range, data sets of
// nothing, games without moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tables/npy.h"
#include "io/weights/model_file.h"
#include "io/weights/torch_file.h"
#include "tests/support/small_runs.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Ran;
using testing::TempFolder;

Ran Kibitz(std::vector<std::string> words) {
  words.insert(words.begin(), testing::ProgramPath("kibitz"));
  return testing::RunCommand(words);
}

// A copy of the model with one wrong weight in its last tensor, whose name is returned.
std::string Spoil(const std::string& model, const std::string& folder, float wrong) {
  const io::ModelFile file = io::ReadModel(model);
  std::vector<io::NamedTensor> tensors = file.weights.tensors();
  io::NamedTensor& last = tensors.back();
  EXPECT_EQ(last.tensor.type, io::DType::kF32);
  std::vector<std::byte> bytes(last.tensor.bytes.begin(), last.tensor.bytes.end());
  std::memcpy(bytes.data() + bytes.size() - sizeof(float), &wrong, sizeof(float));
  last.tensor = io::OwnedTensor(io::DType::kF32, last.tensor.shape, std::move(bytes));
  io::WriteModel(folder, io::StateDict(tensors, "spoiled"), *file.Section("model"));
  return tensors.back().name;
}

void ExpectNamed(const Ran& ran, const std::string& tensor) {
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_THAT(ran.err, AllOf(HasSubstr(tensor), HasSubstr("NaN or infinite")));
}

TEST(ValuesTest, WeightsThatAreNotFiniteAreNamed) {
  const TempFolder folder;
  for (float wrong :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const std::string policy = folder.File("policy");
    const std::string tensor = Spoil(testing::ModelPath("policy-small"), policy, wrong);
    ExpectNamed(Kibitz({"policy", "predict", "--model", policy}), tensor);
    ExpectNamed(Kibitz({"oracle", "search", "--net", policy, "--nodes", "4"}), tensor);
    const std::string decoder = folder.File("decoder");
    const std::string other = Spoil(testing::GoldenPath("decoder/tiny.pt"), decoder, wrong);
    ExpectNamed(Kibitz({"decoder", "predict", "--model", decoder}), other);
    ExpectNamed(Kibitz({"decoder", "think", "--model", decoder}), other);
  }
}

std::string Row(const std::string& depth, const std::string& knodes, const std::string& score) {
  return "{\"fen\":\"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq "
         "-\",\"evals\":[{\"depth\":" +
         depth + ",\"knodes\":" + knodes + ",\"pvs\":[{" + score + ",\"line\":\"e2e4 e7e5\"}]}]}\n";
}

TEST(ValuesTest, NumbersOutOfRangeAreCountedAndLeftOut) {
  const TempFolder folder;
  const std::string input = folder.File("evals.jsonl");
  std::ofstream(input) << Row("30", "100", "\"cp\":20")
                       << Row("30", "100", "\"cp\":4611686018427387904")
                       << Row("-1000000000000", "100", "\"cp\":20") << Row("30", "-5", "\"cp\":20")
                       << Row("30", "100", "\"mate\":-9999999");
  const Ran ran = Kibitz({"policy", "precompute", input, "--out", folder.File("data"), "--memory",
                          "128M", "--val-share", "0", "--test-share", "0"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json manifest = json::parse(testing::ReadWhole(folder.File("data/manifest.json")));
  EXPECT_EQ(manifest["left_out"]["out_of_range"], 4);
  const json verified =
      json::parse(Kibitz({"policy", "verify", folder.File("data"), "--json"}).out);
  EXPECT_EQ(verified["splits"]["train"]["analyses"], 1) << verified;
}

TEST(ValuesTest, AnInputWithoutAValidRowFails) {
  const TempFolder folder;
  std::ofstream(folder.File("bad.jsonl")) << Row("-3", "100", "\"cp\":20");
  std::ofstream(folder.File("none.jsonl")) << "\n";
  for (const char* name : {"bad.jsonl", "none.jsonl"}) {
    const Ran ran = Kibitz({"policy", "precompute", folder.File(name), "--out",
                            folder.File(std::string(name) + ".data"), "--memory", "128M"});
    EXPECT_EQ(ran.code, 1) << ran.out;
    EXPECT_THAT(ran.err, HasSubstr("no valid row"));
    EXPECT_FALSE(fs::exists(folder.File(std::string(name) + ".data/manifest.json")));
  }
}

// Arrays without a row, as another program may leave them.
TEST(ValuesTest, VerifyingADataSetOfNothingFails) {
  const TempFolder folder;
  for (const std::string split : {"train", "val", "test"}) {
    const auto write = [&](const char* name, io::DType type, std::vector<int64_t> shape,
                           std::span<const std::byte> content) {
      io::NpyWriter writer(folder.File(split + name), io::NpyLayout::Of(type), std::move(shape));
      writer.Append(content);
      writer.Commit();
    };
    const std::vector<std::byte> one_offset(4);
    write("_planes.npy", io::DType::kU8, {13, 8, 8}, {});
    write("_meta.npy", io::DType::kI8, {5}, {});
    write("_analysis_data.npy", io::DType::kI32, {5}, {});
    write("_analysis_offsets.npy", io::DType::kU32, {}, one_offset);
  }
  const Ran ran = Kibitz({"policy", "verify", folder.path()});
  EXPECT_EQ(ran.code, 1) << ran.out;
  EXPECT_THAT(ran.out + ran.err, HasSubstr("without a position"));
}

TEST(ValuesTest, GamesWithoutMovesDoNotLeakIntoTheNext) {
  const TempFolder folder;
  std::ofstream(folder.File("a.pgn"))
      << "[Event \"empty\"]\n[FEN \"4k3/8/8/8/8/8/8/4K3 w - - 0 1\"]\n"
         "[SetUp \"1\"]\n[Result \"1/2-1/2\"]\n\n"
         "[Event \"real\"]\n\n1. e4 e5 *\n";
  const Ran ran = Kibitz({"chess", "pgn", folder.File("a.pgn"), "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const size_t end = ran.out.find('\n');
  const json first = json::parse(ran.out.substr(0, end));
  const json second = json::parse(ran.out.substr(end + 1));
  EXPECT_EQ(first["result"], "1/2-1/2");
  EXPECT_EQ(first["plies"], 0);
  EXPECT_EQ(second["tags"], (json{{"Event", "real"}}));
  EXPECT_EQ(second["moves"].size(), 2U);
}

TEST(ValuesTest, FilesOfHeadersOnlyAreRead) {
  const TempFolder folder;
  {
    std::ofstream out(folder.File("a.pgn"));
    for (int i = 0; i < 109; ++i) {
      for (const char* tag : {"Event", "Site", "Date", "Round", "White", "Black", "Result", "ECO",
                              "WhiteElo", "BlackElo"}) {
        out << "[" << tag << " \"?\"]\n";
      }
      out << "\n";
    }
    out << "[Event \"real\"]\n\n1. d4 d5 1-0\n";
  }
  const Ran ran = Kibitz({"chess", "pgn", folder.File("a.pgn")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("110 games, 2 moves"));
  EXPECT_THAT(ran.out, HasSubstr("; 0 broken games"));
}

TEST(ValuesTest, AFileOfBrokenGamesFails) {
  const TempFolder folder;
  std::ofstream(folder.File("a.pgn")) << "[Event \"x\"]\n\n1. e5 *\n";
  EXPECT_EQ(Kibitz({"chess", "pgn", folder.File("a.pgn")}).code, 1);
}

TEST(ValuesTest, CutechessChess960IsRead) {
  const TempFolder folder;
  std::ofstream(folder.File("a.pgn"))
      << "[Variant \"fischerandom\"]\n[SetUp \"1\"]\n"
         "[FEN \"bbrnnkrq/pppppppp/8/8/8/8/PPPPPPPP/BBRNNKRQ w GCgc - 0 1\"]\n\n1. e4 e5 *\n";
  const Ran ran = Kibitz({"chess", "pgn", folder.File("a.pgn")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("1 games"));
}

}  // namespace
}  // namespace kibitz
