// The decoder at play beside the plain way: libtorch, everything computed anew for every token.
//
// The network has the real size and random weights; it writes a fixed thought of 3 variations of 5
// moves, so that weights do not matter. The plain way is measured on passes of a few lengths and
// added up over all tokens. Eight thoughts at once are compared with the same eight in turn.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "bench/bench.h"
#include "bench/peak.h"
#include "games/chess/movegen.h"
#include "learn/runtime.h"
#include "learn/weights.h"
#include "students/decoder/net/decoder_net.h"
#include "students/decoder/play/model.h"
#include "students/decoder/play/player.h"

namespace kibitz::bench {
namespace {

using decoder::Input;
using decoder::kBoardTokens;
using decoder::Model;
using decoder::NetConfig;
using decoder::Player;
using decoder::Reading;
using decoder::Thought;
using decoder::TokenId;

constexpr int kVariations = 3;
constexpr int kDepth = 5;
constexpr uint64_t kSeed = 7;

// The real network, with room for the whole thought.
NetConfig RealSize() { return {.max_seq_len = 1280}; }
// One that two cores can train.
NetConfig SmallSize() {
  return {.embed_dim = 256, .num_heads = 8, .num_layers = 6, .max_seq_len = 1280, .d_ff = 384};
}

// That of models/decoder-small, with room for longer thoughts.
NetConfig ShippedSize() {
  return {.embed_dim = 128,
          .num_heads = 4,
          .num_layers = 4,
          .max_seq_len = 1280,
          .d_ff = 256,
          .n_buckets = 64,
          .value_hidden_size = 64,
          .num_fourier_freq = 32,
          .mean_values = true,
          .square_policy = true,
          .square_values = true,
          .separate_lines = true,
          .line_votes = true,
          .value_votes = true,
          .board_places = true,
          .board_before = true};
}

void AddBoard(const chess::Board& board, std::vector<TokenId>& tokens) {
  const auto ids = decoder::BoardTokensOf(board);
  tokens.insert(tokens.end(), ids.begin(), ids.end());
}

struct ScriptOptions {
  int variations = 0;
  int depth = 0;
  chess::Board root = {};
  uint64_t seed = kSeed;
  // Every board has a wrong square, as networks that are not fully trained write them: drafts fail.
  bool wrong_boards = false;
};

// A thought of legal moves.
std::vector<TokenId> Script(const ScriptOptions& options) {
  const auto& [variations, depth, root, seed, wrong_boards] = options;
  Rng rng({.seed = seed});
  std::vector<TokenId> tokens;
  AddBoard(root, tokens);
  tokens.push_back(decoder::kStartThink);
  for (int i = 0; i < variations; ++i) {
    chess::Board board = root;
    for (int ply = 0; ply < depth; ++ply) {
      const chess::MoveList moves = chess::LegalMoves(board);
      const chess::Move move = moves[rng.Below(moves.size())];
      tokens.insert(tokens.end(), {decoder::TokenOf(move), TokenId{decoder::kWlValue},
                                   TokenId{decoder::kDValue}});
      board = board.After(move);
      AddBoard(board, tokens);
      if (wrong_boards) {
        TokenId& square = tokens[tokens.size() - kBoardTokens + 1 + rng.Below(64)];
        square = square == decoder::kEmpty ? decoder::kWhitePawn : decoder::kEmpty;
      }
    }
    tokens.push_back(decoder::kEndVar);
  }
  tokens.push_back(decoder::kEndThink);
  tokens.insert(tokens.end(), {decoder::FindToken("e2e4").value(), TokenId{decoder::kWlValue},
                               TokenId{decoder::kDValue}});
  return tokens;
}

uint64_t SignatureOf(const std::vector<TokenId>& tokens) {
  Signature signature;
  for (TokenId token : tokens) signature.Add(token);
  return signature.value();
}

// The plain network on libtorch, one pass over a whole sequence.
class PlainNet {
 public:
  explicit PlainNet(const NetConfig& config) : net_(config) {
    learn::LoadWeights(*net_, decoder::RandomWeights(config, kSeed), "random weights");
  }

  // A pass over the first tokens, as the script of the documents does for each token.
  double SecondsFor(const std::vector<TokenId>& tokens, int64_t length, bool prefix) {
    const torch::NoGradGuard no_grad;
    const auto ids = torch::empty({1, length}, torch::kInt64);
    for (int64_t i = 0; i < length; ++i) {
      ids[0][i] = static_cast<int64_t>(tokens[static_cast<size_t>(i)]);
    }
    // One block: the cost does not depend on the mask.
    const auto bias = prefix ? decoder::PrefixBias(torch::zeros({1, length}, torch::kInt64))
                             : decoder::CausalBias(length);
    const auto none = torch::zeros({1, length});
    const decoder::ValueInputs values = {none, none, none.to(torch::kBool), none.to(torch::kBool)};
    return SecondsOf([&] {
      const auto hidden = net_->forward(ids, bias, values, decoder::Pass::kCausal);  // (1, S, D)
      const auto last = hidden.index({0, length - 1});                               // (D)
      prefix ? net_->policy_head(last) : net_->board_head(last);
    });
  }

