// A training step of the decoder, forth and back: packed beside plain and padded, in turns, on the
// same batches: legal random play with random values, as long as real games and thoughts. f32, all
// cores. Then a step of the 2048 network, and mixed precision (use_amp) beside f32 of all.
#include <fmt/format.h>
#include <malloc.h>
#include <time.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/thread_pool.h"
#include "bench/bench.h"
#include "bench/peak.h"
#include "learn/precision.h"
#include "learn/runtime.h"
#include "nn/kernels/amx.h"
#include "students/decoder/data/source.h"
#include "students/decoder/net/loss.h"
#include "students/twenty48/net/encoder.h"
#include "students/twenty48/net/loss.h"
#include "tests/support/decoder_records.h"

namespace kibitz::bench {
namespace {

using decoder::Batch;
using decoder::DecoderNet;
using decoder::NetConfig;

// Multiplications with additions that the way forth needs: nothing padded, masked or asked in vain.
double NeededProducts(const NetConfig& config, const Batch& batch) {
  const double width = config.embed_dim;
  const double mlp = 3 * width * config.d_ff;
  const double tokens = batch.tokens();
  double scored = 0;      // Rows the board head looks at ...
  double pairs = 0;       // Keys seen by all queries of both passes ...
  double last_pairs = 0;  // ... and by those of the last layer.
  std::vector<int32_t> block_end(batch.ids.size());
  for (size_t i = 0; i < block_end.size(); ++i) block_end[i] = static_cast<int32_t>(i) + 1;
  for (const decoder::Block& block : batch.blocks) {
    std::fill(block_end.begin() + block.begin, block_end.begin() + block.end, block.end);
  }
  std::vector<bool> asked(batch.ids.size());
  for (const auto& move : batch.moves) asked[static_cast<size_t>(move.position)] = true;
  double values = 0;
  for (const auto& value : batch.values) {
    if (!value.valid) continue;
    asked[static_cast<size_t>(value.wl_position)] = true;
    asked[static_cast<size_t>(value.wl_position) - 1] = true;
    ++values;
  }
  for (const auto& branch : batch.branches) {
    const auto start = std::ranges::upper_bound(batch.starts, branch.after) - 1;
    pairs += branch.after + 2 - *start;
    last_pairs += branch.after + 2 - *start;
  }
  double gathered = 0;
  double causal_tokens = 0;
  for (size_t s = 0; s + 1 < batch.starts.size(); ++s) {
    // A sequence without board targets needs no causal pass.
    const auto targets = std::span(batch.board_targets)
                             .subspan(static_cast<size_t>(batch.starts[s]),
                                      static_cast<size_t>(batch.starts[s + 1] - batch.starts[s]));
    const bool has_causal =
        std::ranges::any_of(targets, [](int target) { return target != decoder::kIgnore; });
    if (has_causal) causal_tokens += static_cast<double>(targets.size());
    for (int32_t i = batch.starts[s]; i < batch.starts[s + 1]; ++i) {
      const auto at = static_cast<size_t>(i);
      const double causal = i + 1 - batch.starts[s];
      const double prefix = block_end[at] - batch.starts[s];
      pairs += (has_causal ? causal : 0) + prefix;
      if (batch.board_targets[at] != decoder::kIgnore) ++scored, last_pairs += causal;
      if (asked[at]) ++gathered, last_pairs += prefix;
    }
  }
  const double square = width * width;
  const double layers = config.num_layers;
  const auto branches = static_cast<double>(batch.branches.size());
  const double rows = causal_tokens + tokens + branches;
  double products = (tokens + branches) * 3 * square;  // First: q, k, v once.
  products += rows * (square + mlp);
  products += (layers - 2) * rows * (4 * square + mlp);
  products += rows * 2 * square + (scored + gathered + branches) * (2 * square + mlp);  // Last.
  products += 2 * width * ((layers - 1) * pairs + last_pairs);
  products += scored * width * config.board_vocab_size;
  products += static_cast<double>(batch.moves.size()) * width * config.move_vocab_size;
  products += (2 * values + branches) * config.value_hidden_size * (width + config.n_buckets);
  return products;
}

struct Size {
  const char* name;
  NetConfig config;
  int sequences_a_batch;  // Few: padded ones take 5 GB each at the real size.
  double promised_ratio;
  std::optional<double> promised_share = {};  // Of the peak.
  decoder::ThinkingOptions thinking = {};
  int padded_length = 0;    // Of the plain version; 0: max_seq_len.
  bool slow_plain = false;  // No warm-up of the plain version.
};

NetConfig Config(int width, int heads, int layers, int hidden) {
  NetConfig config;
  config.embed_dim = width;
  config.num_heads = heads;
  config.num_layers = layers;
  config.d_ff = hidden;
  return config;
}

Size SmallSize() { return {"small 256/8/6/384", Config(256, 8, 6, 384), 4, 1.8, {}}; }
Size RealSize() {
  Size size = {"real 1024/16/12/1536", Config(1024, 16, 12, 1536), 1, 1.25, 0.55};
  size.slow_plain = true;
  return size;
}

// Samples of a file, one after another.
class Samples {
 public:
  Samples(std::unique_ptr<decoder::Source> source, const char* purpose)
      : source_(std::move(source)), purpose_(Purpose(purpose)) {}

