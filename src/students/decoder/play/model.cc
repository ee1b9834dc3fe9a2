#include "students/decoder/play/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "nn/kernels/lanes.h"
#include "students/decoder/data/sight.h"

namespace kibitz::decoder {

using nn::Linear;
using nn::Precision;

namespace {

// As many as thoughts at once use, and some small ones for predictions.
constexpr size_t kFreeCaches = 32;

// x tanh(log(1 + e^x))
float Mish(float x) { return x * std::tanh(std::log1p(std::exp(x))); }

Linear ReadLinear(const io::StateDict& weights, const std::string& name, int64_t outputs,
                  int64_t inputs) {
  const std::vector<float> weight = weights.Floats(name + ".weight", {outputs, inputs});
  const std::vector<float> bias = weights.Floats(name + ".bias", {outputs});
  return Linear({.weight = weight, .outputs = outputs, .inputs = inputs, .bias = bias},
                Precision::kF32);
}

}  // namespace

struct Model::ValueHead {
  Linear first;
  Linear second;
};

// Only read once it is made, so that several models share it.
struct Model::Network {
  Network(const io::StateDict& weights, const NetConfig& given, Precision precision);
  void LoadLayers(const io::StateDict& weights);
  void LoadEmbeddings(const io::StateDict& weights);

  NetConfig config;
  nn::Transformer layers;
  std::vector<float> embeddings;  // (vocabulary + 2 * buckets, D)
  std::vector<float> places;      // (kPlaceRows, D) with board_places.
  std::vector<float> before;      // (kBeforeRows, D) with board_before.
  std::vector<float> sight;       // (kSightRows, D) with square_sight.
  std::vector<float> attacks;     // (kAttackRows, D) with square_attacks.
  std::vector<float> wl_centers;
  std::vector<float> d_centers;
  Linear board_head;
  Linear policy_head;
  Linear thinking_policy_head;
  // With square_policy: the heads' weights, (M, D).
  std::vector<float> policy_weight;
  std::vector<float> thinking_policy_weight;
  std::vector<float> line_vote;  // With line_votes: (D), then the bias.
  VoteWeights vote_weights;      // With value_votes and compared_votes; else 0.
  ValueHead wl_head;
  // With square_values: (hidden size, D) each.
  std::vector<float> wl_from;
  std::vector<float> wl_to;
  ValueHead d_head;
};

Model::Network::Network(const io::StateDict& weights, const NetConfig& given, Precision precision)
    : config(given),
      layers({.width = given.embed_dim,
              .heads = given.num_heads,
              .hidden = given.d_ff,
              .positions = given.max_seq_len + 1},
             precision) {
  const int64_t width = config.embed_dim;
  LoadLayers(weights);
  LoadEmbeddings(weights);
  board_head = ReadLinear(weights, "board_head", config.board_vocab_size, width);
  policy_head = ReadLinear(weights, "policy_head", config.move_vocab_size, width);
  thinking_policy_head = ReadLinear(weights, "thinking_policy_head", config.move_vocab_size, width);
  if (config.square_policy) {
    const auto shape = {static_cast<int64_t>(config.move_vocab_size), width};
    policy_weight = weights.Floats("policy_head.weight", shape);
    thinking_policy_weight = weights.Floats("thinking_policy_head.weight", shape);
  }
  const auto value_head = [&](const std::string& name) -> ValueHead {
    return {
        .first = ReadLinear(weights, name + ".mlp.0", config.value_hidden_size, width),
        .second = ReadLinear(weights, name + ".mlp.2", config.n_buckets, config.value_hidden_size)};
  };
  if (config.line_votes) {
    line_vote = weights.Floats("line_vote.weight", {1, width});
    line_vote.push_back(weights.Floats("line_vote.bias", {1}).front());
  }
  if (config.value_votes) {
    std::ranges::copy(weights.Floats("value_vote.weight", {1, 2}), vote_weights.value.begin());
  }
  if (config.compared_votes) {
    std::ranges::copy(weights.Floats("compare_vote.weight", {1, 3}), vote_weights.compared.begin());
  }
  wl_head = value_head("wl_head");
  if (config.square_values) {
    const auto shape = {static_cast<int64_t>(config.value_hidden_size), width};
    wl_from = weights.Floats("wl_head.from.weight", shape);
    wl_to = weights.Floats("wl_head.to.weight", shape);
  }
  d_head = value_head("d_head");
}

void Model::Network::LoadLayers(const io::StateDict& weights) {
  const int64_t width = config.embed_dim;
  const int64_t hidden = config.d_ff;
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string layer = fmt::format("layers.{}.", i);
    const auto q = weights.Floats(layer + "attn.q_proj.weight", {width, width});
    const auto k = weights.Floats(layer + "attn.k_proj.weight", {width, width});
    const auto v = weights.Floats(layer + "attn.v_proj.weight", {width, width});
    const auto output = weights.Floats(layer + "attn.output_proj.weight", {width, width});
    const auto w1 = weights.Floats(layer + "mlp.w1.weight", {hidden, width});
    const auto w2 = weights.Floats(layer + "mlp.w2.weight", {width, hidden});
    const auto w3 = weights.Floats(layer + "mlp.w3.weight", {hidden, width});
    const auto attention_norm = weights.Floats(layer + "sa_norm.scale", {width});
    const auto mlp_norm = weights.Floats(layer + "mlp_norm.scale", {width});
    layers.AddLayer({.q = q,
                     .k = k,
                     .v = v,
                     .output = output,
                     .w1 = w1,
                     .w2 = w2,
                     .w3 = w3,
                     .attention_norm = attention_norm,
                     .mlp_norm = mlp_norm});
  }
  layers.SetFinalNorm(weights.Floats("norm.scale", {width}));
}

