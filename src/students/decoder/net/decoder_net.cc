#include "students/decoder/net/decoder_net.h"

#include <limits>
#include <numbers>

#include "learn/added_rows.h"
#include "learn/buckets.h"
#include "students/decoder/data/sight.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::decoder {
namespace {

torch::Tensor BiasOf(const torch::Tensor& seen) {
  return torch::zeros(seen.sizes(), seen.options().dtype(torch::kFloat32))
      .masked_fill_(seen.logical_not(), -std::numeric_limits<float>::infinity());
}

torch::Tensor CausallySeen(int64_t length, torch::Device device) {
  const auto options = torch::TensorOptions().dtype(torch::kBool).device(device);
  return torch::ones({1, length, length}, options).tril();  // (1, S, S)
}

// The rows of the place embedding, then of that of the board before, two of each token, -1 for
// none: (4, B, S). ids: (B, S).
torch::Tensor PlacesOf(const torch::Tensor& ids) {
  const auto rows = ids.to(torch::kCPU, torch::kInt64).contiguous();
  auto places = torch::empty({4, rows.size(0), rows.size(1)}, torch::kInt64);
  const auto* from = rows.data_ptr<int64_t>();
  auto* place = places.data_ptr<int64_t>();
  auto* mark = place + rows.numel();
  auto* before = mark + rows.numel();
  auto* other = before + rows.numel();
  for (int64_t row = 0; row < rows.size(0); ++row) {
    BoardPlace board;
    for (int64_t i = 0; i < rows.size(1); ++i) {
      const PlaceRows found = board.Next(static_cast<TokenId>(*from++));
      *place++ = found.place;
      *mark++ = found.mark;
      *before++ = found.before;
      *other++ = found.other;
    }
  }
  return places;
}

// What SightsOf or AttacksOf finds in each board: rows of its embedding and the tokens, among all
// B * S, that they are added to.
learn::AddedRows FoundIn(const torch::Tensor& ids,
                         std::vector<SightRow> (*find)(std::span<const TokenId>)) {
  const auto numbers = ids.to(torch::kCPU, torch::kInt64).contiguous();
  const std::vector<TokenId> tokens(numbers.data_ptr<int64_t>(),
                                    numbers.data_ptr<int64_t>() + numbers.numel());
  learn::AddedRows sights;
  const auto length = static_cast<size_t>(ids.size(1));
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != kStartPos || i % length + kBoardTokens > length) continue;
    for (const SightRow& sight : find(std::span(tokens).subspan(i, kBoardTokens))) {
      sights.Add(static_cast<int64_t>(i) + 1 + sight.square, sight.row);
    }
  }
  return sights;
}

// The views of all tokens: positions (B, S), and where a token is hidden from another, (B, S, S).
struct Views {
  torch::Tensor positions;
  torch::Tensor hidden;
};
Views ViewsOf(const torch::Tensor& ids) {
  const auto rows = ids.to(torch::kCPU, torch::kInt64).contiguous();
  const int64_t length = rows.size(1);
  auto positions = torch::zeros_like(rows);
  auto hidden = torch::zeros({rows.size(0), length, length}, torch::kBool);
  for (int64_t row = 0; row < rows.size(0); ++row) {
    LineView line;
    for (int64_t i = 0; i < length; ++i) {
      const TokenView view = line.Next(static_cast<TokenId>(rows[row][i].item<int64_t>()));
      positions[row][i] = view.position;
      if (view.hidden_end > view.hidden_begin) {
        hidden[row][i]
            .narrow(0, view.hidden_begin, view.hidden_end - view.hidden_begin)
            .fill_(true);
      }
    }
  }
  return {positions.to(ids.device()), hidden.to(ids.device())};
}

}  // namespace

FourierEncoderImpl::FourierEncoderImpl(int64_t count, int64_t width)
    : frequencies(register_parameter("frequencies", torch::zeros({1, count}))),
      proj(register_module("proj", torch::nn::Linear(2 * count, width))) {}

torch::Tensor FourierEncoderImpl::Features(const torch::Tensor& x) {
  const auto angles = x.unsqueeze(1) * frequencies * (2 * std::numbers::pi);  // (N, frequencies)
  return torch::cat({angles.cos(), angles.sin()}, 1);
}

ValueHeadImpl::ValueHeadImpl(int64_t width, int64_t hidden, int64_t buckets, bool squares)
    : mlp(register_module("mlp",
                          torch::nn::Sequential(torch::nn::Linear(width, hidden), torch::nn::Mish(),
                                                torch::nn::Linear(hidden, buckets)))) {
  if (!squares) return;
  const auto options = torch::nn::LinearOptions(width, hidden).bias(false);
  from = register_module("from", torch::nn::Linear(options));
  to = register_module("to", torch::nn::Linear(options));
}

