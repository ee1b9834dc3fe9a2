#include "io/bytes/tar_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "io/bytes/gunzip.h"
#include "tests/support/corruption.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::MessageOf;
using testing::ReadWhole;
using testing::RunCommand;
using testing::TempFolder;

std::map<std::string, std::string> FilesOf(std::unique_ptr<ByteSource> source) {
  TarReader tar(std::move(source));
  std::map<std::string, std::string> files;
  while (const auto entry = tar.Next()) files[entry->name] = tar.ReadAll();
  return files;
}

class TarReaderTest : public ::testing::Test {
 protected:
  TarReaderTest() {
    Add("empty", "");
    Add("small.txt", "some text");
    Add("block", std::string(512, 'b'));
    Add("large", std::string(3'000'000, 'x'));
    std::filesystem::create_directories(folder_.File("in/folder"));
    Add("folder/" + std::string(90, 'n') + "/" + std::string(90, 'm'), "under a long name");
    std::filesystem::create_symlink("small.txt", folder_.File("in/link"));
  }
  void Add(const std::string& name, const std::string& content) {
    const std::string path = folder_.File("in/" + name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
    files_[name] = content;
  }
  std::string Archive(const std::string& format, const std::string& flag = "-cf") {
    const std::string path = folder_.File(format + ".tar");
    std::vector<std::string> words = {"tar", "--format=" + format, flag, path,
                                      "-C",  folder_.File("in")};
    words.emplace_back("link");
    words.emplace_back("folder");
    for (const char* name : {"empty", "small.txt", "block", "large"}) words.emplace_back(name);
    EXPECT_EQ(RunCommand(words).code, 0);
    return path;
  }

  TempFolder folder_;
  std::map<std::string, std::string> files_;
};

TEST_F(TarReaderTest, ReadsWhatTarWrites) {
  for (const char* format : {"gnu", "pax", "ustar"}) {
    const std::string path = Archive(format);
    EXPECT_TRUE(LooksLikeTar(ReadWhole(path))) << format;
    EXPECT_EQ(FilesOf(OpenBytes(path)), files_) << format;
  }
  EXPECT_EQ(FilesOf(OpenBytes(Archive("gnu", "-czf"))), files_);
  EXPECT_FALSE(LooksLikeTar(std::string(512, '\0')));
  EXPECT_FALSE(LooksLikeTar("short"));
}

TEST_F(TarReaderTest, PassesOverFilesThatAreNotRead) {
  TarReader tar(OpenBytes(Archive("gnu")));
  size_t count = 0;
  while (const auto entry = tar.Next()) {
    EXPECT_EQ(entry->size, files_.at(entry->name).size());
    ++count;
  }
  EXPECT_EQ(count, files_.size());
}

TEST_F(TarReaderTest, DamageIsAnError) {
  std::filesystem::remove(folder_.File("in/large"));
  Add("large", "not so large");
  const std::string bytes = ReadWhole(Archive("gnu"));
  const auto read = [](std::string_view some) {
    FilesOf(MemoryBytes(std::string(some), "damaged.tar"));
  };
  const auto cut = testing::Cut(bytes, {.cut_every_byte_of = 4096, .random_cuts = 200}, read);
  EXPECT_GT(cut.errors, 4000);
  EXPECT_GT(testing::Flip(bytes, {.flips = 2000}, read).errors, 500);
  EXPECT_NE(MessageOf([&] { read(bytes.substr(0, 700)); }).find("cut short"), std::string::npos);
}

TEST(GunzipTest, UnpacksAllMembersWithinTheLimit) {
  TempFolder folder;
  const std::string text(500'000, 'a');
  for (const char* name : {"one", "two"}) std::ofstream(folder.File(name)) << text << name;
  ASSERT_EQ(RunCommand({"gzip", folder.File("one"), folder.File("two")}).code, 0);
  const std::string packed = ReadWhole(folder.File("one.gz")) + ReadWhole(folder.File("two.gz"));
  std::string out;
  EXPECT_TRUE(Gunzip(packed, 2'000'000, out));
  EXPECT_EQ(out, text + "one" + text + "two");
  EXPECT_FALSE(Gunzip(packed, 1'000'000, out));
  EXPECT_TRUE(out.empty());
  EXPECT_FALSE(Gunzip(packed.substr(0, packed.size() - 1), 2'000'000, out));
  EXPECT_FALSE(Gunzip("no gzip", 2'000'000, out));
  EXPECT_TRUE(LooksLikeGzip(packed));
  EXPECT_FALSE(LooksLikeGzip("no gzip"));
}

}  // namespace
}  // namespace kibitz::io