// Values are always centres of buckets, so their Fourier features become rows of the table too.
void Model::Network::LoadEmbeddings(const io::StateDict& weights) {
  const int64_t width = config.embed_dim;
  const int64_t buckets = config.n_buckets;
  const int64_t count = config.num_fourier_freq;
  embeddings = weights.Floats("tok_embedding.weight", {config.vocab_size, width});
  if (config.board_places) {
    places = weights.Floats("place_embedding.weight", {kPlaceRows, width});
  }
  if (config.board_before) {
    before = weights.Floats("before_embedding.weight", {kBeforeRows, width});
  }
  if (config.square_sight) {
    sight = weights.Floats("sight_embedding.weight", {kSightRows, width});
  }
  if (config.square_attacks) {
    attacks = weights.Floats("attack_embedding.weight", {kAttackRows, width});
  }
  wl_centers = weights.Floats("wl_bucket_centers", {buckets});
  d_centers = weights.Floats("d_bucket_centers", {buckets});
  const auto frequencies = weights.Floats("fourier_encoder.frequencies", {1, count});
  const Linear projection = ReadLinear(weights, "fourier_encoder.proj", width, 2 * count);
  const size_t first = embeddings.size();
  embeddings.resize(first + static_cast<size_t>(2 * buckets * width));
  nn::Team team(1);
  nn::PackedRows packed;
  packed.Pack(team, 2 * buckets, projection, [&](int64_t row, float* out) {
    const float x = row < buckets ? wl_centers[static_cast<size_t>(row)]
                                  : d_centers[static_cast<size_t>(row - buckets)];
    for (int64_t i = 0; i < count; ++i) {
      const float angle =
          x * frequencies[static_cast<size_t>(i)] * static_cast<float>(2 * std::numbers::pi);
      out[i] = std::cos(angle);
      out[count + i] = std::sin(angle);
    }
  });
  projection.Run(team, packed, {.to = embeddings.data() + first, .row = width});
}

Model::Model(const io::StateDict& weights, const NetConfig& config,
             const nn::NetworkOptions& options)
    : network_(std::make_shared<const Network>(weights, config, options.precision)),
      team_(options.threads) {}

