#include "students/twenty48/net/tuple_net.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "io/weights/model_file.h"
#include "learn/weights.h"
#include "students/twenty48/data/batches.h"
#include "students/twenty48/data/tuples.h"
#include "students/twenty48/net/tuple_lookup.h"
#include "tests/support/test_data.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::TempFolder;
using torch::Tensor;

NetConfig SmallTuples(HeadType head) {
  NetConfig config;
  config.tuple_width = 3;
  config.hidden_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 3;
  config.num_key_value_heads = 1;
  config.intermediate_size = 40;
  config.head_type = head;
  return config;
}

// Ranks of all sizes, also beyond those that the patterns tell apart.
std::vector<Board> MadeUpBoards(int count) {
  Rng rng({.seed = 5, .purpose = Purpose("made up")});
  std::vector<Board> boards;
  for (int i = 0; i < count; ++i) {
    Board board;
    for (int cell = 0; cell < kCells; ++cell) {
      board = board.With(cell, static_cast<int>(rng.Below(17)));
    }
    boards.push_back(board);
  }
  return boards;
}

Tensor TokensOf(const std::vector<Board>& boards) {
  std::vector<uint8_t> tokens;
  for (const Board& board : boards) AppendTokens(board, tokens);
  return TokenTensor(tokens);
}

// A network without any zeros.
TupleNet Drawn(const NetConfig& config, bool attention, uint64_t seed) {
  TupleNet net(config, attention);
  InitTupleNet(net, seed);
  const torch::NoGradGuard no_grad;
  learn::FillNormal(net->tuples->weight, seed, "tuples");
  for (const auto& module : *net->blocks) {
    auto* block = module->as<BlockImpl>();
    if (attention) learn::FillNormal(block->attn->wo->weight, seed, "wo");
  }
  return net;
}

// A model's folder.
void Write(const TempFolder& folder, TupleNet& net, const NetConfig& config) {
  io::WriteModel(folder.path(), io::StateDict(learn::WeightsOf(*net), folder.path()),
                 ConfigTree(config, std::nullopt));
}

TEST(Tuples, EveryCellIsInARowAColumnAndASquare) {
  std::array<int, kCells> count{};
  for (const TupleCells& tuple : kTupleCells) {
    for (const uint8_t cell : tuple) ++count[cell];
  }
  EXPECT_EQ(count, (std::array<int, kCells>{3, 4, 4, 3, 4, 6, 6, 4, 4, 6, 6, 4, 3, 4, 4, 3}));
}

TEST(TupleNet, LookUpAgreesWithTorch) {
  Tensor table = torch::randn({30, 5}).requires_grad_();
  const Tensor entries = torch::stack(
      {torch::randint(0, 10, {600}, torch::kInt64), torch::randint(10, 30, {600}, torch::kInt64)},
      1);
  const Tensor weight = torch::randn({600, 2, 5});
  std::vector<Tensor> gradients;
  for (bool fast : {false, true}) {
    table.mutable_grad() = Tensor();
    const Tensor rows = fast ? LookUpRows(table, entries) : torch::embedding(table, entries);
    EXPECT_TRUE(torch::equal(rows, torch::embedding(table, entries)));
    (rows * weight).sum().backward();
    gradients.push_back(fast ? table.grad().to_dense() : table.grad().clone());
  }
  EXPECT_LT((gradients[0] - gradients[1]).abs().max().item<double>(), 1e-4);
}

