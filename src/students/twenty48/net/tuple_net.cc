#include "students/twenty48/net/tuple_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "io/weights/model_file.h"
#include "learn/fused.h"
#include "learn/weights.h"
#include "students/twenty48/data/tuples.h"
#include "students/twenty48/net/tuple_lookup.h"

namespace kibitz::twenty48 {
namespace {

using torch::Tensor;

constexpr int64_t kRanks = 17;

// The entry of each pattern, (B, P).
Tensor EntriesOf(const Tensor& tokens) {
  std::vector<int64_t> cells;
  std::vector<int64_t> first;
  for (int tuple = 0; tuple < kTuples; ++tuple) {
    for (const uint8_t cell : kTupleCells[static_cast<size_t>(tuple)]) cells.push_back(cell);
    first.push_back(tuple * kTupleEntries);
  }
  const auto ints = [&](const std::vector<int64_t>& values) {
    return torch::tensor(values, torch::kInt64).to(tokens.device());
  };
  constexpr int64_t k = kTupleRanks;
  const Tensor ranks =
      tokens.clamp_max(k - 1).index_select(1, ints(cells)).reshape({-1, kTuples, 4});
  return (ranks * ints({k * k * k, k * k, k, 1})).sum(2) + ints(first);
}

}  // namespace

TupleNetImpl::TupleNetImpl(const NetConfig& config, bool attention)
    : config(config), attention(attention) {
  CheckConfig(config);
  CHECK(config.tuple_width > 0);
  const int64_t d = config.hidden_size;
  const int64_t e = config.tuple_width;
  tuples = register_module("tuples", torch::nn::Embedding(kTuples * kTupleEntries, e));
  tiles = register_module("tiles", torch::nn::Embedding(kCells * kRanks, d));
  board_proj = register_module(
      "board_proj", torch::nn::Linear(torch::nn::LinearOptions(kTuples * e, d).bias(false)));
  if (attention) {
    tuple_proj = register_parameter("tuple_proj", torch::zeros({kTuples, e, d}));
    positions = register_module("positions", torch::nn::Embedding(kTupleRows - 1, d));
  }
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (int i = 0; i < config.num_hidden_layers; ++i) blocks->push_back(Block(config, attention));
  final_ln = register_module("final_ln", Norm(d, config.layer_norm_eps));
  heads = Heads(config, *this);
}

Tensor TupleNetImpl::LookUp(const Tensor& tokens, Form form) {
  const Tensor entries = EntriesOf(tokens);
  return form == Form::kFused ? LookUpRows(tuples->weight, entries) : tuples(entries);
}

Tensor TupleNetImpl::BoardRows(const Tensor& tokens, const Tensor& seen) {
  const Tensor places = tokens + kRanks * torch::arange(kCells, tokens.device());  // (B, 16)
  const Tensor sum = torch::nn::functional::embedding_bag(
      places, tiles->weight, torch::nn::functional::EmbeddingBagFuncOptions().mode(torch::kSum));
  return sum + board_proj(seen.flatten(1));
}

Tensor TupleNetImpl::AllRows(const Tensor& board, const Tensor& seen) {
  const int64_t own = kTupleRows - 1;
  const Tensor terms = torch::bmm(seen.transpose(0, 1), tuple_proj);  // (P, B, D)
  const Tensor shared = torch::arange(kTuples - own, seen.device());
  const Tensor rows =
      terms.narrow(0, 0, own).index_add(0, shared, terms.narrow(0, own, kTuples - own));
  const Tensor placed = rows.transpose(0, 1) + positions->weight;  // (B, 15, D)
  return torch::cat({board.unsqueeze(1), placed}, 1).reshape({-1, config.hidden_size});
}

// The last layer needs the board's rows only.
Tensor TupleNetImpl::RunBlocks(const Tensor& rows, Form form) {
  Tensor x = rows;
  for (size_t i = 0; i < blocks->size(); ++i) {
    auto& block = *blocks[i]->as<BlockImpl>();
    if (attention) {
      Attended attended = Attend(block, x, config, form);
      if (i + 1 == blocks->size()) {
        const auto board = [&](const Tensor& all) {
          return all.reshape({-1, kTupleRows, all.size(1)}).select(1, 0).contiguous();
        };
        attended = {board(attended.x), board(attended.seen)};
      }
      x = AddAttended(block, attended, form);
    }
    x = AddMlp(block, x, config, form);
  }
  return x;
}

Tensor TupleNetImpl::forward(const Tensor& tokens, Form form) {
  const Tensor seen = LookUp(tokens, form);
  const Tensor board = BoardRows(tokens, seen);
  const Tensor x = RunBlocks(attention ? AllRows(board, seen) : board, form);
  return heads.forward(form == Form::kFused
                           ? learn::FusedRmsNorm(x, final_ln->weight, config.layer_norm_eps)
                           : final_ln->forward(x));
}

void InitTupleNet(TupleNet& net, uint64_t seed) {
  learn::InitWeights(*net, seed);
  const torch::NoGradGuard no_grad;
  net->tuples->weight.zero_();
  net->tiles->weight.mul_(0.25);  // The sum over sixteen cells has variance 1.
  if (!net->attention) return;
  learn::FillNormal(net->tuple_proj, seed, "tuple_proj");
  for (const auto& module : *net->blocks) {
    module->as<BlockImpl>()->attn->wo->weight.zero_();
  }
}

namespace {

// Adds the weights of the network's layers from `first` on. They add nothing to their input at
// first: the last matrix of the MLP is zero, and so is that of attention; all else as the network
// has it.
void AddLayers(std::vector<io::NamedTensor>& weights, const TupleNetImpl& net, int first) {
  for (size_t i = static_cast<size_t>(first); i < net.blocks->size(); ++i) {
    const std::string layer = fmt::format("blocks.{}.", i);
    for (auto& [name, tensor] : learn::WeightsOf(*(*net.blocks)[i])) {
      const bool last = name == "mlp.w_down.weight" || name == "attn.wo.weight";
      weights.push_back(
          {layer + name,
           last ? learn::ToFile(torch::zeros_like(learn::FromFile(tensor))) : tensor});
    }
  }
}

}  // namespace

void LoadWeightsInto(TupleNet& net, const std::string& path) {
  const io::ModelFile file = io::ReadModel(path);
  const io::StateDict& read = file.weights;
  if (!IsTupleNet(read)) {
    throw Error("{}: its network has no tuples; drop model.tuple_width to train it", read.place());
  }
  const bool warm = net->attention && !HasAttention(read);
  std::vector<io::NamedTensor> weights = WithFittingHead(read, *net);
  AddLayers(weights, *net, ConfigOf(file, net->config.num_attention_heads).num_hidden_layers);
  if (warm) {
    for (const io::NamedTensor& own : learn::WeightsOf(*net)) {
      const bool known = std::ranges::count(weights, own.name, &io::NamedTensor::name) > 0;
      if (!known && (own.name == "tuple_proj" || own.name.starts_with("positions.") ||
                     own.name.find(".attn") != std::string::npos)) {
        weights.push_back(own);
      }
    }
  }
  learn::LoadWeights(*net, io::StateDict(std::move(weights), read.place()), read.place());
  if (!warm) return;
  const torch::NoGradGuard no_grad;
  const Tensor terms = net->board_proj->weight.t();  // (P E, D)
  net->tuple_proj.copy_(4 * terms.reshape(net->tuple_proj.sizes()));
}

}  // namespace kibitz::twenty48
