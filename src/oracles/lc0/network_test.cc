#include "oracles/lc0/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "games/chess/movegen.h"
#include "io/weights/lc0_file.h"
#include "oracles/lc0/residual_weights.h"
#include "tests/support/lc0_file.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using kibitz::testing::Lc0Spec;
using kibitz::testing::MessageOf;
using kibitz::testing::TempFolder;
using ::testing::HasSubstr;

std::string RefusalOf(const Lc0Spec& spec) {
  const TempFolder folder;
  const std::string path = folder.File("net.pb");
  kibitz::testing::WriteLc0File(path, spec);
  return MessageOf([&] { Lc0WeightsOf(io::ReadModel(path)); });
}

Lc0Weights ReadSpec(const Lc0Spec& spec) {
  const TempFolder folder;
  const std::string path = folder.File("net.pb");
  kibitz::testing::WriteLc0File(path, spec);
  const io::ModelFile file = io::ReadModel(path);
  EXPECT_EQ(file.format, io::ModelFormat::kLc0);
  return Lc0WeightsOf(file);
}

TEST(Lc0WeightsTest, ReadsEveryKindOfResidualNetwork) {
  EXPECT_EQ(DescriptionOf(ReadSpec({})),
            "2 blocks of 8 filters with squeeze-and-excitation, convolutional policy, WDL");
  EXPECT_EQ(DescriptionOf(ReadSpec({.filters = 12,
                                    .squeeze = 0,
                                    .convolutional_policy = false,
                                    .wdl = false,
                                    .structure = 1})),
            "2 blocks of 12 filters, classical policy, expected value");
  EXPECT_EQ(DescriptionOf(ReadSpec({.squeeze = 0, .structure = 3, .activation = 1})),
            "2 blocks of 8 filters, convolutional policy, WDL, Mish");
}

TEST(Lc0WeightsTest, EncodingsHoldTheSameNumbers) {
  const auto exact = ReadSpec({.encoding = 4}).residual;
  const auto linear = ReadSpec({.encoding = 1}).residual;
  const auto brain = ReadSpec({.encoding = 3}).residual;
  ASSERT_EQ(exact.input.weight.size(), 8U * 112 * 9);
  for (size_t i = 0; i < exact.input.weight.size(); ++i) {
    EXPECT_NEAR(linear.input.weight[i], exact.input.weight[i], 1e-5);
    EXPECT_NEAR(brain.input.weight[i], exact.input.weight[i],
                0.02 * std::abs(exact.input.weight[i]) + 1e-6);
  }
}

TEST(Lc0WeightsTest, RefusesWhatItCannotRun) {
  EXPECT_THAT(RefusalOf({.structure = 6}), HasSubstr("an attention body"));
  EXPECT_THAT(RefusalOf({.structure = 5}), HasSubstr("ONNX"));
  EXPECT_THAT(RefusalOf({.policy = 3}), HasSubstr("policy format 3 (attention)"));
  EXPECT_THAT(RefusalOf({.attention = true}), HasSubstr("attention layers"));
  EXPECT_THAT(RefusalOf({.input = 3}), HasSubstr("input format 3, expected 1"));
  EXPECT_THAT(RefusalOf({.encoding = 9}), HasSubstr("encoding 9"));
  EXPECT_THAT(RefusalOf({.activation = 2}), HasSubstr("activation 2"));
}

TEST(Lc0WeightsTest, TellsWhatIsBroken) {
  const TempFolder folder;
  const std::string path = folder.File("net.pb");
  const std::string whole = kibitz::testing::Lc0Bytes({});
  const auto message = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return MessageOf([&] { Lc0WeightsOf(io::ReadModel(path)); });
  };
  EXPECT_THAT(message("not a network"), HasSubstr("net.pb"));
  EXPECT_THAT(message(whole.substr(0, whole.size() / 2)), HasSubstr("cut short"));
  EXPECT_THAT(message(whole.substr(0, 40)), HasSubstr("net.pb"));
  EXPECT_FALSE(io::IsLc0File("/dev/null"));
  // Any single byte changed: an Error or a network, never a crash.
  Rng rng({.seed = 1, .purpose = Purpose("damage")});
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    const bool early = i % 2 == 0;
    damaged[rng.Below(early ? 120 : whole.size())] = static_cast<char>(rng.Below(256));
    message(damaged);
  }
}

std::vector<Question> Questions() {
  std::vector<Question> questions;
  Rng rng({.seed = 2, .purpose = Purpose("questions")});
  GamePath path((chess::Board()));
  for (int ply = 0; ply < 40; ++ply) {
    const chess::MoveList moves = chess::LegalMoves(path.last());
    if (moves.empty()) break;
    questions.emplace_back(path, moves);
    path.Push(path.last().After(moves[rng.Below(moves.size())]));
  }
  return questions;
}

TEST(Lc0NetworkTest, AnswersAreProbabilitiesAndDoNotDependOnTheBatch) {
  const TempFolder folder;
  for (const bool convolutional : {true, false}) {
    for (const bool wdl : {true, false}) {
      const std::string path = folder.File("net.pb");
      kibitz::testing::WriteLc0File(path, {.convolutional_policy = convolutional, .wdl = wdl});
      Lc0Network one({.network = {.path = path, .threads = 1}});
      Lc0Network two({.network = {.path = path, .threads = 2}});
      const std::vector<Question> questions = Questions();
      std::vector<Evaluation> all(questions.size());
      two.Evaluate(questions, all);
      for (size_t i = 0; i < questions.size(); ++i) {
        double sum = 0;
        for (float prior : all[i].priors) sum += prior;
        EXPECT_EQ(all[i].priors.size(), questions[i].moves().size());
        EXPECT_NEAR(sum, 1, 1e-5);
        EXPECT_LE(std::abs(all[i].q) + all[i].draw, 1 + 1e-5);
        EXPECT_EQ(all[i].draw > 0, wdl);
        Evaluation alone;
        one.Evaluate(std::span(&questions[i], 1), std::span(&alone, 1));
        EXPECT_EQ(alone.q, all[i].q);
        EXPECT_EQ(alone.priors, all[i].priors);
      }
    }
  }
}

TEST(Lc0NetworkTest, RunsInF32Only) {
  const TempFolder folder;
  const std::string path = folder.File("net.pb");
  kibitz::testing::WriteLc0File(path, {});
  EXPECT_THAT(MessageOf([&] {
                Lc0Network({.network = {.path = path, .precision = nn::Precision::kInt8}});
              }),
              HasSubstr("f32 only"));
}

}  // namespace
}  // namespace kibitz::oracles