TEST(TupleNet, FusedAgreesWithPlain) {
  for (bool attention : {false, true}) {
    TupleNet net = Drawn(SmallTuples(HeadType::kBinnedEv), attention, 3);
    const Tensor tokens = TokensOf(MadeUpBoards(7));
    std::vector<std::vector<Tensor>> gradients;
    std::vector<Tensor> answers;
    for (Form form : {Form::kPlain, Form::kFused}) {
      for (Tensor& parameter : net->parameters()) parameter.mutable_grad() = Tensor();
      answers.push_back(net->forward(tokens, form));
      const Tensor weight =
          torch::linspace(-1, 2, answers.back().numel()).reshape(answers.back().sizes());
      (answers.back() * weight).sum().backward();
      gradients.emplace_back();
      for (const Tensor& parameter : net->parameters()) {
        gradients.back().push_back(parameter.grad().is_sparse() ? parameter.grad().to_dense()
                                                                : parameter.grad().clone());
      }
    }
    EXPECT_LT((answers[0] - answers[1]).abs().max().item<double>(), 1e-5);
    for (size_t i = 0; i < gradients[0].size(); ++i) {
      const double size = gradients[0][i].abs().max().item<double>();
      EXPECT_LT((gradients[0][i] - gradients[1][i]).abs().max().item<double>(), 2e-5 * (1 + size));
    }
  }
}

TEST(TupleNet, AttentionStartsAtTheLogitsOfItsWarmStart) {
  const NetConfig config = SmallTuples(HeadType::kBinnedEv);
  TupleNet warm = Drawn(config, false, 7);
  const TempFolder folder;
  Write(folder, warm, config);
  TupleNet net(config, true);
  InitTupleNet(net, 8);
  const Tensor tokens = TokensOf(MadeUpBoards(9));
  const Tensor expected = warm->forward(tokens);
  EXPECT_GT((net->forward(tokens) - expected).abs().max().item<double>(), 1e-2);
  LoadWeightsInto(net, folder.path());
  for (Form form : {Form::kPlain, Form::kFused}) {
    EXPECT_LT((net->forward(tokens, form) - expected).abs().max().item<double>(), 1e-5);
  }
  // Its attention can learn.
  net->forward(tokens).square().sum().backward();
  const auto* block = net->blocks[0]->as<BlockImpl>();
  EXPECT_GT(block->attn->wo->weight.grad().abs().max().item<double>(), 0);
}

// A network with more layers than its weights answers alike at first, and its new layers learn.
TEST(TupleNet, AddedLayersChangeNothingAtFirst) {
  NetConfig config = SmallTuples(HeadType::kBinnedEv);
  const Tensor tokens = TokensOf(MadeUpBoards(9));
  for (bool before : {false, true}) {
    TupleNet shallow = Drawn(config, before, 7);
    const TempFolder folder;
    Write(folder, shallow, config);
    const Tensor expected = shallow->forward(tokens);
    NetConfig deeper = config;
    deeper.num_hidden_layers = 4;
    TupleNet net(deeper, true);
    InitTupleNet(net, 8);
    LoadWeightsInto(net, folder.path());
    for (Form form : {Form::kPlain, Form::kFused}) {
      EXPECT_LT((net->forward(tokens, form) - expected).abs().max().item<double>(), 1e-5);
    }
    net->forward(tokens).square().sum().backward();
    const auto* block = net->blocks[3]->as<BlockImpl>();
    EXPECT_GT(block->mlp->w_down->weight.grad().abs().max().item<double>(), 0);
    EXPECT_GT(block->attn->wo->weight.grad().abs().max().item<double>(), 0);
    // Fewer layers than the weights have are refused.
    Write(folder, net, deeper);
    EXPECT_THROW(LoadWeightsInto(shallow, folder.path()), Error);
    // So are weights without layers that their config names: the file is damaged.
    Write(folder, shallow, deeper);
    EXPECT_THROW(LoadWeightsInto(net, folder.path()), Error);
  }
}

TEST(TupleNet, CountsItsParameters) {
  for (HeadType head : {HeadType::kBinnedEv, HeadType::kActionPolicy}) {
    TupleNet net(SmallTuples(head), true);
    int64_t count = 0;
    for (const Tensor& parameter : net->parameters()) count += parameter.numel();
    EXPECT_EQ(static_cast<uint64_t>(count), CountParameters(SmallTuples(head)));
  }
}

}  // namespace
}  // namespace kibitz::twenty48
