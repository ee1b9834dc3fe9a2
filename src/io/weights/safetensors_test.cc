#include "io/weights/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/atomic_file.h"
#include "base/error.h"
#include "io/bytes/little_endian.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::TempFolder;

Tensor Bytes(DType type, std::vector<int64_t> shape) {
  const uint64_t size = *BytesOf(type, shape);
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return OwnedTensor(type, std::move(shape), std::move(bytes));
}

std::string FileOf(const std::string& header, size_t data) {
  std::string out;
  AppendLittle(out, uint64_t{header.size()});
  return out + header + std::string(data, 'x');
}

Safetensors Parse(const std::string& bytes) {
  return ParseSafetensors(std::as_bytes(std::span(bytes)), nullptr, "test");
}

std::string ErrorOf(const std::string& bytes) {
  try {
    Parse(bytes);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

void ExpectError(const std::string& bytes, const std::string& part) {
  EXPECT_NE(ErrorOf(bytes).find(part), std::string::npos) << ErrorOf(bytes) << "\nlacks " << part;
}

TEST(Safetensors, WritesAndReadsEveryType) {
  const DType types[] = {DType::kBool, DType::kU8,  DType::kI8,  DType::kU16, DType::kI16,
                         DType::kU32,  DType::kI32, DType::kU64, DType::kI64, DType::kF16,
                         DType::kBF16, DType::kF32, DType::kF64};
  Safetensors content;
  for (DType type : types) {
    content.tensors.push_back({std::string(NameOf(type)), Bytes(type, {3, 1, 5})});
  }
  content.tensors.push_back({"scalar \"quoted\" \n", Bytes(DType::kF32, {})});
  content.tensors.push_back({"empty", Bytes(DType::kF32, {0, 4})});
  content.metadata = {{"config", R"({"a": [1, 2]})"}, {"leer", ""}, {"ü", "\"\n"}};
  const TempFolder folder;
  const std::string path = folder.File("all.safetensors");
  WriteSafetensors(path, content);

  const Safetensors read = ReadSafetensors(path);
  ASSERT_EQ(read.tensors.size(), content.tensors.size());
  for (size_t i = 0; i < read.tensors.size(); ++i) {
    const auto& [name, tensor] = read.tensors[i];
    EXPECT_EQ(name, content.tensors[i].name);
    EXPECT_EQ(tensor.type, content.tensors[i].tensor.type);
    EXPECT_EQ(tensor.shape, content.tensors[i].tensor.shape);
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, content.tensors[i].tensor.bytes)) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) % SizeOf(tensor.type), 0) << name;
  }
  for (const auto& [key, value] : content.metadata) {
    ASSERT_NE(read.FindMetadata(key), nullptr) << key;
    EXPECT_EQ(*read.FindMetadata(key), value);
  }
  EXPECT_EQ(read.FindMetadata("none"), nullptr);
}

TEST(Safetensors, WritesAnEmptyFile) {
  const TempFolder folder;
  WriteSafetensors(folder.File("none.safetensors"), Safetensors{});
  EXPECT_TRUE(ReadSafetensors(folder.File("none.safetensors")).tensors.empty());
}

TEST(Safetensors, PadsTheHeaderToEightBytes) {
  const TempFolder folder;
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    const std::string path = folder.File("x.safetensors");
    WriteSafetensors(path, Safetensors{.tensors = {{name, Bytes(DType::kU8, {1})}}});
    const std::string bytes = testing::ReadWhole(path);
    const auto length = LoadLittle<uint64_t>(std::as_bytes(std::span(bytes)));
    EXPECT_EQ(length % 8, 0);
    EXPECT_EQ(bytes[8], '{');
  }
}

TEST(Safetensors, RefusesToWriteWhatCannotBeRead) {
  const TempFolder folder;
  const std::string path = folder.File("x.safetensors");
  const auto refused = [&](const Safetensors& content) {
    EXPECT_THROW(WriteSafetensors(path, content), Error);
    EXPECT_FALSE(testing::Exists(path));
    EXPECT_FALSE(testing::Exists(path + ".tmp"));
  };
  const Tensor one = Bytes(DType::kU8, {1});
  refused({.tensors = {{"a", one}, {"a", one}}});
  refused({.tensors = {{"__metadata__", one}}});
  refused({.tensors = {{"\xff", one}}});
  refused({.tensors = {}, .metadata = {{"a", "1"}, {"a", "2"}}});
  refused({.tensors = {}, .metadata = {{"a", "\xff"}}});
  // NOLINTNEXTLINE(bugprone-string-constructor): just over the limit.
  refused({.tensors = {}, .metadata = {{"a", std::string(100'000'001, 'x')}}});
}

