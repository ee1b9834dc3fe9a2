// "kibitz file show" and "file convert" as users run them, on files made here and on all the data
// at hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "io/runs/tensorboard.h"
#include "io/tables/parquet.h"
#include "io/tables/sqlite.h"
#include "io/weights/safetensors.h"
#include "io/weights/torch_file.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using testing::Ran;

Ran File(std::vector<std::string> words) {
  words.insert(words.begin(), {testing::ProgramPath("kibitz"), "file"});
  return testing::RunCommand(words);
}

json Shown(const std::string& path) {
  const Ran ran = File({"show", path, "--json", "--quiet"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return json::parse(ran.out, nullptr, false);
}

json Checked(const std::string& path, int code) {
  const Ran ran = testing::RunCommand(
      {testing::ProgramPath("kibitz"), "data", "check", path, "--json", "--quiet"});
  EXPECT_EQ(ran.code, code) << path << ran.err;
  return json::parse(ran.out, nullptr, false);
}

class FileCliTest : public ::testing::Test {
 protected:
  testing::TempFolder folder_;
};

constexpr const char* kRows =
    "{\"fen\":\"8/8 w - -\",\"cp\":12,\"pvs\":[{\"line\":\"e2e4\"}]}\n"
    "{\"fen\":\"x\",\"cp\":-3.5,\"new\":true}\n"
    "not json\n"
    "{\"fen\":null}\n";

// What a download is, and that one that was cut is not whole.
TEST_F(FileCliTest, ChecksDownloads) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"examples/arena/puzzles.csv", "puzzles"},
      {"examples/arena/suite.epd", "FEN or EPD"},
      {"examples/decoder/games.parquet", "games for the decoder"},
      {"examples/decoder/searches.parquet", "searched positions"},
      {"examples/immortal.pgn", "PGN"},
      {"examples/lc0/game.gz", "lc0 training data"},
      {"models/policy-small/model.safetensors", "a network"},
      {"tests/fuzz/corpus/lc0_rows/one.tar.gz", "lc0 training data"}};
  for (const auto& [name, what] : files) {
    const json whole = Checked(testing::SourcePath(name), 0);
    EXPECT_EQ(whole["whole"], true) << name;
    EXPECT_THAT(whole["what"].get<std::string>(), HasSubstr(what)) << name;
    EXPECT_FALSE(whole["uses"].empty()) << name;
    if (name.ends_with(".epd")) continue;  // A list of positions has no end to look for.
    const std::string bytes = testing::ReadWhole(testing::SourcePath(name));
    const std::string cut = folder_.File(fs::path(name).filename());
    WriteFileAtomically(cut, bytes.substr(0, bytes.size() * 2 / 3));
    const json part = Checked(cut, 1);
    EXPECT_EQ(part["whole"], false) << name;
    EXPECT_FALSE(part["problem"].get<std::string>().empty()) << name;
  }
  EXPECT_EQ(Checked(folder_.File("missing"), 1)["whole"], false);
}

TEST_F(FileCliTest, ShowsArchivesAndLc0Rows) {
  const json rows = Shown(testing::SourcePath("examples/lc0/game.gz"));
  EXPECT_EQ(rows["format"], "lc0 training data");
  EXPECT_EQ(rows["version"], 6);
  EXPECT_EQ(rows["rows"], 51);
  EXPECT_EQ(rows["input_formats"], (json{{"1 (112 planes)", 51}}));
  const json tar = Shown(testing::SourcePath("tests/fuzz/corpus/lc0_rows/one.tar.gz"));
  EXPECT_EQ(tar["format"], "tar");
  EXPECT_EQ(tar["file_count"], 1);
  EXPECT_EQ(tar["files"][0]["name"], "a/game.gz");
  EXPECT_THAT(tar["first_file"].get<std::string>(), HasSubstr("version 6, 2 rows"));
}

TEST_F(FileCliTest, ShowsJsonLines) {
  WriteFileAtomically(folder_.File("rows.jsonl"), kRows);
  const json shown = Shown(folder_.File("rows.jsonl"));
  EXPECT_EQ(shown["format"], "jsonl");
  EXPECT_EQ(shown["lines"], 4);
  EXPECT_EQ(shown["broken_lines"], 1);
  EXPECT_THAT(shown["first_problem"].get<std::string>(), HasSubstr("line 3"));
  EXPECT_EQ(shown["keys"][0], (json{{"name", "fen"}, {"type", "null or text"}, {"count", 3}}));
  const Ran text = File({"show", folder_.File("rows.jsonl"), "--rows", "1"});
  EXPECT_THAT(text.out, HasSubstr("double or int"));
  EXPECT_THAT(text.out, HasSubstr("first rows"));
}

