#include "students/policy/play/player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "games/chess/fen.h"
#include "games/chess/mirror.h"
#include "games/chess/movegen.h"
#include "students/policy/play/evaluator.h"
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

// Both views have one answer, and it is the mean of the two without.
TEST(PolicyEvaluatorTest, AMirroredBoardIsAnsweredAlike) {
  const auto player =
      std::make_shared<Player>(nn::NetworkOptions{.path = ModelPath("policy-small"), .threads = 1});
  PolicyEvaluator bare(player, "bare");
  PolicyEvaluator both(player, "both", {.mirror = true});
  const auto priors = [](PolicyEvaluator& evaluator, const chess::Board& board) {
    const std::vector<oracles::Question> questions = {
        oracles::Question(oracles::GamePath(board), chess::LegalMoves(board))};
    std::vector<oracles::Evaluation> answers(1);
    evaluator.Evaluate(questions, answers);
    std::map<uint16_t, float> result;
    for (size_t i = 0; i < answers[0].priors.size(); ++i) {
      result[questions[0].moves()[i].bits()] = answers[0].priors[i];
    }
    return result;
  };
  const chess::Board start;
  EXPECT_EQ(priors(both, start), priors(bare, start));  // Castling tells left from right.
  const chess::Board board =
      chess::ParseFen("r4rk1/1pp1qppp/p1np1n2/4p3/4P3/2NP1N2/PPP1QPPP/R4RK1 w - - 0 1").OrThrow("");
  const chess::Board mirrored = chess::MirrorFiles(board);
  const auto here = priors(bare, board);
  const auto there = priors(bare, mirrored);
  const auto mean = priors(both, board);
  const auto mean_there = priors(both, mirrored);
  bool differ = false;
  for (const chess::Move move : chess::LegalMoves(board)) {
    const float other = there.at(chess::MirrorFiles(move).bits());
    differ |= std::abs(here.at(move.bits()) - other) > 1e-3F;
    EXPECT_NEAR(mean.at(move.bits()), (here.at(move.bits()) + other) / 2, 1e-6);
    EXPECT_NEAR(mean_there.at(chess::MirrorFiles(move).bits()), mean.at(move.bits()), 1e-6);
  }
  EXPECT_TRUE(differ);
}

TEST(PolicyPlayerTest, SaysWhatIsWrong) {
  const TempFolder folder;
  EXPECT_THAT(MessageOf([&] { Player({.path = folder.File("none")}); }),
              HasSubstr("none: found no such file or folder"));
  CopyModel(folder.path(), R"({"hidden_channels": 16})");
  EXPECT_THAT(MessageOf([&] { Player({.path = folder.path()}); }),
              HasSubstr("layers.0.weight is [64, 46, 3, 3], expected [16, 46, 3, 3]"));
  EXPECT_THAT(MessageOf([&] {
                Player({.path = ModelPath("policy-small"), .precision = nn::Precision::kInt8});
              }),
              HasSubstr("f32 only"));
}

}  // namespace
}  // namespace kibitz::policy
