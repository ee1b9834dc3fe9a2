// How fast the policy's batches come out of packed rows, how fast it learns from them beside a
// plain libtorch loop (channels before squares, labels written out, torch's own AdamW), in mixed
// precision beside float32, and how fast it answers without torch beside the plain form.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/log.h"
#include "base/text.h"
#include "bench/bench.h"
#include "io/weights/safetensors.h"
#include "learn/adamw.h"
#include "learn/autocast.h"
#include "learn/runtime.h"
#include "learn/weights.h"
#include "nn/kernels/amx.h"
#include "students/policy/data/batches.h"
#include "students/policy/data/planes.h"
#include "students/policy/data/precompute.h"
#include "students/policy/net/loss.h"
#include "students/policy/net/policy_net.h"
#include "students/policy/play/model.h"
#include "tests/support/policy_rows.h"

namespace kibitz::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kRows = 1'000'000;
constexpr double kLoaderTarget = 200'000;  // Positions a second, on two cores.
constexpr int kBatch = 256;

// Made once; the name tells what is in it.
std::string MakeData(Bench& bench) {
  const std::string stem = fmt::format("{}/evaluations-v2-{}", MadeDataFolder(), kRows);
  const std::string data = fmt::format("{}/policy-v2-{}", MadeDataFolder(), kRows);
  if (!policy::Manifest::Exists(data)) {
    bench.Say(fmt::format("making a data set of {} rows in {} once", kRows, data));
    if (!fs::exists(stem + ".parquet")) {
      testing::WriteEvaluations({.rows = kRows, .positions = kRows * 2 / 5}, stem + ".parquet",
                                stem + ".jsonl.zst");
    }
    policy::Precompute({stem + ".parquet"}, data, {});
  }
  return data;
}

uint64_t Hash(const policy::Batch& batch) {
  Signature signature;
  for (size_t i = 0; i < batch.label_rows.size(); ++i) {
    signature.Add(static_cast<uint64_t>(batch.label_rows[i]) << 32 |
                  static_cast<uint64_t>(batch.label_moves[i]));
    signature.Add(fmt::format("{}", batch.label_shares[i]));
  }
  for (size_t i = 0; i < batch.inputs.size(); ++i) {
    if (batch.inputs[i] != 0) signature.Add(i);
  }
  return signature.value();
}

// Shuffled positions with labels, as a CNN takes them.
void MeasureLoader(Bench& bench, const policy::Dataset& data, const policy::SampleSet& samples) {
  const uint64_t wanted = bench.quick() ? 300'000 : 1'000'000;
  double best = 0;
  uint64_t signature = 0;
  for (int run = 0; run < 3; ++run) {
    policy::BatchStream stream(data, samples,
                               {.seed = 1,
                                .batch_size = 1024,
                                .epochs = 0,
                                .form = {.flat = false, .flip = true},
                                .threads = 2});
    signature = Hash(*stream.Next());
    const uint64_t before = stream.position();
    const Timer timer;
    while (stream.position() - before < wanted) stream.Next();
    best = std::max(best, static_cast<double>(stream.position() - before) / timer.Seconds());
  }
  bench.Report({.name = "loader, shuffled, with labels",
                .value = best,
                .unit = "positions/s",
                .yardstick = kLoaderTarget,
                .yardstick_name = "target",
                .signature = signature,
                .promised_ratio = 1});
}

double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;  // Of all threads.
}

// One of the loops that are compared. All see the same batches.
enum class Loop { kPlain, kOurs, kMixed };
class Learner {
 public:
  Learner(const policy::NetConfig& config, Loop loop) : loop_(loop), net_(policy::MakeNet(config)) {
    learn::InitWeights(*net_, 1);
    learn::LoopOptions options;
    options.weight_decay = 0.01;
    ours_ = std::make_unique<learn::AdamW>(net_->parameters(), options);
    torchs_ = std::make_unique<torch::optim::AdamW>(
        net_->parameters(), torch::optim::AdamWOptions(kRate).weight_decay(0.01));
  }

  double Step(const policy::Batch& batch) {
    const policy::TargetBatch targets = policy::ToTensors(policy::Batch(batch));
    if (loop_ == Loop::kPlain) {
      torchs_->zero_grad();
      const torch::Tensor logits = net_->Logits(targets.inputs, policy::Form::kPlain);
      const torch::Tensor loss =
          policy::DenseSoftLoss(logits, policy::DenseLabels(targets, logits.size(1)));
      loss.backward();
      torch::nn::utils::clip_grad_norm_(net_->parameters(), 1);
      torchs_->step();
      return loss.item<double>();
    }
    ours_->ZeroGradients();
    const torch::Tensor loss = [&] {
      const learn::Autocast autocast(torch::kCPU, loop_ == Loop::kMixed);
      return policy::SoftLoss(net_->Logits(targets.inputs), targets);
    }();
    loss.backward();
    learn::ClipGradients(net_->parameters(), 1);
    ours_->Step(kRate);
    return loss.item<double>();
  }
  const policy::NetConfig& config() const { return net_->config; }