Model::Model(const Model& other, int threads) : network_(other.network_), team_(threads) {}
Model::~Model() = default;

const NetConfig& Model::config() const { return network_->config; }
const nn::Transformer& Model::layers() const { return network_->layers; }
float Model::WlOf(int bucket) const { return network_->wl_centers[static_cast<size_t>(bucket)]; }
float Model::DOf(int bucket) const { return network_->d_centers[static_cast<size_t>(bucket)]; }

size_t Model::memory_bytes() const {
  size_t bytes = network_->layers.memory_bytes();
  bytes += (network_->embeddings.size() + network_->places.size() + network_->before.size() +
            network_->sight.size() + network_->attacks.size() + network_->policy_weight.size() +
            network_->thinking_policy_weight.size() + network_->wl_from.size() +
            network_->wl_to.size()) *
           sizeof(float);
  for (const Linear* head :
       {&network_->board_head, &network_->policy_head, &network_->thinking_policy_head,
        &network_->wl_head.first, &network_->wl_head.second, &network_->d_head.first,
        &network_->d_head.second}) {
    bytes += head->memory_bytes();
  }
  return bytes;
}

CachePtr Model::TakeCache(int positions) {
  const std::lock_guard lock(cache_mutex_);
  const auto fits = std::ranges::find_if(free_caches_, [&](const auto& cache) {
    return cache->sizes().positions >= positions && cache->sizes().positions <= 4 * positions;
  });
  if (fits == free_caches_.end()) {
    return {new nn::KvCache(network_->layers.CacheFor(positions)), {.model = this}};
  }
  nn::KvCache* cache = fits->release();
  free_caches_.erase(fits);
  return {cache, {.model = this}};
}

void ReturnCache::operator()(nn::KvCache* cache) const {
  const std::lock_guard lock(model->cache_mutex_);
  auto& free = model->free_caches_;
  free.emplace_back(cache);
  if (free.size() > kFreeCaches) free.erase(free.begin());  // The one that is free longest.
}

const float* Model::Read(std::span<const Reading> readings, const std::stop_token& stop) {
  const int64_t width = network_->config.embed_dim;
  nn::Pass pass;
  int64_t rows = 0;
  for (const Reading& reading : readings) {
    for (int wanted : reading.wanted) pass.wanted.push_back(rows + wanted);
    pass.segments.push_back({.cache = reading.cache,
                             .first = reading.first,
                             .rows = static_cast<int64_t>(reading.inputs.size()),
                             .block = reading.block,
                             .views = reading.views});
    rows += static_cast<int64_t>(reading.inputs.size());
  }
  memory_.x.Reserve(rows * width);
  float* x = memory_.x.data();
  for (const Reading& reading : readings) {
    for (Input input : reading.inputs) {
      std::copy_n(network_->embeddings.data() + input.row() * width, width, x);
      const auto add = [&](std::span<const float> table, int row) {
        if (table.empty() || row < 0) return;
        const float* from = table.data() + row * width;
        for (int64_t i = 0; i < width; ++i) x[i] += from[i];
      };
      add(network_->places, input.places().place);
      add(network_->places, input.places().mark);
      add(network_->before, input.places().before);
      add(network_->before, input.places().other);
      x += width;
    }
    const bool seeing = !network_->sight.empty() || !network_->attacks.empty();
    if (seeing && reading.is_board()) {
      BoardTokens board;
      std::ranges::transform(reading.inputs, board.begin(),
                             [](const Input& input) { return static_cast<TokenId>(input.row()); });
      float* rows = x - kBoardTokens * width;
      if (!network_->sight.empty()) AddSights(board, network_->sight, width, rows);
      if (!network_->attacks.empty()) AddAttacks(board, network_->attacks, width, rows);
    }
  }
  return network_->layers.Run(team_, pass, memory_, stop) ? memory_.hidden.data() : nullptr;
}