  decoder::Sequence Next() {
    const auto unit = source_->Load(0);
    while (!unit->Usable(next_ % source_->unit_sizes()[0])) ++next_;
    Rng rng({.seed = 1, .sample = next_, .purpose = purpose_});
    return unit->Make(next_++ % source_->unit_sizes()[0], rng);
  }

 private:
  std::unique_ptr<decoder::Source> source_;
  uint64_t purpose_;
  uint64_t next_ = 0;
};

// Made once; the name tells what is in it.
template <typename Write>
std::string MadeFile(const std::string& kind, const Write& write) {
  constexpr testing::RecordPlan kPlan{.count = 100};
  const std::string path =
      fmt::format("{}/decoder-{}-v1-{}.parquet", MadeDataFolder(), kind, kPlan.count);
  if (!std::filesystem::exists(path)) write(path, kPlan, {});
  return path;
}

// `count` sequences of which the share `ratio` thinks, in batches.
std::vector<Batch> MakeBatches(const Size& size, double ratio, int count) {
  Samples games(decoder::OpenGames({MadeFile("games", testing::WriteGames)}, {}), "games");
  Samples searches(
      decoder::OpenSearches({MadeFile("searches", testing::WriteSearches)}, size.thinking),
      "searches");
  std::vector<decoder::Sequence> sequences;
  for (int i = 0; i < count; ++i) {
    const bool thinks = std::floor((i + 1) * ratio + 0.5) > std::floor(i * ratio + 0.5);
    sequences.push_back(thinks ? searches.Next() : games.Next());
  }
  std::vector<Batch> batches;
  for (size_t i = 0; i < sequences.size(); i += static_cast<size_t>(size.sequences_a_batch)) {
    const size_t end = std::min(sequences.size(), i + static_cast<size_t>(size.sequences_a_batch));
    batches.push_back(decoder::Pack(std::span(sequences).subspan(i, end - i)));
  }
  return batches;
}

// Of all threads; beside other programs it is steadier than time on the clock.
double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Timed {
  double seconds = 0;
  double processor_seconds = 0;
  double loss = 0;
  double megabytes = 0;  // At the peak, beyond the weights.
};

// All batches once, gradients summed. The peak means something when the heap was trimmed before.
Timed RunOnce(DecoderNet& net, const std::vector<Batch>& batches, bool packed,
              int padded_length = 0) {
  for (auto& parameter : net->parameters()) parameter.mutable_grad() = torch::Tensor();
  const PeakMemory memory;
  Timed timed;
  std::optional<learn::OneThreadPerProduct> one_thread;  // As the trainee has it.
  if (packed) one_thread.emplace();
  const double processor_start = ProcessorSeconds();
  const Timer timer;
  for (const Batch& batch : batches) {
    const auto result =
        packed ? PackedLoss(net, batch, {}) : PlainLoss(net, batch, {}, padded_length);
    result.loss.backward();
    timed.loss += result.metrics.total_loss.sum;
  }
  timed.seconds = timer.Seconds();
  timed.processor_seconds = ProcessorSeconds() - processor_start;
  timed.megabytes = memory.ExtraMegabytes();
  return timed;
}

struct Rounds {
  int sequences = 0;
  int warm_up = 0;
  int rounds = 1;
};

// What --only tells parts in f32 from those in mixed precision by.
constexpr const char* kFloat32 = ", f32";

// With --only NAME: parts whose names contain it, as they train, without the padded version.
class Filter {
 public:
  explicit Filter(std::string only) : only_(std::move(only)) {}
  bool Runs(std::string_view name) const { return name.find(only_) != std::string_view::npos; }
  bool alone() const { return !only_.empty(); }

