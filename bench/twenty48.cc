// 2048: slides beside the plain way, the expectimax beside itself without its table, and the small
// student, at play and in training, beside plain libtorch on the same boards, in turns. All cores.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "bench/bench.h"
#include "games/twenty48/spawn.h"
#include "io/weights/model_file.h"
#include "learn/runtime.h"
#include "learn/weights.h"
#include "oracles/twenty48/row_heuristic.h"
#include "oracles/twenty48/self_play.h"
#include "students/twenty48/net/encoder.h"
#include "students/twenty48/net/loss.h"
#include "students/twenty48/play/player.h"

namespace kibitz::bench {
namespace {

using twenty48::Batch;
using twenty48::Board;
using twenty48::Encoder;
using twenty48::Game;
using twenty48::Move;

// Positions of games that a shallow expectimax plays, and what it thinks of them.
struct Position {
  Board board;
  oracles::SearchResult result;
};
std::vector<Position> MakePositions(size_t count) {
  const oracles::RowHeuristic evaluation;
  std::vector<Position> positions;
  for (int64_t game = 0; positions.size() < count; ++game) {
    oracles::Expectimax search(evaluation, {.depth = 1});
    oracles::PlayGame(search, {.search = {.depth = 1}, .seed = 9}, game,
                      [&](const Game& before, const oracles::SearchResult& result) {
                        if (before.moves % 3 == 0) positions.push_back({before.board, result});
                      });
  }
  positions.resize(count);
  return positions;
}

// Seconds of each of two ways, medians of rounds in turns.
struct Pair {
  double first = 0;
  double second = 0;
};
Pair InTurns(int rounds, const std::function<void()>& first, const std::function<void()>& second) {
  std::vector<double> a;
  std::vector<double> b;
  for (int round = 0; round < rounds + 1; ++round) {
    Timer one;
    first();
    if (round > 0) a.push_back(one.Seconds());
    Timer two;
    second();
    if (round > 0) b.push_back(two.Seconds());
  }
  return {Median(a), Median(b)};
}

void BenchSlides(Bench& bench, const std::vector<Position>& positions) {
  Signature signature;
  uint64_t sink = 0;
  const int times = bench.quick() ? 20 : 100;
  const Pair seconds = InTurns(
      3,
      [&] {
        for (int i = 0; i < times; ++i) {
          for (const Position& position : positions) {
            for (const twenty48::Slid& slid : twenty48::SlideAll(position.board)) {
              sink += slid.board.packed() ^ static_cast<uint64_t>(slid.points);
            }
          }
        }
      },
      [&] {
        for (const Position& position : positions) {
          for (Move move : twenty48::kMoves) {
            sink += twenty48::SlidePlain(position.board, move).board.packed();
          }
        }
      });
  for (const Position& position : positions) {
    for (const twenty48::Slid& slid : twenty48::SlideAll(position.board)) {
      signature.Add(slid.board.packed());
    }
  }
  const double count = 4.0 * static_cast<double>(positions.size());
  bench.Report({.name = fmt::format("slides{}", sink == 1 ? " " : ""),
                .value = times * count / seconds.first,
                .unit = "slides/s",
                .yardstick = count / seconds.second,
                .yardstick_name = "cell by cell",
                .signature = signature.value()});
}

void BenchSearch(Bench& bench, const std::vector<Position>& positions) {
  const oracles::RowHeuristic evaluation;
  Signature signature;
  const size_t count = bench.quick() ? 400 : 2000;
  const auto search_all = [&](int bits, Signature* out) {
    oracles::Expectimax search(evaluation, {.depth = 3, .table_bits = bits});
    for (size_t i = 0; i < count; ++i) {
      const auto best = search.Search(positions[positions.size() - 1 - i].board).best;
      if (out != nullptr) out->Add(best ? static_cast<uint64_t>(*best) : 9);
    }
  };
  search_all(18, &signature);
  const Pair seconds = InTurns(
      3, [&] { search_all(18, nullptr); }, [&] { search_all(0, nullptr); });
  bench.Report({.name = "search depth 3, heuristic, one thread",
                .value = static_cast<double>(count) / seconds.first,
                .unit = "moves/s",
                .yardstick = static_cast<double>(count) / seconds.second,
                .yardstick_name = "without a table",
                .signature = signature.value()});
}

twenty48::NetConfig SmallConfig() {
  twenty48::NetConfig config;  // As configs/twenty48/small-*.toml have it.
  config.hidden_size = 224;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.intermediate_size = 384;
  config.head_type = twenty48::HeadType::kActionPolicy;
  config.output_n_bins.reset();
  return config;
}

std::string WriteModel(const Encoder& net) {
  const std::string folder = MadeDataFolder() + "/twenty48-model";
  io::WriteModel(folder, io::StateDict(learn::WeightsOf(*net), folder),
                 twenty48::ConfigTree(net->config, std::nullopt));
  return folder;
}

void BenchPlay(Bench& bench, Encoder& net, const std::vector<Position>& positions) {
  const size_t count = 500;
  std::vector<Board> boards;
  std::vector<uint8_t> tokens;
  for (size_t i = 0; i < count; ++i) {
    boards.push_back(positions[i].board);
    twenty48::AppendTokens(boards.back(), tokens);
  }
  const torch::Tensor ids = twenty48::TokenTensor(tokens);
  const std::string folder = WriteModel(net);
  for (nn::Precision precision : {nn::Precision::kInt8, nn::Precision::kF32}) {
    twenty48::Player player({.network = {.path = folder, .precision = precision}});
    Signature signature;
    for (const twenty48::Choice& choice : player.Choose(boards)) {
      signature.Add(static_cast<uint64_t>(choice.best));
    }
    const Pair seconds = InTurns(
        bench.quick() ? 5 : 15, [&] { player.Choose(boards); },
        [&] {
          const torch::NoGradGuard no_grad;
          net->forward(ids, twenty48::Form::kPlain).argmax(1);
        });
    const bool int8 = precision == nn::Precision::kInt8;
    bench.Report(
        {.name = fmt::format("play 1.25M parameters, 500 boards, {}", int8 ? "int8" : "f32"),
         .value = static_cast<double>(count) / seconds.first,
         .unit = "boards/s",
         .yardstick = static_cast<double>(count) / seconds.second,
         .yardstick_name = "plain libtorch",
         .signature = signature.value(),
         .promised_ratio = int8 ? std::optional<double>(3) : std::nullopt});
  }
}

void BenchTraining(Bench& bench, Encoder& net, const std::vector<Position>& positions) {
  const size_t count = 256;
  Batch batch;
  for (size_t i = 0; i < count; ++i) {
    twenty48::AppendTokens(positions[i].board, batch.tokens);
    twenty48::Judged judged{.legal = twenty48::LegalMoves(positions[i].board),
                            .move = static_cast<int>(*positions[i].result.best)};
    for (size_t m = 0; m < 4; ++m) {
      judged.values[m] = static_cast<float>(positions[i].result.values[m].value_or(0));
    }
    batch.judged.push_back(judged);
  }
  const twenty48::TargetOptions target = {.mode = twenty48::TargetMode::kTsadSoft};
  const twenty48::Binner binner(twenty48::BinningOptions{});
  double losses[2] = {};
  const auto step = [&](twenty48::Form form, double& loss) {
    net->zero_grad();
    const twenty48::TargetRows rows = ToTensors(batch, target, binner);
    const auto result = LossOf(net->forward(rows.tokens, form), rows, target);
    result.total.backward();
    loss = result.total.item<double>();
  };
  const Pair seconds = InTurns(
      bench.quick() ? 5 : 15, [&] { step(twenty48::Form::kFused, losses[0]); },
      [&] { step(twenty48::Form::kPlain, losses[1]); });
  if (std::abs(losses[0] - losses[1]) > 1e-4) bench.Fail("the two forms' losses differ");
  Signature signature;
  signature.Add(static_cast<uint64_t>(losses[0] * 1e4));
  bench.Report({.name = "training step 1.25M parameters, 256 boards",
                .value = static_cast<double>(count) / seconds.first,
                .unit = "samples/s",
                .yardstick = static_cast<double>(count) / seconds.second,
                .yardstick_name = "plain libtorch",
                .signature = signature.value(),
                .promised_ratio = 1.3});
}

int Main(int argc, char** argv) {
  learn::StartWell(argv);
  Bench bench("twenty48", argc, argv);
  learn::KeepFreedMemory();
  learn::SetThreads(0);
  const std::vector<Position> positions = MakePositions(5000);
  BenchSlides(bench, positions);
  BenchSearch(bench, positions);
  Encoder net(SmallConfig());
  InitEncoder(net, 1);
  BenchPlay(bench, net, positions);
  BenchTraining(bench, net, positions);
  return bench.Finish();
}

}  // namespace
}  // namespace kibitz::bench

int main(int argc, char** argv) { return kibitz::bench::Main(argc, argv); }