TEST_F(FileCliTest, RefusesBadLinesUnlessToldToSkipThem) {
  std::ofstream(folder_.File("bad.jsonl")) << "{\"a\":1}\n{\"a\":\nnot json\n{\"a\":2}\n";
  Ran ran = File({"convert", folder_.File("bad.jsonl"), "--out", folder_.File("bad.parquet")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, ::testing::AllOf(HasSubstr("bad.jsonl, line 2"), HasSubstr("--skip-bad")));
  EXPECT_FALSE(testing::Exists(folder_.File("bad.parquet")));
  ran = File({"convert", folder_.File("bad.jsonl"), "--out", folder_.File("bad.parquet"),
              "--skip-bad", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["skipped"], 2);
}

TEST_F(FileCliTest, AZeroByteIsNoJson) {
  std::ofstream(folder_.File("zero.json")) << std::string("123\0", 4);
  EXPECT_EQ(File({"show", folder_.File("zero.json")}).code, 1);
  std::ofstream(folder_.File("zero.jsonl")) << std::string("123\0\n{\"a\":1}\n", 13);
  const Ran ran = File({"show", folder_.File("zero.jsonl"), "--json"});
  EXPECT_EQ(json::parse(ran.out)["broken_lines"], 1);
}

TEST_F(FileCliTest, ModelsThatShipHaveAChecksum) {
  size_t models = 0;
  for (const auto& entry : fs::directory_iterator(testing::SourcePath("models"))) {
    const std::string weights = (entry.path() / "model.safetensors").string();
    EXPECT_EQ(Shown(weights)["checksum"], "crc32c, right") << weights;
    ++models;
  }
  EXPECT_GT(models, 2U);
}

TEST_F(FileCliTest, AnEmptyModelIsCalledEmpty) {
  for (const char* name : {"empty.pb.gz", "empty.gz", "empty"}) {
    std::ofstream(folder_.File(name)).flush();
    const Ran ran = testing::RunCommand({testing::ProgramPath("kibitz"), "oracle", "search",
                                         "--net", folder_.File(name), "--nodes", "2"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, ::testing::Not(HasSubstr("zip")));
  }
}

TEST_F(FileCliTest, ShowsAndChecksTheChecksum) {
  Ran ran = File({"convert", testing::ModelPath("policy-small") + "/model.safetensors", "--out",
                  folder_.File("a.pt")});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ran = File({"show", folder_.File("a.pt")});
  EXPECT_THAT(ran.out, HasSubstr("crc32c, right"));
  std::fstream file(folder_.File("a.pt"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(folder_.File("a.pt")) / 2));
  file << "x";
  file.close();
  ran = File({"show", folder_.File("a.pt")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("checksum is wrong"));
}

TEST_F(FileCliTest, ConvertsRowsThereAndBack) {
  const std::string rows = folder_.File("rows.jsonl");
  const std::string parquet = folder_.File("rows.parquet");
  const std::string again = folder_.File("again.jsonl.zst");
  WriteFileAtomically(rows, kRows);
  Ran ran = File({"convert", rows, "--out", parquet, "--skip-bad", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["rows"], 3);
  EXPECT_EQ(json::parse(ran.out)["skipped"], 1);
  EXPECT_THAT(ran.err, HasSubstr("line 3"));
  const json shown = Shown(parquet);
  EXPECT_EQ(shown["rows"], 3);
  EXPECT_EQ(shown["columns"][1], (json{{"name", "cp"}, {"type", "DOUBLE"}, {"read_as", "double"}}));
  ran = File({"convert", parquet, "--out", again});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json back = Shown(again);
  EXPECT_EQ(back["compression"], "zstd");
  EXPECT_EQ(back["first_rows"][0],
            (json{{"fen", "8/8 w - -"}, {"cp", 12.0}, {"pvs", "[{\"line\":\"e2e4\"}]"}}));
  EXPECT_EQ(back["first_rows"][1], (json{{"fen", "x"}, {"cp", -3.5}, {"new", true}}));
  // Unpacking is a conversion too.
  ran = File({"convert", again, "--out", folder_.File("plain.jsonl")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Shown(folder_.File("plain.jsonl"))["lines"], 3);
}

TEST_F(FileCliTest, RefusesWithARemedy) {
  const std::string rows = folder_.File("rows.jsonl");
  WriteFileAtomically(rows, kRows);
  WriteFileAtomically(folder_.File("there.parquet"), "x");
  Ran ran = File({"convert", rows, "--out", folder_.File("there.parquet")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("--force"));
  ran = File({"convert", rows, "--out", folder_.File("a.npy")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("known: .pt <-> .safetensors"));
  EXPECT_EQ(File({"convert", rows, "--out", rows}).code, 2);
  ran = File({"show", folder_.File("absent.pt")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("no such file"));
  ran = File({"show", folder_.File("there.parquet")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("there.parquet"));
  WriteFileAtomically(folder_.File("no.jsonl"), "1\n2\n");
  ran = File(
      {"convert", folder_.File("no.jsonl"), "--out", folder_.File("no.parquet"), "--skip-bad"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("nothing to convert"));
  EXPECT_FALSE(testing::Exists(folder_.File("no.parquet")));
}

TEST_F(FileCliTest, ShowsDatabasesEventsTextAndDocuments) {
  {
    io::SqliteDb db(folder_.File("runs.db"), io::SqliteDb::Mode::kWrite);
    db.Execute("CREATE TABLE runs (id INTEGER, name TEXT); INSERT INTO runs VALUES (1, 'a')");
    io::TensorBoardWriter board(folder_.File("run"), {.wall_time = 1});
    board.Write(10, 2, {{"loss", 0.5}});
    board.Write(20, 3, {{"loss", 0.25}});
    const json events = Shown(board.path());
    EXPECT_EQ(events["tags"][0]["count"], 2);
    EXPECT_EQ(events["tags"][0]["last_value"], 0.25);
  }
  const json db = Shown(folder_.File("runs.db"));
  EXPECT_EQ(db["tables"][0]["name"], "runs");
  EXPECT_EQ(db["tables"][0]["rows"], 1);
  EXPECT_EQ(db["first_rows"][0]["name"], "a");
  WriteFileAtomically(folder_.File("a.txt"), "one\ntwo\n");
  EXPECT_EQ(Shown(folder_.File("a.txt"))["lines"], 2);
  WriteFileAtomically(folder_.File("a.json"), "{\"a\": [1,\n2]}");
  EXPECT_EQ(Shown(folder_.File("a.json"))["items"][0]["name"], "a");
}

// People see long values cut; programs get them whole, so that JSON within metadata parses.
TEST_F(FileCliTest, JsonCutsNothing) {
  const std::string config = json{{"name", std::string(1000, 'x')}, {"layers", 3}}.dump();
  const std::string path = folder_.File("model.safetensors");
  io::WriteSafetensors(path, {.tensors = {}, .metadata = {{"config", config}}});
  EXPECT_EQ(Shown(path)["metadata"]["config"], config);
  EXPECT_THAT(File({"show", path}).out, HasSubstr("xxx..."));

  io::WritePt(folder_.File("run.pt"),
              io::Value::Dict({{io::Value::String("config"), io::Value::String(config)},
                               {io::Value::String("step"), io::Value::Int(7)}}));
  const json values = Shown(folder_.File("run.pt"))["values"];
  EXPECT_EQ(values[0]["value"], config);
  EXPECT_EQ(values[1]["value"], 7);

  const json list(2000, 5);
  WriteFileAtomically(folder_.File("a.json"), json{{"list", list}}.dump());
  EXPECT_EQ(Shown(folder_.File("a.json"))["items"][0]["value"], list);
  WriteFileAtomically(folder_.File("a.jsonl"), json{{"list", list}}.dump() + "\n");
  EXPECT_EQ(Shown(folder_.File("a.jsonl"))["first_rows"][0]["list"], list);
  const std::string line(100'000, 'y');
  WriteFileAtomically(folder_.File("a.txt"), line + "\n");
  EXPECT_EQ(Shown(folder_.File("a.txt"))["first_rows"][0], line);
}

// Kits may have a folder of files that a reader should refuse.
bool IsBadOnPurpose(const fs::path& path) {
  for (const fs::path& part : path) {
    for (const char* word : {"bad", "broken", "damaged", "hostile", "corrupt", "truncated"}) {
      if (part.string().find(word) != std::string::npos) return true;
    }
  }
  return false;
}

// Whatever the folders hold in formats we know opens and shows, whole.
void ShowAll(const std::string& folder) {
  const std::set<std::string> known = {".parquet", ".jsonl",       ".zst", ".gz",  ".npy",
                                       ".pt",      ".safetensors", ".db",  ".json"};
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || !known.contains(entry.path().extension())) continue;
    if (IsBadOnPurpose(entry.path())) {
      const Ran ran = File({"show", entry.path(), "--json", "--quiet"});
      EXPECT_TRUE(ran.code == 0 || (ran.code == 1 && !ran.err.empty())) << entry.path();
      continue;
    }
    const json shown = Shown(entry.path());
    ASSERT_TRUE(shown.is_object()) << entry.path();
    EXPECT_GT(shown["bytes"], 0) << entry.path();
    EXPECT_EQ(shown.value("broken_lines", 0), 0) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0) << folder;
}

TEST(FileDataTest, GoldenFilesShow) { ShowAll(testing::GoldenPath("")); }

TEST(FileDataTest, DataFilesShow) {
  SKIP_WITHOUT(testing::DataPath(""));
  ShowAll(testing::DataPath(""));
}

// The wider golden kit, where it lies beside the data.
TEST(FileDataTest, GoldenKitBesideTheDataShows) {
  SKIP_WITHOUT(testing::DataPath("../golden"));
  ShowAll(testing::DataPath("../golden"));
}

TEST(FileDataTest, WeightsConvertThereAndBack) {
  testing::TempFolder folder;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(testing::GoldenPath(""))) {
    if (entry.path().extension() != ".pt") continue;
    const std::string safetensors = folder.File(std::to_string(files) + ".safetensors");
    const std::string again = folder.File(std::to_string(files) + ".pt");
    Ran ran = File({"convert", entry.path(), "--out", safetensors});
    ASSERT_EQ(ran.code, 0) << ran.err;
    ran = File({"convert", safetensors, "--out", again});
    ASSERT_EQ(ran.code, 0) << ran.err;
    json before = Shown(entry.path());
    json after = Shown(again);
    EXPECT_EQ(before["tensor_count"], after["tensor_count"]);
    EXPECT_EQ(before["elements"], after["elements"]);
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace kibitz