 private:
  static constexpr double kRate = 1e-3;

  Loop loop_;
  policy::PolicyNet net_;
  std::unique_ptr<learn::AdamW> ours_;
  std::unique_ptr<torch::optim::AdamW> torchs_;
};

struct Race {
  double yardstick = 0;  // Samples a second of the best round ...
  double ours = 0;
  double cpu_yardstick = 0;  // ... and processor seconds of all rounds.
  double cpu_ours = 0;
  double difference = 0;  // Of the first steps' losses, the largest ...
  double share = 0;       // ... and as a share of the loss.
  double first_losses = 0;
  int samples = 0;  // Of each, in the rounds that count.
};

// Two loops on the same batches in turns, so that whatever else the machine does hits both alike.
Race RaceOf(const Bench& bench, const policy::Dataset& data, const policy::SampleSet& samples,
            Learner& yardstick, Learner& ours, int steps) {
  policy::BatchStream stream(
      data, samples, {.seed = 2, .batch_size = kBatch, .epochs = 0, .form = ours.config().form()});
  Race race;
  const int rounds = bench.quick() ? 4 : 12;
  for (int round = -1; round < rounds; ++round) {  // The first one warms up.
    std::vector<policy::Batch> batches;
    for (int i = 0; i < steps; ++i) batches.push_back(*stream.Next());
    std::vector<double> losses;
    const double cpu_start = CpuSeconds();
    const Timer yardstick_timer;
    for (const policy::Batch& batch : batches) losses.push_back(yardstick.Step(batch));
    const double yardstick_seconds = yardstick_timer.Seconds();
    const double cpu_middle = CpuSeconds();
    const Timer timer;
    for (size_t i = 0; i < batches.size(); ++i) {
      const double loss = ours.Step(batches[i]);
      if (round >= 0) continue;
      race.difference = std::max(race.difference, std::abs(loss - losses[i]));
      race.share = std::max(race.share, std::abs(loss - losses[i]) / losses[i]);
      race.first_losses += loss;
    }
    if (round < 0) continue;
    race.yardstick = std::max(race.yardstick, steps * kBatch / yardstick_seconds);
    race.ours = std::max(race.ours, steps * kBatch / timer.Seconds());
    race.cpu_yardstick += cpu_middle - cpu_start;
    race.cpu_ours += CpuSeconds() - cpu_middle;
    race.samples += steps * kBatch;
  }
  return race;
}

uint64_t SignatureOf(const Race& race) {
  Signature signature;
  signature.Add(static_cast<uint64_t>(std::llround(race.first_losses * 100)));
  return signature.value();
}

void MeasureTraining(Bench& bench, const policy::Dataset& data, const policy::SampleSet& samples,
                     const policy::NetConfig& config, std::optional<double> promised) {
  Learner plain(config, Loop::kPlain);
  Learner ours(config, Loop::kOurs);
  const Race race = RaceOf(bench, data, samples, plain, ours, bench.quick() ? 2 : 6);
  // Of the first steps: later on rounding alone drives them apart. Two plain loops whose weights
  // differ by 1e-6 were 6e-5 apart after 4 steps and 1.3e-2 after 78 (128 channels).
  if (race.difference > 1e-3) bench.Fail("the two loops learn different things");
  bench.Report({.name = fmt::format("training, {} channels, {} blocks", config.hidden_channels,
                                    config.num_layers),
                .value = race.ours,
                .unit = "samples/s",
                .yardstick = race.yardstick,
                .yardstick_name = "plain NCHW loop",
                .signature = SignatureOf(race),
                .promised_ratio = promised});
  bench.Say(fmt::format("  processor time of the plain loop by ours: {:.2f}",
                        race.cpu_yardstick / race.cpu_ours));
}

// The same for mixed precision beside float32, both with our own loop.
void MeasureMixed(Bench& bench, const policy::Dataset& data, const policy::SampleSet& samples,
                  const policy::NetConfig& config) {
  const std::string name =
      fmt::format("mixed precision, {} channels, {} blocks, {} head", config.hidden_channels,
                  config.num_layers, config.HasPlanes() ? "planes" : "flat");
  if (!nn::HasAvx512Bf16()) {
    bench.Say(name + ": skipped, this processor has no AVX-512 BF16");
    return;
  }
  Learner ours(config, Loop::kOurs);
  Learner mixed(config, Loop::kMixed);
  const Race race = RaceOf(bench, data, samples, ours, mixed, bench.quick() ? 4 : 12);
  if (race.share > 0.05) bench.Fail("mixed precision learns something else");
  bench.Report({.name = name,
                .value = race.ours,
                .unit = "samples/s",
                .yardstick = race.yardstick,
                .yardstick_name = "float32",
                .signature = SignatureOf(race)});
  bench.Say(
      fmt::format("  processor time of float32 by mixed precision: {:.2f}, of a sample: {:.0f} us",
                  race.cpu_yardstick / race.cpu_ours, race.cpu_ours * 1e6 / race.samples));
}