 private:
  std::string only_;
};

// A share of the peak: `products` multiplications with additions forward, twice as many backward.
void ReportShare(Bench& bench, const std::string& name, double products, double seconds,
                 double peak, uint64_t signature, std::optional<double> promised) {
  bench.Report({.name = name + ", FLOPs needed",
                .value = 6 * products / seconds / 1e9,
                .unit = "GFLOP/s",
                .yardstick = peak / 1e9,
                .yardstick_name = "FMA peak",
                .signature = signature,
                .promised_ratio = promised});
}

// Of a size, packed and padded in turns.
struct StepTimes {
  std::vector<double> packed = {};
  std::vector<double> plain = {};
  Timed last_packed = {};
  Timed last_plain = {};
  double megabytes[2] = {};
};

StepTimes TimeSteps(const Size& size, DecoderNet& net, const std::vector<Batch>& batches,
                    const Rounds& plan, bool with_plain) {
  StepTimes times;
  for (int round = 0; round < plan.warm_up + plan.rounds; ++round) {
    if (round == 0) malloc_trim(0);
    times.last_packed = RunOnce(net, batches, /*packed=*/true);
    if (round == 0) times.megabytes[0] = times.last_packed.megabytes;
    const bool counts = round >= plan.warm_up;
    if (with_plain && (counts || !size.slow_plain)) {
      if (times.megabytes[1] == 0) malloc_trim(0);
      times.last_plain =
          RunOnce(net, batches, /*packed=*/false,
                  size.padded_length > 0 ? size.padded_length : net->config.max_seq_len);
      times.megabytes[1] = std::max(times.megabytes[1], times.last_plain.megabytes);
    }
    if (!counts) continue;
    times.packed.push_back(times.last_packed.seconds);
    if (with_plain) times.plain.push_back(times.last_plain.seconds);
  }
  return times;
}

void BenchSteps(Bench& bench, const Filter& filter, const Size& size, DecoderNet& net, double ratio,
                double peak, const Rounds& plan) {
  const std::vector<Batch> batches = MakeBatches(size, ratio, plan.sequences);
  double tokens = 0;
  double products = 0;
  for (const Batch& batch : batches) {
    tokens += batch.tokens();
    products += NeededProducts(size.config, batch);
  }
  const StepTimes times = TimeSteps(size, net, batches, plan, /*with_plain=*/!filter.alone());
  const std::string name = fmt::format("{}, ratio {}", size.name, ratio);
  const double loss = times.last_packed.loss;
  const double seconds = Median(times.packed);
  Signature signature;
  signature.Add(static_cast<uint64_t>(tokens));
  signature.Add(static_cast<uint64_t>(std::llround(loss * 100)));
  if (!filter.alone()) {
    const double plain_loss = times.last_plain.loss;
    if (std::abs(loss - plain_loss) > 1e-4 * std::abs(plain_loss)) {
      bench.Fail(fmt::format("{}: loss {} packed, {} plain", name, loss, plain_loss));
    }
    bench.Report({.name = name,
                  .value = tokens / seconds,
                  .unit = "tokens/s",
                  .yardstick = tokens / Median(times.plain),
                  .yardstick_name = "padded",
                  .signature = signature.value(),
                  .promised_ratio = size.promised_ratio});
  }
  ReportShare(bench, name, products, seconds, peak, signature.value(), size.promised_share);
  bench.Say(
      fmt::format("  {:.0f} tokens in {:.2f} s, {:.2f} s of processor time; at the peak {:.0f} MB, "
                  "padded {:.0f} MB",
                  tokens, seconds, times.last_packed.processor_seconds, times.megabytes[0],
                  times.megabytes[1]));
}

// Steps in both precisions in turns. `step` returns its loss.
struct MixedSteps {
  std::string name;
  double units = 0;  // Of a step.
  std::string unit;
  double products = 0;  // That a step needs forward.
  std::optional<double> promised_ratio = {};
  std::function<double()> step = {};
};

void BenchMixed(Bench& bench, const MixedSteps& steps, double peak, int rounds) {
  std::vector<double> seconds[2];
  double loss[2] = {};
  for (int round = 0; round <= rounds; ++round) {
    for (const bool rounded : {false, true}) {
      const learn::PrecisionScope scope(rounded ? learn::Precision::kBfloat16
                                                : learn::Precision::kFloat32);
      const Timer timer;
      loss[rounded] = steps.step();
      if (round > 0) seconds[rounded].push_back(timer.Seconds());
    }
  }
  if (std::abs(loss[1] - loss[0]) > 0.02 * std::abs(loss[0])) {
    bench.Fail(fmt::format("{}: loss {} in bfloat16, {} in f32", steps.name, loss[1], loss[0]));
  }
  Signature signature;
  signature.Add(static_cast<uint64_t>(std::llround(loss[0] * 100)));
  bench.Report({.name = steps.name,
                .value = steps.units / Median(seconds[1]),
                .unit = steps.unit + "/s",
                .yardstick = steps.units / Median(seconds[0]),
                .yardstick_name = "f32",
                .signature = signature.value(),
                .promised_ratio = steps.promised_ratio});
  ReportShare(bench, steps.name, steps.products, Median(seconds[1]), peak, signature.value(), {});
}

std::string MixedName(const std::string& name) { return name + ", mixed precision"; }

struct MixedDecoder {
  Size size;
  int sequences = 0;
  int rounds = 0;
  std::optional<double> promised_ratio = {};
};

void BenchMixedDecoder(Bench& bench, const Filter& filter, const MixedDecoder& decoder,
                       double peak) {
  const std::string name = MixedName(decoder.size.name);
  if (!filter.Runs(name)) return;
  DecoderNet net(decoder.size.config);
  InitNet(net, 1);
  const std::vector<Batch> batches = MakeBatches(decoder.size, 1.0, decoder.sequences);
  double tokens = 0;
  double products = 0;
  for (const Batch& batch : batches) {
    tokens += batch.tokens();
    products += NeededProducts(decoder.size.config, batch);
  }
  BenchMixed(bench,
             {.name = name,
              .units = tokens,
              .unit = "tokens",
              .products = products,
              .promised_ratio = decoder.promised_ratio,
              .step = [&] { return RunOnce(net, batches, /*packed=*/true).loss; }},
             peak, decoder.rounds);
}

// Steps of the network of configs/twenty48/small-binned.toml on random boards.
class Twenty48Steps {
 public:
  static constexpr int64_t kBoards = 64;
  static constexpr const char* kName = "2048 224/8/3/384";

