// Networks as ONNX give the logits of our own runtime, run by onnxruntime on 500 positions each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "games/chess/movegen.h"
#include "io/weights/model_file.h"
#include "students/decoder/data/sight.h"
#include "students/decoder/data/tokens.h"
#include "students/decoder/data/weights_file.h"
#include "students/decoder/play/model.h"
#include "students/decoder/play/onnx.h"
#include "students/policy/data/move_planes.h"
#include "students/policy/data/planes.h"
#include "students/policy/play/model.h"
#include "students/policy/play/onnx.h"
#include "students/twenty48/play/model.h"
#include "students/twenty48/play/onnx.h"
#include "tests/support/golden_kit.h"
#include "tests/support/test_data.h"
#include "tests/support/twenty48_random.h"

namespace kibitz {
namespace {

using nlohmann::json;
using testing::ModelPath;

constexpr size_t kPositions = 500;
constexpr double kAllowed = 1e-4;  // Of the largest logit, where that is over 1.

std::vector<chess::Board> RandomBoards() {
  Rng rng({.seed = 5, .epoch = 0, .sample = 0, .purpose = Purpose("onnx")});
  std::vector<chess::Board> boards;
  chess::Board board;
  while (boards.size() < kPositions) {
    const chess::MoveList moves = chess::LegalMoves(board);
    if (moves.empty() || board.fullmove_number() > 60) {
      board = chess::Board();
      continue;
    }
    boards.push_back(board);
    board = board.After(moves[rng.Below(moves.size())]);
  }
  return boards;
}

// The same network with 3x3 windows as the middle of 5x5 ones, which our runtime multiplies
// plainly. Its Winograd transforms of 3x3 windows are faster and round more coarsely.
io::ModelFile WithPlainWindows(const io::ModelFile& file) {
  std::vector<io::NamedTensor> tensors;
  for (const io::NamedTensor& named : file.weights.tensors()) {
    const std::vector<int64_t>& shape = named.tensor.shape;
    if (shape.size() != 4 || shape[2] != 3) {
      tensors.push_back(named);
      continue;
    }
    const std::vector<float> from = file.weights.Floats(named.name, shape);
    const auto windows = static_cast<size_t>(shape[0] * shape[1]);
    std::vector<float> to(windows * 25);
    for (size_t i = 0; i < windows * 9; ++i) {
      to[i / 9 * 25 + (i % 9 / 3 + 1) * 5 + i % 3 + 1] = from[i];
    }
    const auto bytes = std::as_bytes(std::span(to));
    tensors.push_back({named.name, io::OwnedTensor(io::DType::kF32, {shape[0], shape[1], 5, 5},
                                                   {bytes.begin(), bytes.end()})});
  }
  io::ModelFile wide = {.weights = io::StateDict(std::move(tensors), file.weights.place()),
                        .config = file.config,
                        .place = file.place};
  wide.config["model"]["kernel_size"] = 5;
  return wide;
}

// The same network with a head of planes, of random weights.
io::ModelFile WithPlanes(const io::ModelFile& file, int64_t channels) {
  std::vector<io::NamedTensor> tensors;
  for (const io::NamedTensor& named : file.weights.tensors()) {
    if (named.name != "output.weight") {
      tensors.push_back(named);
      continue;
    }
    Rng rng({.seed = 9, .epoch = 0, .sample = 0, .purpose = Purpose("planes")});
    std::vector<float> weight(static_cast<size_t>(2 * policy::kMovePlanes * channels));
    for (float& value : weight) value = static_cast<float>(0.2 * rng.Normal());
    const auto bytes = std::as_bytes(std::span(weight));
    tensors.push_back(
        {named.name, io::OwnedTensor(io::DType::kF32, {2 * policy::kMovePlanes, channels},
                                     {bytes.begin(), bytes.end()})});
  }
  io::ModelFile made = {.weights = io::StateDict(std::move(tensors), file.weights.place()),
                        .config = file.config,
                        .place = file.place};
  made.config["model"]["head"] = "planes";
  return made;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

class OnnxTest : public ::testing::Test {
 protected:
  template <typename T>
  json Save(const std::string& name, const std::vector<T>& values, std::vector<int64_t> shape) {
    std::ofstream(folder_.File(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(T)));
    shape.insert(shape.begin(), kPositions);
    return {{"file", name}, {"type", sizeof(T) == 8 ? "int64" : "float32"}, {"shape", shape}};
  }

  void Add(const std::string& name, const io::OnnxGraph& graph, const json& inputs,
           const std::vector<float>& logits, const std::vector<int64_t>& shape) {
    graph.Write(folder_.File(name + ".onnx"));
    cases_.push_back({{"name", name},
                      {"model", name + ".onnx"},
                      {"inputs", inputs},
                      {"outputs", {{"logits", Save(name + ".logits", logits, shape)}}}});
  }

  // Runs all cases; skips the test when onnxruntime is not here.
  void Compare() {
    std::ofstream(folder_.File("cases.json")) << json(cases_).dump();
    const testing::Ran ran = testing::RunCommand(
        {"node", testing::SourcePath("tests/onnx/compare.mjs"), folder_.path()});
    ASSERT_EQ(ran.code, 0) << ran.err;
    size_t compared = 0;
    for (const std::string_view line : Split(Trim(ran.out), '\n')) {
      const json result = json::parse(line);
      if (result.contains("missing")) {
        GTEST_SKIP() << "onnxruntime-node is not here (" << result["missing"]
                     << "); run 'make setup'";
      }
      std::printf("[ compared ] %s: largest difference %.2g, logits up to %.3g\n",
                  result["name"].get<std::string>().c_str(), result["worst"].get<double>(),
                  result["largest"].get<double>());
      EXPECT_TRUE(result["shape_equal"].get<bool>()) << line;
      EXPECT_GT(result["count"].get<int64_t>(), 0) << line;
      EXPECT_GT(result["largest"].get<double>(), 0) << line;
      EXPECT_LE(result["worst"].get<double>(),
                kAllowed * std::max(1.0, result["largest"].get<double>()))
          << line;
      ++compared;
    }
    EXPECT_EQ(compared, cases_.size());
  }

  testing::TempFolder folder_;
  std::vector<json> cases_;
};

TEST_F(OnnxTest, PoliciesAnswerAlike) {
  std::vector<policy::PackedPosition> positions;
  for (const chess::Board& board : RandomBoards()) positions.push_back(policy::Pack(board));
  std::vector<std::string> folders = testing::PolicyModels();
  folders.push_back(ModelPath("policy-small"));
  folders.push_back(ModelPath("policy-small") + "/");  // With another head.
  for (const std::string& folder : folders) {
    io::ModelFile file = io::ReadModel(folder);
    const bool planes_head = folder.ends_with("/");
    if (planes_head) file = WithPlanes(file, policy::ConfigOf(file).hidden_channels);
    policy::Model model(file, {});
    const policy::NetConfig& config = model.config();
    const policy::InputForm form = {.flip = config.flip_board, .attacks = config.attack_planes};
    const auto channels = static_cast<size_t>(form.channels());
    const auto meta_size = static_cast<size_t>(form.metas());
    std::vector<float> planes;
    std::vector<float> meta;
    std::vector<float> attacks;
    std::vector<float> cells(64 * channels);
    for (const policy::PackedPosition& position : positions) {
      policy::WriteInputs(position, form, cells.data());
      const auto append = [&](size_t begin, size_t end, std::vector<float>& to) {
        for (size_t i = begin; i < end; ++i) {
          for (size_t cell = 0; cell < 64; ++cell) to.push_back(cells[cell * channels + i]);
        }
      };
      append(0, policy::kPlanes, planes);
      append(policy::kPlanes + meta_size, channels, attacks);
      for (size_t i = 0; i < meta_size; ++i) meta.push_back(cells[policy::kPlanes + i]);
    }
    std::vector<float> logits(kPositions * static_cast<size_t>(config.num_moves));
    model.Answer(positions, logits.data());
    std::string name = std::filesystem::path(folder).filename();
    if (planes_head) name = "planes";
    if (config.IsCnn() && config.kernel_size == 3) {
      std::vector<float> plain(logits.size());
      policy::Model(WithPlainWindows(file), {}).Answer(positions, plain.data());
      std::printf("[ compared ] %s: Winograd's windows differ by %.2g from plain ones\n",
                  name.c_str(), LargestDifference(plain, logits));
      EXPECT_LT(LargestDifference(plain, logits), 1e-2) << name;
      logits = plain;
    }
    json inputs = {{"planes", Save(name + ".planes", planes, {policy::kPlanes, 8, 8})},
                   {"meta", Save(name + ".meta", meta, {static_cast<int64_t>(meta_size)})}};
    if (form.attacks) {
      inputs["attacks"] = Save(name + ".attacks", attacks, {chess::kAttackPlanes, 8, 8});
    }
    Add(name, policy::OnnxOf(file), inputs, logits, {config.num_moves});
  }
  Compare();
}

TEST_F(OnnxTest, Networks2048AnswerAlike) {
  Rng rng({.seed = 6, .epoch = 0, .sample = 0, .purpose = Purpose("onnx")});
  std::vector<twenty48::Board> boards;
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < kPositions; ++i) {
    std::array<int, 16> cells{};
    for (int& rank : cells) {
      rank = static_cast<int>(rng.Below(16));
      ranks.push_back(rank);
    }
    boards.push_back(*twenty48::Board::FromRanks(cells));
  }
  std::vector<std::string> folders = testing::Twenty48Models();
  folders.push_back(ModelPath("twenty48-small"));
  twenty48::NetConfig config = testing::SmallTwenty48();
  const testing::TempFolder made;
  folders.push_back(made.File("attention-free"));
  io::WriteModel(folders.back(), testing::RandomTwenty48(1).AttentionFree(config),
                 ConfigTree(config, std::nullopt));
  config.tuple_width = 4;
  for (bool attention : {false, true}) {
    folders.push_back(made.File(attention ? "tuples-attention" : "tuples"));
    io::WriteModel(folders.back(), testing::RandomTwenty48(2).Tuples(config, attention),
                   ConfigTree(config, std::nullopt));
  }
  for (const std::string& folder : folders) {
    const io::ModelFile file = io::ReadModel(folder);
    twenty48::Model model(file, {});
    std::vector<float> logits(kPositions * static_cast<size_t>(model.answers()));
    model.Answer(boards, logits.data());
    const std::string name = std::filesystem::path(folder).filename();
    std::vector<int64_t> shape = {4};
    if (model.answers() > 4) shape.push_back(model.answers() / 4);
    Add(name, twenty48::OnnxOf(file), {{"board", Save(name + ".board", ranks, {16})}}, logits,
        shape);
  }
  Compare();
}

TEST_F(OnnxTest, DecodersAnswerAlikeByInstinct) {
  const std::vector<chess::Board> boards = RandomBoards();
  std::vector<int64_t> tokens;
  for (const chess::Board& board : boards) {
    for (const decoder::TokenId token : decoder::BoardTokensOf(board)) tokens.push_back(token);
  }
  std::vector<std::pair<std::string, io::ModelFile>> files;
  files.emplace_back("tiny", io::ReadModel(testing::GoldenPath("decoder/tiny.pt")));
  decoder::NetConfig config = {.embed_dim = 64,
                               .num_heads = 4,
                               .num_layers = 2,
                               .max_seq_len = 128,
                               .d_ff = 96,
                               .value_hidden_size = 16,
                               .num_fourier_freq = 8,
                               .square_policy = true,
                               .board_places = true};
  files.emplace_back("squares", io::ModelFile{.weights = decoder::RandomWeights(config, 3),
                                              .config = {{"model", FieldsOf(config).ToTree()}},
                                              .place = "random weights"});
  config.square_sight = true;
  files.emplace_back("sight", io::ModelFile{.weights = decoder::RandomWeights(config, 4),
                                            .config = {{"model", FieldsOf(config).ToTree()}},
                                            .place = "random weights"});
  config.square_attacks = true;
  files.emplace_back("attacks", io::ModelFile{.weights = decoder::RandomWeights(config, 5),
                                              .config = {{"model", FieldsOf(config).ToTree()}},
                                              .place = "random weights"});
  std::vector<float> attacks(boards.size() * 64 * decoder::kAttackRows);
  for (size_t i = 0; i < boards.size(); ++i) {
    for (const decoder::SightRow& attack : decoder::AttacksOf(decoder::BoardTokensOf(boards[i]))) {
      attacks[(i * 64 + static_cast<size_t>(attack.square)) * decoder::kAttackRows +
              static_cast<size_t>(attack.row)] = 1;
    }
  }
  for (const auto& [name, file] : files) {
    const decoder::WeightsFile weights = decoder::WeightsOf(file);
    decoder::Model model(weights.weights, weights.config, {});
    std::vector<float> logits;
    for (const chess::Board& board : boards) {
      const decoder::CachePtr cache = model.TakeCache(decoder::kBoardTokens);
      decoder::Reading reading = {
          .cache = cache.get(), .block = true, .wanted = decoder::BoardWanted(weights.config)};
      decoder::BoardPlace places;
      for (const decoder::TokenId token : decoder::BoardTokensOf(board)) {
        reading.inputs.push_back(decoder::Input::At(places.Next(token), token));
      }
      std::vector<float> some;
      model.BoardPolicy(model.Read({&reading, 1}), 1, some);
      logits.insert(logits.end(), some.begin(), some.end());
    }
    json inputs = {{"tokens", Save(name + ".tokens", tokens, {decoder::kBoardTokens})}};
    if (weights.config.square_attacks) {
      inputs["attacks"] = Save(name + ".attacks", attacks, {64, decoder::kAttackRows});
    }
    Add(name, decoder::OnnxOf(file), inputs, logits, {decoder::kMoveVocabularySize});
  }
  Compare();
}

TEST_F(OnnxTest, TheCommandWritesAFile) {
  const std::string out = folder_.File("model.onnx");
  const testing::Ran ran = testing::RunCommand(
      {testing::ProgramPath("kibitz"), "file", "convert", ModelPath("policy-small"), out});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_GT(std::filesystem::file_size(out), 100'000U);
}

}  // namespace
}  // namespace kibitz
