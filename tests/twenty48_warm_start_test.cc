// Networks give the logits at play, without torch, that they have in training: those without
// attention also as the encoder that they are a warm start for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "games/twenty48/slide.h"
#include "io/weights/model_file.h"
#include "learn/weights.h"
#include "students/twenty48/data/attention_free_layout.h"
#include "students/twenty48/data/batches.h"
#include "students/twenty48/data/tuples.h"
#include "students/twenty48/net/attention_free.h"
#include "students/twenty48/net/encoder.h"
#include "students/twenty48/net/tuple_net.h"
#include "students/twenty48/play/games.h"
#include "tests/support/test_data.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::ModelPath;
using kibitz::testing::TempFolder;

void Write(const torch::nn::Module& net, const NetConfig& config, const TempFolder& folder) {
  io::WriteModel(folder.path(), io::StateDict(learn::WeightsOf(net), folder.path()),
                 ConfigTree(config, std::nullopt));
}

// Boards of a few games of the network in the folder.
std::vector<Board> BoardsOf(const std::string& folder) {
  Player player({.network = {.path = folder, .threads = 1}});
  std::vector<Board> boards;
  PlayGames(player, {.games = 8, .seed = 2}, [&](const Board& board, const Choice&) {
    if (board.packed() % 16 == 0 || boards.size() < 100) boards.push_back(board);
  });
  boards.resize(std::min<size_t>(boards.size(), 600));
  return boards;
}

std::vector<float> Answers(const std::string& folder, const std::vector<Board>& boards) {
  Model model(io::ReadModel(folder), {.threads = 1});
  std::vector<float> logits(boards.size() * static_cast<size_t>(model.answers()));
  model.Answer(boards, logits.data());
  return logits;
}

double Gap(const std::vector<float>& a, const std::vector<float>& b) {
  double gap = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    gap = std::max(gap, std::abs(double{a[i]} - b[i]));
  }
  return gap;
}

TEST(WarmStart, ANetworkWithoutAttentionPlaysAsItsEncoder) {
  const NetConfig config = {.hidden_size = 96,
                            .num_hidden_layers = 3,
                            .num_attention_heads = 4,
                            .num_key_value_heads = 2,
                            .intermediate_size = 280};
  AttentionFree small(config);
  InitAttentionFree(small, 7);
  const TempFolder without;
  Write(*small, config, without);
  ASSERT_TRUE(IsAttentionFree(io::ReadModel(without.path()).weights));
  Encoder net(config);
  InitEncoder(net, 1);
  LoadWeightsInto(net, without.path());
  const TempFolder with;
  Write(*net, config, with);
  ASSERT_FALSE(IsAttentionFree(io::ReadModel(with.path()).weights));
  const std::vector<Board> boards = BoardsOf(without.path());
  EXPECT_LT(Gap(Answers(without.path(), boards), Answers(with.path(), boards)), 1e-4);
}

std::vector<float> Trained(TupleNet& net, const std::vector<Board>& boards) {
  std::vector<uint8_t> tokens;
  for (const Board& board : boards) AppendTokens(board, tokens);
  const torch::NoGradGuard no_grad;
  const torch::Tensor logits = net->forward(TokenTensor(tokens), Form::kPlain).contiguous();
  return {logits.data_ptr<float>(), logits.data_ptr<float>() + logits.numel()};
}

TEST(TupleNet, PlaysAsItTrains) {
  for (HeadType head : {HeadType::kBinnedEv, HeadType::kActionPolicy}) {
    for (bool attention : {false, true}) {
      NetConfig config = {.hidden_size = 32,
                          .num_hidden_layers = 2,
                          .num_attention_heads = 4,
                          .num_key_value_heads = 2,
                          .intermediate_size = 40,
                          .tuple_width = 3,
                          .head_type = head};
      if (head == HeadType::kActionPolicy) config.output_n_bins.reset();
      TupleNet net(config, attention);
      learn::InitWeights(*net, 4);
      if (attention) {
        const torch::NoGradGuard no_grad;
        learn::FillNormal(net->tuple_proj, 4, "tuple_proj");
      }
      const TempFolder folder;
      Write(*net, config, folder);
      EXPECT_EQ(ConfigTree(ConfigOf(io::ReadModel(folder.path())), std::nullopt),
                ConfigTree(config, std::nullopt));
      const std::vector<Board> boards = BoardsOf(folder.path());
      EXPECT_LT(Gap(Answers(folder.path(), boards), Trained(net, boards)), 1e-4) << attention;
    }
  }
}

TEST(TupleNet, TheShippedModelPlaysAsItTrains) {
  const std::string shipped = ModelPath("twenty48-small");
  const io::ModelFile file = io::ReadModel(shipped);
  TupleNet net(ConfigOf(file), HasAttention(file.weights));
  LoadWeightsInto(net, shipped);
  const std::vector<Board> boards = BoardsOf(shipped);
  EXPECT_LT(Gap(Answers(shipped, boards), Trained(net, boards)), 1e-3);
}

}  // namespace
}  // namespace kibitz::twenty48
