#include "learn/options/given_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_data.h"

namespace kibitz::learn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Config {
  int width = 8;
  int layers = 2;
};
Fields FieldsOf(Config& config) {
  Fields fields;
  fields.Add("width", config.width, "width");
  fields.Add("layers", config.layers, "layers");
  return fields;
}

TEST(GivenModelTest, KnowsTheKeysThatWereSet) {
  Config config;
  Fields fields;
  fields.AddAll(FieldsOf(config), "model");
  EXPECT_TRUE(GivenKeys(fields, "model").empty());
  const std::vector<std::string> words = {"--layers", "2"};
  fields.ParseFlags(words);
  EXPECT_EQ(GivenKeys(fields, "model"), std::vector<std::string>{"layers"});
}

TEST(GivenModelTest, TakesTheModelFromTheWeights) {
  const Config model =
      ModelOfWeights(Config{.layers = 5}, {.width = 16, .layers = 5}, {"layers"}, "a.pt");
  EXPECT_EQ(model.width, 16);
  EXPECT_EQ(model.layers, 5);
}

TEST(GivenModelTest, AGivenKeyThatDiffersIsAnErrorThatNamesBoth) {
  const auto take = [] {
    ModelOfWeights(Config{.layers = 3}, {.width = 16, .layers = 5}, {"layers"}, "a.pt");
  };
  EXPECT_THAT(testing::MessageOf(take),
              AllOf(HasSubstr("model.layers is 3"), HasSubstr("a.pt, have 5")));
}

}  // namespace
}  // namespace kibitz::learn
