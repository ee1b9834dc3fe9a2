#include "io/weights/protobuf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace kibitz::io {
namespace {

using std::string_literals::operator""s;
using testing::HasSubstr;

std::string MessageOf(const std::string& bytes) {
  try {
    ProtobufReader reader(bytes, "x.pb");
    while (reader.Next()) {
    }
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(ProtobufTest, ReadsEveryWireType) {
  // 1: varint 300; 2: bytes "ab"; 3: fixed32 1.5f; 4: fixed64 7; 5: a message with 1: varint 2.
  const std::string bytes = "\x08\xac\x02\x12\x02"s + "ab\x1d\x00\x00\xc0\x3f"s +
                            "\x21\x07\x00\x00\x00\x00\x00\x00\x00\x2a\x02\x08\x02"s;
  ProtobufReader reader(bytes, "x.pb");
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 1U);
  EXPECT_EQ(reader.Number(), 300U);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.Bytes(), "ab");
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.Float(), 1.5F);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 4U);
  EXPECT_THROW(reader.Number(), Error);
  ASSERT_TRUE(reader.Next());
  ProtobufReader inner = reader.Message();
  ASSERT_TRUE(inner.Next());
  EXPECT_EQ(inner.Number(), 2U);
  EXPECT_FALSE(inner.Next());
  EXPECT_FALSE(reader.Next());
}

TEST(ProtobufTest, TellsWhatIsBroken) {
  EXPECT_THAT(MessageOf("\x08\xac"s), HasSubstr("x.pb: ends inside a number"));
  EXPECT_THAT(MessageOf("\x12\x05"s + "ab"), HasSubstr("claims 5 bytes, 2 are left"));
  EXPECT_THAT(MessageOf("\x1d\x00"s), HasSubstr("claims 4 bytes, 1 are left"));
  EXPECT_THAT(MessageOf("\x0b"s), HasSubstr("wire type 3"));
  EXPECT_THAT(MessageOf("\x00\x01"s), HasSubstr("0 is not a field"));
  EXPECT_THAT(MessageOf("\x08"s + std::string(11, '\xff')), HasSubstr("more than 64 bits"));
}

}  // namespace
}  // namespace kibitz::io