void Model::Apply(const Linear& head, const float* hidden, int64_t rows, std::vector<float>& out) {
  out.resize(static_cast<size_t>(rows * head.outputs()));
  packed_.Pack(team_, rows, head, hidden, head.inputs());
  head.Run(team_, packed_, {.to = out.data(), .row = head.outputs()});
}

std::vector<nn::RowView> ViewsFrom(const NetConfig& config, std::span<const Input> stream,
                                   size_t first, std::span<const Input> more) {
  std::vector<nn::RowView> views;
  if (!config.separate_lines) return views;
  LineView line;
  size_t index = 0;
  for (const auto& part : {stream, more}) {
    for (const Input input : part) {
      const bool token = input.row() < kVocabularySize;
      const TokenView view =
          line.Next(token ? static_cast<TokenId>(input.row()) : TokenId{kWlValue});
      if (index++ < first) continue;
      views.push_back({.turn = view.position,
                       .hidden_begin = view.hidden_begin,
                       .hidden_end = view.hidden_end});
    }
  }
  return views;
}

std::vector<int> BoardWanted(const NetConfig& config) {
  std::vector<int> wanted;
  for (int token = 1; config.square_policy && token <= 64; ++token) wanted.push_back(token);
  wanted.push_back(kBoardTokens - 1);
  return wanted;
}

// Of each move token: weight . (hidden of one square + of the other).
static std::vector<float> SquareLogits(std::span<const float> weight, const float* hidden,
                                       int64_t width) {
  static const std::vector<MoveSquares> squares = [] {
    std::vector<MoveSquares> made;
    for (TokenId move = 0; move < kMoveVocabularySize; ++move) made.push_back(SquaresOf(move));
    return made;
  }();
  std::vector<float> logits;
  if (weight.empty()) return logits;
  const float* row = weight.data();
  for (const MoveSquares& move : squares) {
    const float* from = hidden + move.from.index() * width;
    const float* to = hidden + move.to.index() * width;
    nn::Lanes sum{};
    int64_t i = 0;
    for (; i + nn::kLanes <= width; i += nn::kLanes) {
      sum += nn::Load(row + i) * (nn::Load(from + i) + nn::Load(to + i));
    }
    float rest = 0;
    for (; i < width; ++i) rest += row[i] * (from[i] + to[i]);
    logits.push_back(nn::Sum(sum) + rest);
    row += width;
  }
  return logits;
}

std::vector<float> Model::PolicySquares(const float* hidden) const {
  return SquareLogits(network_->policy_weight, hidden, network_->config.embed_dim);
}
std::vector<float> Model::ThinkingSquares(const float* hidden) const {
  return SquareLogits(network_->thinking_policy_weight, hidden, network_->config.embed_dim);
}

float Model::LineVote(const float* hidden) const {
  if (network_->line_vote.empty()) return 0;
  return nn::Dot(network_->line_vote.data(), hidden, network_->config.embed_dim) +
         network_->line_vote.back();
}

const VoteWeights& Model::vote_weights() const { return network_->vote_weights; }

void Model::BoardPolicy(const float* hidden, int64_t boards, std::vector<float>& logits) {
  if (!network_->config.square_policy) return PolicyLogits(hidden, boards, logits);
  const int64_t width = network_->config.embed_dim;
  const auto rows = static_cast<int64_t>(BoardWanted(network_->config).size());
  std::vector<float> last;
  for (int64_t i = 0; i < boards; ++i) {
    const float* at = hidden + ((i + 1) * rows - 1) * width;
    last.insert(last.end(), at, at + width);
  }
  PolicyLogits(last.data(), boards, logits);
  float* to = logits.data();
  for (int64_t i = 0; i < boards; ++i) {
    for (float add : PolicySquares(hidden + i * rows * width)) *to++ += add;
  }
}