 private:
  decoder::DecoderNet net_;
};

// Seconds of a pass by its length, between measured ones on straight lines.
class PlainCost {
 public:
  PlainCost(PlainNet& net, const std::vector<TokenId>& tokens, int rounds) {
    const auto size = static_cast<int64_t>(tokens.size());
    for (const int64_t length : {int64_t{69}, size / 3, size * 2 / 3, size}) {
      std::vector<double> seconds;
      for (int i = 0; i < rounds; ++i) seconds.push_back(net.SecondsFor(tokens, length, false));
      lengths_.push_back(static_cast<double>(length));
      seconds_.push_back(Median(seconds));
    }
  }
  double At(double length) const {
    size_t i = 1;
    while (i + 1 < lengths_.size() && length > lengths_[i]) ++i;
    const double part = (length - lengths_[i - 1]) / (lengths_[i] - lengths_[i - 1]);
    return seconds_[i - 1] + part * (seconds_[i] - seconds_[i - 1]);
  }
  // One pass for every token behind start_think but the placeholders of wl and d, two for those:
  // each value is predicted by a pass of its own; and one for each decision that writes no token.
  double Whole(const std::vector<TokenId>& tokens) const {
    double sum = 0;
    for (size_t i = kBoardTokens + 1; i < tokens.size(); ++i) sum += At(static_cast<double>(i));
    for (size_t i = kBoardTokens + 1; i < tokens.size(); ++i) {
      const bool move = decoder::IsMove(tokens[i]) && i > kBoardTokens + 1;
      if (move) sum += At(static_cast<double>(i));  // continue_var or new_variation.
    }
    return sum;
  }
  std::string Text() const {
    std::string text;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      text += fmt::format("{}{:.0f} ms at {:.0f} tokens", i == 0 ? "" : ", ", seconds_[i] * 1000,
                          lengths_[i]);
    }
    return text;
  }

 private:
  std::vector<double> lengths_;
  std::vector<double> seconds_;
};

// A board pass in the middle of a thought: both streams, drafted. What is before it is read once.
class BoardPass {
 public:
  BoardPass(Model& model, const std::vector<TokenId>& tokens)
      : model_(model),
        tokens_(tokens),
        causal_(model.TakeCache(kContext + 80)),
        prefix_(model.TakeCache(kContext + 80)) {
    const std::vector<Reading> before = {
        {.cache = causal_.get(), .inputs = Inputs(0, kContext), .wanted = {0}},
        {.cache = prefix_.get(), .inputs = Inputs(0, kContext)}};
    model.Read(before);
    Reading own = {.cache = causal_.get(), .first = kContext, .inputs = Inputs(kContext, 71)};
    for (int i = 2; i < 71; ++i) own.wanted.push_back(i);
    pass_ = {own,
             {.cache = prefix_.get(), .first = kContext + 2, .inputs = Inputs(kContext + 2, 1)},
             {.cache = prefix_.get(),
              .first = kContext + 3,
              .inputs = Inputs(kContext + 3, 68),
              .block = true,
              .wanted = {67}}};
  }

  // Multiplications and additions a second; the median of three passes.
  double Rate() {
    std::vector<double> seconds;
    for (int i = 0; i < 3; ++i) seconds.push_back(SecondsOf([&] { model_.Read(pass_); }));
    const NetConfig& config = model_.config();
    const double attention = 140.0 * (kContext + 50) * 4 * config.embed_dim * config.num_layers;
    return (model_.layers().ProductFlops(140, 70) + attention) / Median(seconds);
  }

 private:
  static constexpr int kContext = 640;

  std::vector<Input> Inputs(int first, int count) const {
    std::vector<Input> inputs;
    for (int i = first; i < first + count; ++i) {
      inputs.push_back(Input::Of(tokens_[static_cast<size_t>(i) % tokens_.size()]));
    }
    return inputs;
  }

