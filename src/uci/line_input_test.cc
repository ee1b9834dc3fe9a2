#include "uci/line_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/check.h"

namespace kibitz::uci {
namespace {

struct Pipe {
  Pipe() { CHECK(pipe2(ends.data(), O_CLOEXEC) == 0); }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  void CloseRead() { Close(ends[0]); }
  void CloseWrite() { Close(ends[1]); }
  static void Close(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  void Write(const std::string& text) {
    CHECK(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  std::array<int, 2> ends{};
};

TEST(LineInputTest, GivesLinesAsTheyCome) {
  Pipe pipe;
  LineInput input(pipe.ends[0]);
  pipe.Write("uci\n\nis");
  EXPECT_EQ(input.Next(), "uci");
  EXPECT_EQ(input.Next(), "");
  pipe.Write("ready\r\nlast");
  EXPECT_EQ(input.Next(), "isready\r");
  pipe.CloseWrite();
  EXPECT_EQ(input.Next(), "last");
  EXPECT_EQ(input.Next(), std::nullopt);
}

TEST(LineInputTest, KeepsNulsAndTheLastLine) {
  Pipe pipe;
  LineInput input(pipe.ends[0]);
  pipe.Write(std::string("a\0b\n\0", 5));
  pipe.CloseWrite();
  EXPECT_EQ(input.Next(), std::string("a\0b", 3));
  EXPECT_EQ(input.Next(), std::string("\0", 1));
  EXPECT_EQ(input.Next(), std::nullopt);
  EXPECT_EQ(input.Next(), std::nullopt);
}

TEST(LineInputTest, TakesLongLinesAndCutsEndlessOnes) {
  Pipe pipe;
  std::thread writer([&] {
    pipe.Write(std::string(1 << 20, 'x') + "\n");
    pipe.Write(std::string(LineInput::kLongestLine + 100000, 'y') + "\nnext\n");
    pipe.CloseWrite();
  });
  LineInput input(pipe.ends[0]);
  EXPECT_EQ(input.Next(), std::string(1 << 20, 'x'));
  const auto cut = input.Next();
  ASSERT_TRUE(cut);
  EXPECT_GE(cut->size(), LineInput::kLongestLine);
  EXPECT_LT(cut->size(), LineInput::kLongestLine + 65536);
  EXPECT_EQ(input.Next(), "next");
  EXPECT_EQ(input.Next(), std::nullopt);
  writer.join();
}

TEST(LineInputTest, EndsWhenNobodyListens) {
  Pipe in;
  Pipe out;
  LineInput input(in.ends[0], out.ends[1]);
  in.Write("uci\n");
  EXPECT_EQ(input.Next(), "uci");
  std::thread gone([&] { out.CloseRead(); });
  EXPECT_EQ(input.Next(), std::nullopt);
  gone.join();
}

}  // namespace
}  // namespace kibitz::uci