void Model::PolicyLogits(const float* hidden, int64_t rows, std::vector<float>& logits) {
  Apply(network_->policy_head, hidden, rows, logits);
}
void Model::ThinkingLogits(const float* hidden, int64_t rows, std::vector<float>& logits) {
  Apply(network_->thinking_policy_head, hidden, rows, logits);
}
void Model::BoardLogits(const float* hidden, int64_t rows, std::vector<float>& logits) {
  Apply(network_->board_head, hidden, rows, logits);
}

std::vector<float> Model::SquareStates(const float* hidden) const {
  if (!network_->config.square_values) return {};
  return {hidden, hidden + 64 * network_->config.embed_dim};
}

std::vector<int> Model::WlBuckets(const float* hidden, std::span<const PlayedMove> moves) {
  std::vector<float> middle;
  Apply(network_->wl_head.first, hidden, static_cast<int64_t>(moves.size()), middle);
  float* to = middle.data();
  const int64_t width = network_->config.embed_dim;
  for (const PlayedMove& move : moves) {
    if (!network_->config.square_values) break;
    CHECK(move.squares.size() == static_cast<size_t>(64 * width));
    const MoveSquares squares = SquaresOf(move.token);
    const float* left = move.squares.data() + squares.from.index() * width;
    const float* reached = move.squares.data() + squares.to.index() * width;
    for (int64_t i = 0; i < network_->config.value_hidden_size; ++i) {
      *to++ += nn::Dot(network_->wl_from.data() + i * width, left, width) +
               nn::Dot(network_->wl_to.data() + i * width, reached, width);
    }
  }
  return Buckets(network_->wl_head, network_->wl_centers, middle);
}
std::vector<int> Model::DBuckets(const float* hidden, int64_t rows) {
  std::vector<float> middle;
  Apply(network_->d_head.first, hidden, rows, middle);
  return Buckets(network_->d_head, network_->d_centers, middle);
}

// The bucket whose centre is nearest to the mean of the distribution.
static int MeanBucket(std::span<const float> logits, std::span<const float> centers) {
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  double mean = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp(static_cast<double>(logits[i] - largest));
    sum += weight;
    mean += weight * static_cast<double>(centers[i]);
  }
  mean /= sum;
  const auto nearest = std::ranges::min_element(
      centers, {}, [&](float center) { return std::abs(static_cast<double>(center) - mean); });
  return static_cast<int>(nearest - centers.begin());
}

std::vector<int> Model::Buckets(const ValueHead& head, std::span<const float> centers,
                                std::vector<float>& middle) {
  std::vector<float> logits;
  const auto rows = static_cast<int64_t>(middle.size()) / network_->config.value_hidden_size;
  for (float& x : middle) x = Mish(x);
  Apply(head.second, middle.data(), rows, logits);
  std::vector<int> buckets;
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = logits.begin() + row * network_->config.n_buckets;
    if (network_->config.mean_values) {
      buckets.push_back(MeanBucket({first, first + network_->config.n_buckets}, centers));
      continue;
    }
    buckets.push_back(
        static_cast<int>(std::max_element(first, first + network_->config.n_buckets) - first));
  }
  return buckets;
}

// --- Random weights ---

namespace {

class Drawing {
 public:
  explicit Drawing(uint64_t seed) : seed_(seed) {}