  Twenty48Steps()
      : net_(twenty48::NetConfig{.hidden_size = 224,
                                 .num_hidden_layers = 3,
                                 .num_attention_heads = 8,
                                 .num_key_value_heads = 4,
                                 .intermediate_size = 384}) {
    InitEncoder(net_, 1);
    torch::manual_seed(1);
    rows_ = {.tokens = torch::randint(0, 12, {kBoards, 16}),
             .legal = torch::ones({kBoards, 4}, torch::kBool),
             .moves = torch::randint(0, 4, {kBoards}),
             .bins = torch::randint(0, 12, {kBoards, 4}),
             .soft = {}};
  }

  // The loss.
  double operator()() {
    const learn::OneThreadPerProduct one_thread;
    net_->zero_grad();
    const auto loss = twenty48::BinnedLoss(net_->forward(rows_.tokens), rows_).total;
    loss.backward();
    return loss.item<double>();
  }

  // Multiplications with additions forward: linear layers, scores and mixed values, heads.
  double Products() const {
    const twenty48::NetConfig& config = net_->config;
    const double width = config.hidden_size;
    const double kv = config.kv_heads() * config.head_width();
    const double layer =
        width * (2 * width + 2 * kv + 3 * config.intermediate_size) + 2 * 16 * width;
    return kBoards * (16 * config.num_hidden_layers * layer + 4 * width * config.bins());
  }