// The network as a folder that the runtime without torch reads.
std::string WriteModel(policy::NetModule& net) {
  const std::string folder = MadeDataFolder() + "/policy-model";
  fs::create_directories(folder);
  policy::NetConfig config = net.config;
  WriteFileAtomically(folder + "/config.json", policy::FieldsOf(config).ToTree().dump());
  io::WriteSafetensors(folder + "/model.safetensors", {learn::WeightsOf(net)});
  return folder;
}

// Many positions at a time, from packed positions to logits; in turns, the best round of each.
void MeasureAnswers(Bench& bench, const policy::SplitData& data, const policy::NetConfig& config) {
  constexpr size_t kPositions = 1024;
  const policy::PolicyNet net = policy::MakeNet(config);
  learn::InitWeights(*net, 3);
  policy::Model model(io::ReadModel(WriteModel(*net)), {});
  std::vector<policy::PackedPosition> positions;
  std::vector<policy::Analysis> scratch;
  for (uint64_t i = 0; i < kPositions; ++i) positions.push_back(data.At(i, scratch).position);
  const torch::NoGradGuard no_grad;
  torch::Tensor plain;
  torch::Tensor ours = torch::empty({kPositions, config.num_moves});
  const auto answer_plainly = [&] {
    torch::Tensor inputs = torch::empty({kPositions, config.form().size()});
    for (size_t i = 0; i < kPositions; ++i) {
      policy::WriteInputs(positions[i], config.form(),
                          inputs[static_cast<int64_t>(i)].data_ptr<float>());
    }
    plain = net->Logits(inputs, policy::Form::kPlain);
  };
  double best_plain = 0;
  double best_ours = 0;
  for (int round = 0; round < (bench.quick() ? 5 : 15); ++round) {
    best_plain = std::max(best_plain, kPositions / SecondsOf(answer_plainly));
    best_ours =
        std::max(best_ours,
                 kPositions / SecondsOf([&] { model.Answer(positions, ours.data_ptr<float>()); }));
  }
  if ((plain - ours).abs().max().item<double>() > 1e-4) bench.Fail("the two answer differently");
  Signature signature;  // Of the most likely moves.
  const torch::Tensor moves = ours.argmax(1);
  for (int64_t i = 0; i < moves.size(0); ++i) {
    signature.Add(static_cast<uint64_t>(moves.data_ptr<int64_t>()[i]));
  }
  bench.Report({.name = fmt::format("answers, {} channels, {} blocks", config.hidden_channels,
                                    config.num_layers),
                .value = best_ours,
                .unit = "positions/s",
                .yardstick = best_plain,
                .yardstick_name = "plain libtorch",
                .signature = signature.value()});
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) {
  using namespace kibitz;
  learn::StartWell(argv);
  learn::KeepFreedMemory();
  bench::Bench bench("policy", argc, argv);
  SetLogLevel(LogLevel::kSilent);
  learn::SetThreads(0);
  const policy::Dataset data = policy::Dataset::Open(bench::MakeData(bench));
  policy::DataOptions options;
  const policy::SampleSets sets = policy::SelectSamples(data, options);
  bench::MeasureLoader(bench, data, sets.train);
  policy::NetConfig config;
  config.flip_board = true;
  config.hidden_channels = 64;
  config.num_layers = 6;
  const policy::SplitData& positions = data.split(policy::Split::kTrain);
  bench::MeasureTraining(bench, data, sets.train, config, 1.3);
  bench::MeasureAnswers(bench, positions, config);
  bench::MeasureMixed(bench, data, sets.train, config);
  config.head = policy::HeadKind::kPlanes;
  bench::MeasureMixed(bench, data, sets.train, config);
  config.head = policy::HeadKind::kFlat;
  if (!bench.quick()) {
    config.hidden_channels = 128;
    bench::MeasureTraining(bench, data, sets.train, config, 1.3);
  }
  config.hidden_channels = 12;  // configs/policy/small.toml
  config.num_layers = 8;
  bench::MeasureTraining(bench, data, sets.train, config, std::nullopt);
  bench::MeasureAnswers(bench, positions, config);
  return bench.Finish();
}
