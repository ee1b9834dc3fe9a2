#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/skip_counter.h"
#include "base/write_lock.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/model_export.h"
#include "cli/player_input.h"
#include "students/decoder/data/source.h"
#include "students/decoder/data/train_options.h"
#include "students/decoder/data/weights_file.h"
#include "students/decoder/play/fit_votes.h"
#include "students/decoder/play/player.h"

namespace kibitz::cli {
namespace {

// Every so-manyth position is for the report only.
constexpr size_t kHeldOut = 8;
constexpr uint64_t kFewPositions = 64;
constexpr size_t kRowsAtOnce = 1024;

struct VotesArguments {
  std::vector<std::string> in;
  std::string out;
  uint64_t positions = 16384;
  int max_variations = 0;
  int max_depth = 0;
  nn::NetworkOptions network;
};

Fields FieldsOf(VotesArguments& options) {
  Fields fields;
  fields.Add("in", options.in,
             "searches of all legal moves, as 'oracle variations --multipv 256' writes them",
             {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("out", options.out, "folder for config.json and model.safetensors",
             {.required = true, .metavar = "DIR"});
  fields.Add("positions", options.positions, "think about so many, spread over all rows",
             {.min = kFewPositions, .max = 10'000'000});
  fields.Add("max_variations", options.max_variations,
             "variations of a thought; 0: as many as the network wants", {.min = 0, .max = 100});
  fields.Add("max_depth", options.max_depth, "moves of a variation; 0: as many as it wants",
             {.min = 0, .max = 100});
  fields.AddAll(ModelFields(options.network));
  return fields;
}

// Thinks about the rows and adds what the votes saw.
void ThinkAbout(const std::vector<decoder::SearchRow>& rows, const decoder::ThinkOptions& how,
                decoder::Player& player, Progress& progress,
                std::vector<decoder::VoteSample>& samples) {
  const StopOnInterrupt interrupt;
  std::vector<std::optional<decoder::VoteSample>> found(rows.size());
  size_t next = 0;
  player.ThinkEach(
      [&]() -> std::optional<decoder::ThinkTask> {
        if (next == rows.size()) return std::nullopt;
        return decoder::ThinkTask{.root = rows[next++].root, .options = how};
      },
      [&](size_t number, const decoder::Thought& thought) {
        found[number] = decoder::VoteSampleOf(thought, rows[number]);
        progress.Add(1);
      },
      interrupt.token());
  ThrowIfInterrupted();
  for (auto& sample : found) {
    if (sample) samples.push_back(*std::move(sample));
  }
}

// Of so many rows as are asked for, spread over all; few of them are in memory at a time.
std::vector<decoder::VoteSample> ReadAndThink(const VotesArguments& options,
                                              decoder::Player& player) {
  const uint64_t all = decoder::CountSearches(options.in);
  const uint64_t step = std::max<uint64_t>(1, all / options.positions);
  Progress progress("positions", std::min(options.positions, (all + step - 1) / step));
  const decoder::ThinkOptions how = {.max_variations = options.max_variations,
                                     .max_depth = options.max_depth,
                                     .legal_only = true,
                                     .distinct = true};
  std::vector<decoder::VoteSample> samples;
  std::vector<decoder::SearchRow> rows;
  SkipCounter skipped;
  uint64_t seen = 0;
  uint64_t taken = 0;
  decoder::ForEachSearch(options.in, skipped, [&](decoder::SearchRow search) {
    ThrowIfInterrupted();
    if (seen++ % step == 0) {
      rows.push_back(std::move(search));
      ++taken;
    }
    if (rows.size() == kRowsAtOnce) {
      ThinkAbout(rows, how, player, progress, samples);
      rows.clear();
    }
    return taken < options.positions;
  });
  ThinkAbout(rows, how, player, progress, samples);
  progress.Finish();
  return samples;
}

io::NamedTensor TensorOf(const std::string& name, std::vector<int64_t> shape,
                         std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {name, io::OwnedTensor(io::DType::kF32, std::move(shape), {bytes.begin(), bytes.end()})};
}

// The weights with other votes.
io::StateDict WithVotes(const decoder::WeightsFile& file, const decoder::VoteFit& fit) {
  std::vector<io::NamedTensor> tensors;
  for (const io::NamedTensor& tensor : file.weights.tensors()) {
    const bool vote = tensor.name.starts_with("line_vote.") ||
                      tensor.name.starts_with("value_vote.") ||
                      tensor.name.starts_with("compare_vote.");
    if (!vote) tensors.push_back(tensor);
  }
  const int64_t width = file.config.embed_dim;
  std::vector<float> line(static_cast<size_t>(width));
  float bias = 0;
  if (file.config.line_votes) {
    line = file.weights.Floats("line_vote.weight", {1, width});
    bias = file.weights.Floats("line_vote.bias", {1}).front();
  }
  for (float& weight : line) weight *= fit.end_scale;
  bias = bias * fit.end_scale + fit.end_bias;
  tensors.push_back(TensorOf("line_vote.weight", {1, width}, line));
  tensors.push_back(TensorOf("line_vote.bias", {1}, {&bias, 1}));
  tensors.push_back(TensorOf("value_vote.weight", {1, 2}, fit.weights.value));
  tensors.push_back(TensorOf("compare_vote.weight", {1, 3}, fit.weights.compared));
  return {std::move(tensors), file.weights.place()};
}

int Run(const VotesArguments& options, const Context& context) {
  const WriteLock lock = WriteLock::OfFolder(options.out);
  const decoder::WeightsFile file = decoder::ReadWeightsFile(options.network.path);
  const std::unique_ptr<decoder::Player> player = decoder::Player::Load(options.network);
  const std::vector<decoder::VoteSample> samples = ReadAndThink(options, *player);
  std::vector<decoder::VoteSample> learned;
  std::vector<decoder::VoteSample> held_out;
  for (size_t i = 0; i < samples.size(); ++i) {
    (i % kHeldOut == kHeldOut - 1 ? held_out : learned).push_back(samples[i]);
  }
  if (samples.size() < kFewPositions) {
    throw Error(
        "{}: {} positions have a thought and a value of every legal move; expected at least {}: "
        "make records with 'oracle variations --multipv 256'; for a network that ends no variation "
        "give --max-variations and --max-depth",
        options.in.front(), samples.size(), kFewPositions);
  }
  const decoder::VoteFit fit = decoder::FitVotes(learned, {});
  const decoder::VoteQuality quality = decoder::QualityOf(held_out, fit);
  if (context.json) {
    PrintJson({{"positions", samples.size()},
               {"held_out", held_out.size()},
               {"lost_by_instinct", -quality.instinct},
               {"lost_with_votes", -quality.voted}});
  } else {
    fmt::print(
        "{} positions; on {} of them, held out, the move by instinct gives away {:.4f} of the "
        "result, with votes {:.4f}\n",
        samples.size(), held_out.size(), -quality.instinct, -quality.voted);
  }
  decoder::NetConfig config = file.config;
  config.line_votes = config.value_votes = config.compared_votes = true;
  const io::StateDict weights = WithVotes(file, fit);
  return ExportModel({.weights = weights,
                      .config = FieldsOf(config).ToTree(),
                      .parameters = CountParameters(config)},
                     options.out, context);
}

}  // namespace

Command DecoderVotes() {
  return MakeCommand<VotesArguments>(
      {.name = "decoder votes",
       .group = "Decoder",
       .summary = "fit how a decoder's variations vote on its move, from thoughts of its own",
       .details =
           "The network thinks about positions whose moves a teacher has judged. Then seven\n"
           "numbers are fitted: what the values of its lines, and how they compare, are worth\n"
           "beside its instinct (model.compared_votes). All other weights stay as they are. A\n"
           "stopped run starts over.",
       .example =
           "kibitz oracle variations examples/decoder/games.parquet --per-game 30 --depth 4 "
           "--multipv 256 --out judged.parquet\n"
           "  kibitz decoder votes judged.parquet --model models/decoder-small --out voting"},
      Run);
}

}  // namespace kibitz::cli
