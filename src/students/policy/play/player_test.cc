#include "students/policy/play/player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/atomic_file.h"
#include "tests/support/test_data.h"

namespace kibitz::policy {
namespace {

using ::testing::HasSubstr;
using testing::MessageOf;
using testing::ModelPath;
using testing::TempFolder;

// The model that ships, with another config.json; "" for none.
void CopyModel(const std::string& folder, const std::string& config) {
  std::filesystem::copy_file(ModelPath("policy-small") + "/model.safetensors",
                             folder + "/model.safetensors");
  if (!config.empty()) WriteFileAtomically(folder + "/config.json", config);
}

void ExpectLikeTheModel(const std::string& path) {
  Player player({.path = path, .threads = 1});
  Player shipped({.path = ModelPath("policy-small"), .threads = 1});
  const chess::Board board;
  EXPECT_EQ(player.Predict(board).moves.front().move, shipped.Predict(board).moves.front().move);
  EXPECT_EQ(player.Predict(board).legal_mass, shipped.Predict(board).legal_mass);
}

TEST(PolicyPlayerTest, SizesComeFromShapesWithoutAConfig) {
  const TempFolder folder;
  CopyModel(folder.path(), "");
  ExpectLikeTheModel(folder.path());
}

TEST(PolicyPlayerTest, UnknownKeysOfAConfigAreNoError) {
  const TempFolder folder;
  CopyModel(folder.path(), R"({"cls": "PolicyCNN", "dropout": 0.1, "optimizer": {"lr": 1}})");
  ExpectLikeTheModel(folder.path());
}

TEST(PolicyPlayerTest, SaysWhatIsWrong) {
  const TempFolder folder;
  EXPECT_THAT(MessageOf([&] { Player({.path = folder.File("none")}); }),
              HasSubstr("none: found no such file or folder"));
  CopyModel(folder.path(), R"({"hidden_channels": 16})");
  EXPECT_THAT(MessageOf([&] { Player({.path = folder.path()}); }),
              HasSubstr("layers.0.weight is [64, 17, 3, 3], expected [16, 17, 3, 3]"));
  EXPECT_THAT(MessageOf([&] {
                Player({.path = ModelPath("policy-small"), .precision = nn::Precision::kInt8});
              }),
              HasSubstr("f32 only"));
}

}  // namespace
}  // namespace kibitz::policy
