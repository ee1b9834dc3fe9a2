#include "tests/support/source_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kibitz::testing {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Heads(std::string_view text) {
  std::vector<std::string> heads;
  for (const SourceFunction& function : FunctionsIn(text)) {
    heads.push_back(function.head + ": " + std::to_string(function.lines));
  }
  return heads;
}

std::vector<std::string> Names(std::string_view text) {
  std::vector<std::string> names;
  for (const SourceType& type : TypesIn(text)) names.push_back(type.name);
  return names;
}

TEST(SourceCode, BlanksWhatIsNoCode) {
  EXPECT_EQ(WithoutComments("a // {\nb /* { */ c"), "a     \nb         c");
  EXPECT_EQ(WithoutComments("f(\"\\\"{\", '{', 1'000)"), "f(     ,    , 1'000)");
  EXPECT_EQ(WithoutComments("R\"x({\")x\" y"), "R         y");
  EXPECT_EQ(WithoutComments("#define A { \\\n  {\nb"), "             \n   \nb");
}

TEST(SourceCode, MeasuresFunctions) {
  EXPECT_THAT(Heads("namespace a {\nint F(int x) {\n  if (x) {\n  }\n}\n}"),
              ElementsAre("int F(int x): 4"));
  EXPECT_THAT(Heads("class A {\n public:\n  int f() const { return x_; }\n  int x_ = 3;\n};"),
              ElementsAre("int f() const: 1"));
  EXPECT_THAT(
      Heads("void F() {\n  auto g = [](int y) {\n    return y;\n  };\n  H({1}, [&] {\n  });\n}"),
      ElementsAre("void F(): 7"));
  EXPECT_THAT(Heads("const T kTable = Make({\n  {1},\n});\nauto kF = [](int) {\n};"),
              ElementsAre());
  EXPECT_THAT(Heads("A::A(int x)\n    : x_(x) {\n  F();\n}"),
              ElementsAre("A::A(int x) : x_(x): 3"));
  EXPECT_THAT(Heads("void F(B b = {}, int c = 1) {\n}"),
              ElementsAre("void F(B b = {}, int c = 1): 2"));
}

TEST(SourceCode, NamesTypes) {
  EXPECT_THAT(Names("namespace a::b {\nstruct C { enum class D : int { kE }; };\n}"),
              ElementsAre("a::b::C::D", "a::b::C"));
  EXPECT_THAT(Names("namespace {\nstruct C {};\n}\nvoid F() { struct D {}; }\nclass E;"),
              ElementsAre());
  EXPECT_THAT(Names("template <typename T>\nclass A final : public B {};\n"
                    "template <>\nstruct std::hash<A<int, int>> {};"),
              ElementsAre("A", "std::hash<A<int,int>>"));
  EXPECT_THAT(Names("struct alignas(64) A {};\nclass A::Impl {};"), ElementsAre("A", "A::Impl"));
}

TEST(SourceCode, MeasuresParagraphs) {
  const auto paragraphs = ParagraphsIn(
      "# Title\none\ntwo\n\n```\ncode\ncode\n```\n| a | b |\n- item\n  goes on\n1. next\nend\n");
  std::vector<std::pair<int, int>> found;
  for (const Paragraph& paragraph : paragraphs) found.emplace_back(paragraph.line, paragraph.lines);
  EXPECT_THAT(found, ElementsAre(std::pair(2, 2), std::pair(10, 2), std::pair(12, 2)));
}

}  // namespace
}  // namespace kibitz::testing