 private:
  twenty48::Encoder net_;
  twenty48::TargetRows rows_;
};

void BenchTwenty48(Bench& bench, double peak) {
  Twenty48Steps step;
  std::vector<double> seconds;
  double loss = 0;
  const int rounds = bench.quick() ? 60 : 300;
  const double processor_start = ProcessorSeconds();
  for (int round = 0; round < rounds; ++round) {
    const Timer timer;
    loss = step();
    if (round >= rounds / 10) seconds.push_back(timer.Seconds());
  }
  Signature signature;
  signature.Add(static_cast<uint64_t>(std::llround(loss * 100)));
  ReportShare(bench, Twenty48Steps::kName, step.Products(), Median(seconds), peak,
              signature.value(), {});
  bench.Say(fmt::format("  {:.1f} ms of processor time a step",
                        (ProcessorSeconds() - processor_start) / rounds * 1e3));
}

void BenchMixedTwenty48(Bench& bench, const Filter& filter, double peak) {
  const std::string name = MixedName(Twenty48Steps::kName);
  if (!filter.Runs(name)) return;
  Twenty48Steps step;
  BenchMixed(bench,
             {.name = name,
              .units = Twenty48Steps::kBoards,
              .unit = "boards",
              .products = step.Products(),
              .promised_ratio = nn::HasAmx() ? 2 : 1.3,
              .step = [&] { return step(); }},
             peak, bench.quick() ? 20 : 100);
}

void BenchMixedPrecision(Bench& bench, const Filter& filter, double peak) {
  if (!learn::CpuHasBfloat16())
    return bench.Say("no mixed precision: this processor has no AVX-512 BF16");
  // As configs/recipes/decoder-roots.toml and decoder-thoughts.toml.
  NetConfig config = Config(128, 4, 4, 256);
  config.n_buckets = 64;
  config.value_hidden_size = 64;
  config.num_fourier_freq = 32;
  config.square_policy = true;
  decoder::ThinkingOptions thinking = {.max_variations = 3,
                                       .max_depth = 2,
                                       .soft_targets = true,
                                       .instinct_target = true,
                                       .branch_values = 16,
                                       .no_thought_prob = 1};
  const double promised = nn::HasAmx() ? 1.3 : 1.2;
  const int rounds = bench.quick() ? 3 : 9;
  BenchMixedDecoder(bench, filter,
                    {{"roots 128/4/4/256", config, 32, 0, {}, thinking}, 32, rounds, promised},
                    peak);
  thinking.no_thought_prob = 0.6;
  thinking.early_ends = true;
  thinking.own_values_prob = 0.9;
  BenchMixedDecoder(bench, filter,
                    {{"thoughts 128/4/4/256", config, 32, 0, {}, thinking}, 32, rounds, promised},
                    peak);
  BenchMixedDecoder(bench, filter, {SmallSize(), bench.quick() ? 3 : 20, 3}, peak);
  BenchMixedDecoder(bench, filter, {RealSize(), bench.quick() ? 1 : 5, 1}, peak);
  BenchMixedTwenty48(bench, filter, peak);
}

void BenchDecoders(Bench& bench, const Filter& filter, double peak) {
  // Roots alone (docs/DECODER.md, "Targets that teach more"): prefix pass and values of root moves.
  const decoder::ThinkingOptions roots_alone = {
      .soft_targets = true, .instinct_target = true, .branch_values = 16, .no_thought_prob = 1};
  const Size roots = {"roots 128/4/4/256", Config(128, 4, 4, 256), 32, 1.8, {}, roots_alone, 72};
  for (const Size& size : {roots, SmallSize(), RealSize()}) {
    if (!filter.Runs(size.name + std::string(kFloat32))) continue;
    DecoderNet net(size.config);
    InitNet(net, 1);
    const bool is_real = size.slow_plain;
    const bool is_roots = size.padded_length > 0;
    Rounds rounds = {.sequences = bench.quick() ? 3 : 20, .warm_up = 1, .rounds = 3};
    if (is_roots) rounds = {.sequences = bench.quick() ? 32 : 64, .warm_up = 1, .rounds = 5};
    if (is_real) rounds = {.sequences = bench.quick() ? 1 : 5, .warm_up = 1, .rounds = 1};
    BenchSteps(bench, filter, size, net, 1.0, peak, rounds);
    if (is_roots || (bench.quick() && is_real)) continue;
    BenchSteps(bench, filter, size, net, 0.2, peak, rounds);
  }
}

int Main(int argc, char** argv) {
  learn::StartWell(argv);
  Bench bench("train", argc, argv,
              {{"only", "the parts with this in their names, without the padded version"}});
  const Filter filter(bench.PathOf("only"));
  learn::KeepFreedMemory();
  learn::SetThreads(0);
  const double peak = MeasurePeak();
  bench.Say(fmt::format("f32, {} threads, peak {} FLOP/s; losses and gradients of finetune batches",
                        HardwareThreads(), HumanCount(peak)));
  BenchMixedPrecision(bench, filter, peak);
  if (filter.Runs(Twenty48Steps::kName + std::string(kFloat32))) BenchTwenty48(bench, peak);
  BenchDecoders(bench, filter, peak);
  return bench.Finish();
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) { return kibitz::bench::Main(argc, argv); }
