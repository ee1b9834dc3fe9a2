#include <gtest/gtest.h>

#include "base/error.h"
#include "io/bytes/little_endian.h"
#include "io/bytes/zip_reader.h"
#include "io/bytes/zip_writer.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::TempFolder;

std::string ZipOf(const std::vector<std::pair<std::string, std::string>>& entries,
                  uint64_t zip64_from = 0xffffffff) {
  const TempFolder folder;
  ZipWriter zip(folder.File("x.zip"), zip64_from);
  for (const auto& [name, bytes] : entries) zip.Add(name, bytes);
  zip.Finish();
  return testing::ReadWhole(folder.File("x.zip"));
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void ExpectError(const std::string& zip, const std::string& part) {
  try {
    const ZipReader reader(BytesOf(zip), "test");
    ADD_FAILURE() << "no error with " << part;
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

// The zip with bytes replaced at an offset.
std::string Patched(std::string zip, size_t at, const std::string& bytes) {
  return zip.replace(at, bytes.size(), bytes);
}

template <typename T>
std::string Little(T value) {
  std::string out;
  AppendLittle(out, value);
  return out;
}

const std::string& Sample() {
  static const std::string zip = ZipOf({{"a/one", "first"}, {"a/two", std::string(1000, 'x')}});
  return zip;
}
size_t CentralOf(const std::string& zip) { return zip.find("PK\x01\x02"); }
size_t EndOf(const std::string& zip) { return zip.rfind("PK\x05\x06"); }

TEST(Zip, WritesAlignedEntriesAndReadsThem) {
  for (uint64_t zip64_from : {uint64_t{0xffffffff}, uint64_t{0}, uint64_t{100}}) {
    const std::string zip =
        ZipOf({{"a/one", "first"}, {"a/zwei", ""}, {"a/ü", std::string(100000, 'x')}}, zip64_from);
    const ZipReader reader(BytesOf(zip), "test");
    ASSERT_EQ(reader.entries().size(), 3);
    for (const ZipReader::Entry& entry : reader.entries()) {
      EXPECT_EQ((entry.raw.data() - BytesOf(zip).data()) % 64, 0);
    }
    EXPECT_EQ(reader.Find("a/one")->raw.size(), 5);
    EXPECT_EQ(reader.Find("a/zwei")->raw.size(), 0);
    EXPECT_EQ(reader.Find("a/ü")->raw.size(), 100000);
    EXPECT_EQ(reader.Find("a/none"), nullptr);
  }
}

TEST(Zip, WritesMoreEntriesThanSixteenBitsCount) {
  const TempFolder folder;
  ZipWriter zip(folder.File("x.zip"));
  for (int i = 0; i < 66000; ++i) zip.Add(fmt::format("a/{}", i), "");
  zip.Finish();
  const std::string bytes = testing::ReadWhole(folder.File("x.zip"));
  const ZipReader reader(BytesOf(bytes), "test");
  EXPECT_EQ(reader.entries().size(), 66000);
  EXPECT_NE(reader.Find("a/65999"), nullptr);
}

TEST(Zip, PythonChecksWhatWeWrite) {
  const TempFolder folder;
  const std::string script =
      "import sys,zipfile\nz=zipfile.ZipFile(sys.argv[1])\nprint(z.testzip(),len(z.namelist()))\n"
      "print(len(z.read('a/big')))";
  for (uint64_t zip64_from : {uint64_t{0xffffffff}, uint64_t{0}, uint64_t{1000}}) {
    ZipWriter zip(folder.File("x.zip"), zip64_from);
    zip.Add("a/one", "first");
    zip.Add("a/big", std::string(3 << 20, 'y'));
    zip.Finish();
    const auto ran = testing::RunCommand({"python3", "-c", script, folder.File("x.zip")});
    if (ran.code == 127) GTEST_SKIP() << "python3 is not installed";
    EXPECT_EQ(ran.out, "None 2\n3145728\n") << ran.err;
  }
}

TEST(Zip, RefusesWhatIsNoWholeZip) {
  ExpectError("", "too short for a zip");
  ExpectError(std::string(100, 'x'), "found no zip end record");
  ExpectError(Sample() + "x", "found no zip end record");
  ExpectError("x" + Sample(), "does not end where the end record begins");
}

TEST(Zip, RefusesBrokenEndRecords) {
  const size_t end = EndOf(Sample());
  ExpectError(Patched(Sample(), end + 4, "\1"), "split over several files");
  ExpectError(Patched(Sample(), end + 8, Little<uint16_t>(1)), "split over several files");
  ExpectError(Patched(Sample(), end + 8, Little<uint32_t>(0xffffffff)), "found 65535 entries in a");
  ExpectError(Patched(Sample(), end + 8, Little<uint32_t>(0x00010001)), "directory is longer");
  ExpectError(Patched(Sample(), end + 12, Little<uint32_t>(0xffffffff)), "does not end where");
  ExpectError(Patched(Sample(), end + 16, Little<uint32_t>(0xffffffff)), "does not end where");
}

TEST(Zip, RefusesBrokenZip64Records) {
  const std::string zip = ZipOf({{"a/one", "first"}}, 0);
  const size_t locator = EndOf(zip) - 20;
  const size_t wide = locator - 56;
  ExpectError(Patched(zip, locator + 8, Little<uint64_t>(~uint64_t{0})), "points to no zip64");
  ExpectError(Patched(zip, locator + 8, Little<uint64_t>(0)), "points to no zip64");
  ExpectError(Patched(zip, locator + 16, Little<uint32_t>(2)), "split over several files");
  ExpectError(Patched(zip, wide + 4, Little<uint64_t>(~uint64_t{0})), "points to no zip64");
  ExpectError(Patched(zip, wide + 24, Little<uint64_t>(~uint64_t{0})), "disagrees with the end");
  ExpectError(Patched(zip, wide + 24, Little<uint64_t>(2) + Little<uint64_t>(2)),
              "disagrees with the end");
  ExpectError(Patched(zip, wide + 48, Little<uint64_t>(~uint64_t{0})), "does not end where");
}

TEST(Zip, RefusesToReadCompressedEntries) {
  const std::string zip = Patched(Sample(), CentralOf(Sample()) + 10, Little<uint16_t>(8));
  const ZipReader reader(BytesOf(zip), "test");
  EXPECT_EQ(reader.Content(*reader.Find("a/two")).size(), 1000);
  try {
    reader.Content(*reader.Find("a/one"));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("entry 'a/one' is compressed (method 8)"), std::string::npos);
  }
}

TEST(Zip, RefusesBrokenEntries) {
  const size_t central = CentralOf(Sample());
  ExpectError(Patched(Sample(), central, "x"), "found no directory entry");
  ExpectError(Patched(Sample(), central + 8, Little<uint16_t>(1)), "entry 'a/one' is encrypted");
  ExpectError(Patched(Sample(), central + 20, Little<uint32_t>(4)), "is said to be of 5 and of 4");
  ExpectError(Patched(Sample(), central + 28, Little<uint16_t>(0xffff)), "runs past the directory");
  ExpectError(Patched(Sample(), central + 34, Little<uint16_t>(1)), "split over several files");
  ExpectError(Patched(Sample(), central + 42, Little<uint32_t>(0xfffffff0)), "found no header of");
  ExpectError(Patched(Sample(), central + 46, "b"), "has another name");
  ExpectError(
      Patched(Sample(), central + 20, Little<uint32_t>(0x7fffffff) + Little<uint32_t>(0x7fffffff)),
      "runs past the data");
  ExpectError(Patched(Sample(), central + 20, Little<uint32_t>(500) + Little<uint32_t>(500)),
              "two entries overlap");
  ExpectError(ZipOf({{"a", "1"}, {"a", "2"}}), "entry 'a' occurs twice");
  const std::string wide = ZipOf({{"a/one", "first"}}, 0);
  ExpectError(Patched(wide, CentralOf(wide) + 46 + 5 + 4,
                      Little<uint64_t>(~uint64_t{0}) + Little<uint64_t>(~uint64_t{0})),
              "runs past the data");
}

}  // namespace
}  // namespace kibitz::io