DecoderNetImpl::DecoderNetImpl(const NetConfig& config)
    : config(config),
      rotary(learn::MakeRotaryTable(config.max_seq_len, config.embed_dim / config.num_heads)) {
  CheckConfig(config);
  const int64_t width = config.embed_dim;
  wl_bucket_centers = register_buffer("wl_bucket_centers",
                                      learn::GaussianBuckets(config.n_buckets, config.wl_sigma));
  d_bucket_centers = register_buffer("d_bucket_centers", learn::UniformBuckets(config.n_buckets));
  tok_embedding = register_module("tok_embedding", torch::nn::Embedding(config.vocab_size, width));
  if (config.board_places) {
    place_embedding =
        register_module("place_embedding", torch::nn::Embedding(int64_t{kPlaceRows}, width));
  }
  if (config.board_before) {
    before_embedding =
        register_module("before_embedding", torch::nn::Embedding(int64_t{kBeforeRows}, width));
  }
  if (config.square_sight) {
    sight_embedding =
        register_module("sight_embedding", torch::nn::Embedding(int64_t{kSightRows}, width));
  }
  if (config.square_attacks) {
    attack_embedding =
        register_module("attack_embedding", torch::nn::Embedding(int64_t{kAttackRows}, width));
  }
  layers = register_module("layers", torch::nn::ModuleList());
  for (int i = 0; i < config.num_layers; ++i) {
    layers->push_back(learn::TransformerLayer(width, config.num_heads, config.d_ff));
  }
  norm = register_module("norm", learn::RmsNorm(width));
  board_head = register_module("board_head", torch::nn::Linear(width, config.board_vocab_size));
  policy_head = register_module("policy_head", torch::nn::Linear(width, config.move_vocab_size));
  thinking_policy_head =
      register_module("thinking_policy_head", torch::nn::Linear(width, config.move_vocab_size));
  if (config.line_votes) {
    line_vote = register_module("line_vote", torch::nn::Linear(width, 1));
  }
  const auto vote_of = [&](const char* name, int inputs) {
    return register_module(name,
                           torch::nn::Linear(torch::nn::LinearOptions(inputs, 1).bias(false)));
  };
  if (config.value_votes) value_vote = vote_of("value_vote", 2);
  if (config.compared_votes) compare_vote = vote_of("compare_vote", 3);
  const auto value_head = [&](const char* name, bool squares) {
    return register_module(name,
                           ValueHead(width, config.value_hidden_size, config.n_buckets, squares));
  };
  wl_head = value_head("wl_head", config.square_values);
  d_head = value_head("d_head", false);
  fourier_encoder =
      register_module("fourier_encoder", FourierEncoder(config.num_fourier_freq, width));
}

torch::Tensor DecoderNetImpl::Embed(const torch::Tensor& ids, const ValueInputs& values,
                                    Pass pass) {
  auto embedded = tok_embedding(ids);  // (B, S, D)
  if (config.board_places || config.board_before) {
    const auto places = PlacesOf(ids).to(ids.device());  // (4, B, S)
    const auto add = [&](torch::nn::Embedding& table, const torch::Tensor& rows) {
      const auto added = table(rows.clamp_min(0));  // (2, B, S, D)
      embedded = embedded + (added * (rows >= 0).unsqueeze(-1).to(added.dtype())).sum(0);
    };
    if (config.board_places) add(place_embedding, places.narrow(0, 0, 2));
    if (config.board_before) add(before_embedding, places.narrow(0, 2, 2));
  }
  const auto add_found = [&](torch::nn::Embedding& table, const learn::AddedRows& found) {
    const auto list = [&](const std::vector<int64_t>& rows) {
      return torch::tensor(rows, torch::kInt64).to(ids.device());
    };
    embedded = embedded.flatten(0, 1)
                   .index_add(0, list(found.to), table(list(found.rows)))
                   .view(embedded.sizes());
  };
  if (pass == Pass::kPrefix) {
    if (config.square_sight) add_found(sight_embedding, FoundIn(ids, SightsOf));
    if (config.square_attacks) add_found(attack_embedding, FoundIn(ids, AttacksOf));
  }
  const auto& wl = values.wl_positions;
  const auto& d = values.d_positions;
  // Mixed precision projects in another type than the embedding has.
  const auto encode = [&](const torch::Tensor& numbers) {
    return fourier_encoder(numbers).to(embedded.dtype());  // (N, D)
  };
  embedded = embedded.index_put({wl}, encode(values.wl_values.index({wl})));
  return embedded.index_put({d}, encode(values.d_values.index({d})));
}

torch::Tensor DecoderNetImpl::forward(const torch::Tensor& ids, const torch::Tensor& bias,
                                      const ValueInputs& values, Pass pass) {
  auto x = Embed(ids, values, pass);  // (B, S, D)
  learn::RotaryTable angles = {rotary.cosine.to(x.device()), rotary.sine.to(x.device())};
  auto seen = bias;
  if (config.separate_lines) {
    const Views views = ViewsOf(ids);
    const auto at = views.positions.flatten();  // (B * S)
    const std::vector<int64_t> shape = {ids.size(0), ids.size(1), -1};
    angles = {angles.cosine.index_select(0, at).view(shape),
              angles.sine.index_select(0, at).view(shape)};  // (B, S, E / 2)
    seen = bias.masked_fill(views.hidden.unsqueeze(1), -std::numeric_limits<float>::infinity());
  }
  for (const auto& layer : *layers) {
    x = layer->as<learn::TransformerLayer>()->forward(x, seen, angles);
  }
  return norm(x);
}

void InitNet(DecoderNet& net, uint64_t seed) {
  learn::InitWeights(*net, seed);
  learn::FillNormal(net->fourier_encoder->frequencies, seed, "fourier_encoder.frequencies");
  const torch::NoGradGuard no_grad;
  if (net->value_vote) net->value_vote->weight.zero_();
  if (net->compare_vote) net->compare_vote->weight.zero_();
}

torch::Tensor CausalBias(int64_t length) {
  return BiasOf(CausallySeen(length, torch::kCPU)).unsqueeze(1);
}

torch::Tensor PrefixBias(const torch::Tensor& block_id) {
  const auto same = block_id.unsqueeze(2) == block_id.unsqueeze(1);  // (B, S, S)
  return BiasOf(CausallySeen(block_id.size(1), block_id.device()) | same).unsqueeze(1);
}

}  // namespace kibitz::decoder