  template <typename Draw>
  void Add(const std::string& name, std::vector<int64_t> shape, Draw draw) {
    Rng rng({.seed = seed_, .purpose = Purpose(name)});
    const auto count = static_cast<size_t>(io::CountOf(shape).value());
    std::vector<std::byte> bytes(count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
      const auto number = static_cast<float>(draw(rng, i));
      std::memcpy(bytes.data() + i * sizeof(float), &number, sizeof(float));
    }
    tensors_.push_back(
        {name, io::OwnedTensor(io::DType::kF32, std::move(shape), std::move(bytes))});
  }
  void AddUniform(const std::string& name, std::vector<int64_t> shape, int64_t inputs) {
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    Add(name, std::move(shape), [=](Rng& rng, size_t) { return (2 * rng.Uniform() - 1) * bound; });
  }
  void AddLinear(const std::string& name, int64_t outputs, int64_t inputs, bool bias) {
    AddUniform(name + ".weight", {outputs, inputs}, inputs);
    if (bias) AddUniform(name + ".bias", {outputs}, inputs);
  }
  void AddNormal(const std::string& name, std::vector<int64_t> shape) {
    Add(name, std::move(shape), [](Rng& rng, size_t) { return rng.Normal(); });
  }
  void AddOnes(const std::string& name, int64_t size) {
    Add(name, {size}, [](Rng&, size_t) { return 1.0; });
  }
  io::StateDict Take() { return {std::move(tensors_), "random weights"}; }

 private:
  uint64_t seed_;
  std::vector<io::NamedTensor> tensors_;
};

}  // namespace

io::StateDict RandomWeights(const NetConfig& config, uint64_t seed) {
  Drawing drawing(seed);
  const int64_t width = config.embed_dim;
  const int64_t buckets = config.n_buckets;
  const auto centre = [=](size_t i) {
    return (static_cast<double>(i) + 0.5) / static_cast<double>(buckets);
  };
  // Evenly spaced, unlike a trained network's wl buckets.
  drawing.Add("wl_bucket_centers", {buckets}, [=](Rng&, size_t i) { return 2 * centre(i) - 1; });
  drawing.Add("d_bucket_centers", {buckets}, [=](Rng&, size_t i) { return centre(i); });
  drawing.AddNormal("tok_embedding.weight", {config.vocab_size, width});
  if (config.board_places) drawing.AddNormal("place_embedding.weight", {kPlaceRows, width});
  if (config.board_before) drawing.AddNormal("before_embedding.weight", {kBeforeRows, width});
  if (config.square_sight) drawing.AddNormal("sight_embedding.weight", {kSightRows, width});
  if (config.square_attacks) drawing.AddNormal("attack_embedding.weight", {kAttackRows, width});
  for (int i = 0; i < config.num_layers; ++i) {
    const std::string layer = fmt::format("layers.{}.", i);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "output_proj"}) {
      drawing.AddLinear(layer + "attn." + name, width, width, false);
    }
    drawing.AddLinear(layer + "mlp.w1", config.d_ff, width, false);
    drawing.AddLinear(layer + "mlp.w2", width, config.d_ff, false);
    drawing.AddLinear(layer + "mlp.w3", config.d_ff, width, false);
    drawing.AddOnes(layer + "sa_norm.scale", width);
    drawing.AddOnes(layer + "mlp_norm.scale", width);
  }
  drawing.AddOnes("norm.scale", width);
  drawing.AddLinear("board_head", config.board_vocab_size, width, true);
  drawing.AddLinear("policy_head", config.move_vocab_size, width, true);
  drawing.AddLinear("thinking_policy_head", config.move_vocab_size, width, true);
  if (config.line_votes) drawing.AddLinear("line_vote", 1, width, true);
  if (config.value_votes) drawing.AddLinear("value_vote", 1, 2, false);
  if (config.compared_votes) drawing.AddLinear("compare_vote", 1, 3, false);
  for (const std::string head : {"wl_head", "d_head"}) {
    drawing.AddLinear(head + ".mlp.0", config.value_hidden_size, width, true);
    drawing.AddLinear(head + ".mlp.2", buckets, config.value_hidden_size, true);
  }
  for (const std::string side : {"from", "to"}) {
    if (!config.square_values) break;
    drawing.AddLinear("wl_head." + side, config.value_hidden_size, width, false);
  }
  const int64_t frequencies = config.num_fourier_freq;
  drawing.AddNormal("fourier_encoder.frequencies", {1, frequencies});
  drawing.AddLinear("fourier_encoder.proj", width, 2 * frequencies, true);
  return drawing.Take();
}

}  // namespace kibitz::decoder