  Model& model_;
  const std::vector<TokenId>& tokens_;
  decoder::CachePtr causal_;
  decoder::CachePtr prefix_;
  std::vector<Reading> pass_;
};

std::unique_ptr<Model> MakeModel(nn::Precision precision) {
  const NetConfig config = RealSize();
  return std::make_unique<Model>(decoder::RandomWeights(config, kSeed), config,
                                 nn::NetworkOptions{.precision = precision});
}

void MeasureThoughts(Bench& bench, const std::vector<TokenId>& script, Player& f32, Player& int8,
                     const PlainCost& plain) {
  std::vector<double> f32_seconds;
  std::vector<double> int8_seconds;
  Thought thought;
  for (int round = 0; round < (bench.quick() ? 1 : 3); ++round) {
    thought = f32.Think(chess::Board(), {.script = script});
    f32_seconds.push_back(thought.stats.seconds);
    if (thought.tokens != script) bench.Fail("the thought does not follow its script");
    int8_seconds.push_back(int8.Think(chess::Board(), {.script = script}).stats.seconds);
  }
  const double whole = plain.Whole(script);
  const double mine = Median(f32_seconds);
  bench.Say(fmt::format("plain libtorch: {}", plain.Text()));
  bench.Say(fmt::format("the whole thought, {} tokens: f32 {:.2f} s in {} passes, plain {:.0f} s",
                        script.size(), mine, thought.stats.passes, whole));
  bench.Report({.name = "thought, f32",
                .value = 1 / mine,
                .unit = "thoughts/s",
                .yardstick = 1 / whole,
                .yardstick_name = "every token anew, libtorch",
                .signature = SignatureOf(thought.tokens),
                // A short thought has little to compute anew.
                .promised_ratio = bench.quick() ? std::nullopt : std::optional(100.0)});
  bench.Report({.name = "thought, int8",
                .value = 1 / Median(int8_seconds),
                .unit = "thoughts/s",
                .yardstick = 1 / mine,
                .yardstick_name = "f32",
                .signature = SignatureOf(thought.tokens)});
}

// Eight positions some moves from the start, each with its own script.
std::vector<decoder::ThinkTask> Tasks(ScriptOptions options) {
  std::vector<decoder::ThinkTask> tasks;
  Rng rng({.seed = kSeed, .sample = 1});
  for (uint64_t i = 0; i < 8; ++i) {
    chess::Board board;
    for (uint64_t ply = 0; ply < 2 * i; ++ply) {
      const chess::MoveList moves = chess::LegalMoves(board);
      board = board.After(moves[rng.Below(moves.size())]);
    }
    options.root = board;
    options.seed = kSeed + i;
    tasks.push_back({.root = board, .options = {.script = Script(options)}});
  }
  return tasks;
}

struct Written {
  double tokens = 0;
  double seconds = 0;
  uint64_t signature = 0;
};

void AddTo(Signature& signature, Written& written, const Thought& thought) {
  written.tokens += thought.stats.written_tokens;
  for (TokenId token : thought.tokens) signature.Add(token);
  for (const auto& entry : thought.wl_entries) signature.Add(std::bit_cast<uint32_t>(entry.value));
}

Written InTurn(Player& player, const std::vector<decoder::ThinkTask>& tasks) {
  Written written;
  Signature signature;
  written.seconds = SecondsOf([&] {
    for (const auto& task : tasks) {
      AddTo(signature, written, player.Think(task.root, task.options));
    }
  });
  written.signature = signature.value();
  return written;
}

Written AtOnce(Player& player, const std::vector<decoder::ThinkTask>& tasks) {
  Written written;
  std::vector<Thought> thoughts(tasks.size());
  written.seconds = SecondsOf([&] {
    size_t next = 0;
    player.ThinkEach(
        [&] { return next < tasks.size() ? std::optional(tasks[next++]) : std::nullopt; },
        [&](size_t number, Thought thought) { thoughts[number] = std::move(thought); });
  });
  Signature signature;
  for (const Thought& thought : thoughts) AddTo(signature, written, thought);
  written.signature = signature.value();
  return written;
}

void MeasureAtOnce(Bench& bench, const std::string& name, Player& player,
                   const ScriptOptions& options) {
  const std::vector<decoder::ThinkTask> tasks = Tasks(options);
  std::vector<double> in_turn;
  std::vector<double> at_once;
  Written both;
  AtOnce(player, tasks);  // The caches of eight thoughts are fresh memory the first time.
  // Small networks take milliseconds.
  const int rounds = player.config().embed_dim < 1024 ? 9 : bench.quick() ? 1 : 3;
  for (int round = 0; round < rounds; ++round) {
    const Written one = InTurn(player, tasks);
    both = AtOnce(player, tasks);
    in_turn.push_back(one.tokens / one.seconds);
    at_once.push_back(both.tokens / both.seconds);
    if (one.signature != both.signature) bench.Fail(name + ": other answers than one at a time");
  }
  bench.Report({.name = "8 thoughts at once, " + name,
                .value = Median(at_once),
                .unit = "tokens/s",
                .yardstick = Median(in_turn),
                .yardstick_name = "in turn",
                .signature = both.signature});
}

// Where all drafts hold, and where each board has a wrong square; smaller networks too.
void MeasureManyThoughts(Bench& bench, Player& f32, Player& int8) {
  const int variations = bench.quick() ? 1 : kVariations;
  const ScriptOptions held = {.variations = variations, .depth = 3};
  const ScriptOptions wrong = {.variations = variations, .depth = 3, .wrong_boards = true};
  MeasureAtOnce(bench, "f32", f32, held);
  MeasureAtOnce(bench, "int8", int8, held);
  MeasureAtOnce(bench, "f32, wrong boards", f32, wrong);
  MeasureAtOnce(bench, "int8, wrong boards", int8, wrong);
  const auto small = Player::Random(SmallSize(), kSeed);
  MeasureAtOnce(bench, "width 256", *small, held);
  MeasureAtOnce(bench, "width 256, wrong boards", *small, wrong);
  for (const auto& [name, precision] : nn::kPrecisions) {
    const auto shipped = Player::Random(ShippedSize(), kSeed, {.precision = precision});
    MeasureAtOnce(bench, fmt::format("decoder-small, {}", name), *shipped, held);
    MeasureAtOnce(bench, fmt::format("decoder-small, {}, wrong boards", name), *shipped, wrong);
  }
}

// Peak and passes in turns: what disturbs one disturbs the other.
void MeasureBlocks(Bench& bench, Model& f32, Model& int8, const std::vector<TokenId>& script) {
  BoardPass f32_pass(f32, script);
  BoardPass int8_pass(int8, script);
  std::vector<double> peaks;
  std::vector<double> f32_rates;
  std::vector<double> int8_rates;
  for (int round = 0; round < (bench.quick() ? 3 : 15); ++round) {
    peaks.push_back(MeasurePeak(1));
    f32_rates.push_back(f32_pass.Rate());
    int8_rates.push_back(int8_pass.Rate());
  }
  const auto report = [&](const std::string& precision, double rate, double yardstick,
                          const std::string& yardstick_name) {
    bench.Report({.name = "board pass, 140 rows, " + precision,
                  .value = rate / 1e9,
                  .unit = "GFLOP/s",
                  .yardstick = yardstick / 1e9,
                  .yardstick_name = yardstick_name,
                  .signature = 140});
  };
  report("f32", Median(f32_rates), Median(peaks), "f32 peak");
  report("int8", Median(int8_rates), Median(f32_rates), "f32");
}

void MeasurePredict(Bench& bench, Player& f32, Player& int8, PlainNet& net,
                    const std::vector<TokenId>& script) {
  std::vector<double> plain;
  std::vector<double> fast;
  std::vector<double> faster;
  const chess::Board board;
  Signature signature;
  for (int round = 0; round < (bench.quick() ? 5 : 31); ++round) {
    plain.push_back(net.SecondsFor(script, kBoardTokens, true));
    fast.push_back(SecondsOf([&] { signature.Add(f32.Predict(board).chosen->token); }));
    faster.push_back(SecondsOf([&] { int8.Predict(board); }));
  }
  bench.Say(fmt::format("predict p50: libtorch {:.1f} ms, f32 {:.1f} ms, int8 {:.1f} ms",
                        Median(plain) * 1e3, Median(fast) * 1e3, Median(faster) * 1e3));
  bench.Report({.name = "predict, f32",
                .value = 1 / Median(fast),
                .unit = "positions/s",
                .yardstick = 1 / Median(plain),
                .yardstick_name = "libtorch",
                .signature = signature.value()});
  bench.Report({.name = "predict, int8",
                .value = 1 / Median(faster),
                .unit = "positions/s",
                .yardstick = 1 / Median(plain),
                .yardstick_name = "libtorch",
                .signature = signature.value()});
}

int Run(int argc, char** argv) {
  learn::StartWell(argv);
  Bench bench("think", argc, argv);
  const int threads = HardwareThreads();
  learn::SetThreads(threads);
  const std::vector<TokenId> script =
      Script({.variations = bench.quick() ? 1 : kVariations, .depth = bench.quick() ? 3 : kDepth});
  auto f32_model = MakeModel(nn::Precision::kF32);
  auto int8_model = MakeModel(nn::Precision::kInt8);
  bench.Say(fmt::format("{} threads; weights: f32 {} MB, int8 {} MB", threads,
                        f32_model->memory_bytes() >> 20, int8_model->memory_bytes() >> 20));
  MeasureBlocks(bench, *f32_model, *int8_model, script);
  Player f32(std::move(f32_model));
  Player int8(std::move(int8_model));
  PlainNet net(RealSize());
  const PlainCost plain(net, script, bench.quick() ? 1 : 3);
  MeasureThoughts(bench, script, f32, int8, plain);
  MeasurePredict(bench, f32, int8, net, script);
  MeasureManyThoughts(bench, f32, int8);
  return bench.Finish();
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  try {
    return kibitz::bench::Run(argc, argv);
  } catch (const kibitz::Error& error) {
    fmt::print(stderr, "{}\n", error.message());
    return 1;
  }
}