TEST(Safetensors, ReadsAHandMadeFile) {
  const Safetensors read = Parse(
      FileOf(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[2,10]}, "__metadata__":{"k":"v"},)"
             R"("a":{"shape":[1,2],"data_offsets":[0,2],"dtype":"I8"}}   )",
             10));
  ASSERT_EQ(read.tensors.size(), 2);
  EXPECT_EQ(read.tensors[0].name, "b");
  EXPECT_EQ(read.tensors[1].tensor.shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*read.FindMetadata("k"), "v");
}

TEST(Safetensors, RefusesBrokenHeaders) {
  ExpectError("", "found 0 bytes");
  ExpectError("1234567", "found 7 bytes");
  ExpectError(std::string(8, '\xff') + "{}", "expected at most 100000000");
  ExpectError(std::string("\x10\0\0\0\0\0\0\0{}", 10),
              "found a header of 16 bytes in a file of 10");
  ExpectError(FileOf("[]", 0), "does not begin with '{'");
  ExpectError(FileOf("", 0), "does not begin with '{'");
  ExpectError(FileOf("{\"a\":", 0), "not JSON from its byte");
  ExpectError(FileOf("{} x", 0), "not JSON from its byte");
  ExpectError(FileOf("{}", 3), "found 3 bytes after the last tensor");
}

TEST(Safetensors, RefusesOtherShapesOfDocument) {
  ExpectError(FileOf(R"({"a":1})", 0), "found the number 1 in 'a'");
  ExpectError(FileOf(R"({"a":[1]})", 0), "found an array in 'a'");
  ExpectError(FileOf(R"({"a":{"dtype":{}}})", 0), "found an object in 'a'");
  ExpectError(FileOf(R"({"a":{"dtype":null}})", 0), "found null in 'a'");
  ExpectError(FileOf(R"({"a":{"dtype":true}})", 0), "found a bool in 'a'");
  ExpectError(FileOf(R"({"a":{"shape":"x"}})", 0), "found a text in 'a'");
  ExpectError(FileOf(R"({"a":{"shape":[[1]]}})", 0), "found an array in an array in 'a'");
  ExpectError(FileOf(R"({"a":{"shape":[-1]}})", 0), "found the number -1 in 'a'");
  ExpectError(FileOf(R"({"a":{"shape":[1.5]}})", 0), "found the number '1.5' in 'a'");
  ExpectError(FileOf(R"({"a":{"shape":5}})", 0), "found the number 5 in 'a'");
  ExpectError(FileOf(R"({"__metadata__":{"a":1}})", 0), "found the number 1 in the metadata");
  ExpectError(FileOf(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4],"x":1}})", 4),
              "unknown field 'x'");
  ExpectError(FileOf(R"({"a":{"dtype":"F32","shape":[]}})", 4), "lacks dtype, shape or");
  ExpectError(FileOf(R"({"a":{"dtype":"F8_E4M3","shape":[],"data_offsets":[0,1]}})", 1),
              "is of type 'F8_E4M3', expected BOOL");
}

TEST(Safetensors, RefusesRepeatedNames) {
  const std::string line = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  ExpectError(FileOf("{" + line + "," + line + "}", 0), "the name 'a' occurs twice");
  ExpectError(FileOf(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "the name 'k' occurs twice");
  ExpectError(FileOf(R"({"a":{"dtype":"U8","dtype":"U8"}})", 0), "the name 'dtype' occurs twice");
  ExpectError(FileOf(R"({"__metadata__":{},"__metadata__":{}})", 0), "occurs twice");
}

std::string OneTensor(const std::string& shape, const std::string& offsets, size_t data) {
  return FileOf(R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
                data);
}

TEST(Safetensors, RefusesLiesAboutSizes) {
  ExpectError(OneTensor("[4294967296,4294967296]", "[0,0]", 0), "found shape [4294967296");
  ExpectError(OneTensor("[9223372036854775807]", "[0,4]", 4), "found shape [92233720");
  ExpectError(OneTensor("[18446744073709551615]", "[0,4]", 4), "found the number 184467");
  ExpectError(OneTensor("[18446744073709551616]", "[0,4]", 4), "found the number '184467");
  ExpectError(OneTensor("[1]", "[0,18446744073709551615]", 4), "found the number 184467");
  ExpectError(OneTensor("[1]", "[4,0]", 4), "expected two in order");
  ExpectError(OneTensor("[1]", "[0]", 4), "expected two in order");
  ExpectError(OneTensor("[1]", "[0,1,4]", 4), "expected two in order");
  ExpectError(OneTensor("[2]", "[0,4]", 4), "found 4 bytes, expected 8");
  ExpectError(OneTensor("[2]", "[0,8]", 4), "ends at byte 8 of 4");
  ExpectError(OneTensor("[1]", "[4,8]", 8), "begins at byte 4, expected 0");
  ExpectError(FileOf(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                     R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                     6),
              "tensor 'b': begins at byte 2, expected 4");
}

TEST(Safetensors, NamesTheFileThatIsNotThere) {
  EXPECT_THROW(ReadSafetensors("/no/such.safetensors"), Error);
}

}  // namespace
}  // namespace kibitz::io
