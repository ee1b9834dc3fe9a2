#include "io/bytes/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace kibitz::io {
namespace {

// The test vectors of RFC 3720, B.4, and the customary check value.
TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(Crc32c(""), 0U);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(Crc32c(rising), 0x46dd794eU);
  EXPECT_EQ(Crc32c(std::string(rising.rbegin(), rising.rend())), 0x113fdb5cU);
}

TEST(Crc32c, PiecesJoin) {
  Rng rng({.seed = 6});
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(rng.Below(256));
  for (size_t cut : {0, 1, 7, 8, 255, 256, 1000, 4999, 5000}) {
    const std::string_view all(bytes);
    EXPECT_EQ(Crc32cJoined(Crc32c(all.substr(0, cut)), Crc32c(all.substr(cut)), bytes.size() - cut),
              Crc32c(bytes));
  }
}

TEST(Crc32c, FastEqualsPlainAtEveryLengthAndOffset) {
  Rng rng({.seed = 5});
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes += static_cast<char>(rng.Below(256));
  for (size_t start = 0; start < 9; ++start) {
    for (size_t size = 0; start + size <= bytes.size(); ++size) {
      const std::string_view part = std::string_view(bytes).substr(start, size);
      ASSERT_EQ(Crc32c(part), Crc32cReference(part)) << start << " " << size;
    }
  }
}

TEST(Crc32c, GoesOn) {
  const std::string text = "a checksum of some bytes, taken in two or three pieces";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Crc32c(text.substr(cut), Crc32c(text.substr(0, cut))), Crc32c(text)) << cut;
  }
}

// The length 24, with which most of TensorFlow's own event files begin.
TEST(Crc32c, Masked) {
  EXPECT_EQ(MaskedCrc(0), 0xa282ead8U);
  EXPECT_EQ(MaskedCrc(Crc32c(std::string_view("\x18\0\0\0\0\0\0\0", 8))), 0x224b7fa3U);
}

}  // namespace
}  // namespace kibitz::io
