#include "students/decoder/play/player.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "io/weights/torch_file.h"
#include "io/weights/value_tree.h"
#include "students/decoder/data/widen.h"
#include "students/decoder/play/draft.h"
#include "students/decoder/play/model.h"
#include "tests/support/test_data.h"

namespace kibitz::decoder {
namespace {

using chess::Board;

// Small, but with everything: heads of 8 numbers, hidden width no multiple of a panel.
NetConfig SmallConfig() {
  return {.embed_dim = 32,
          .num_heads = 4,
          .num_layers = 2,
          .max_seq_len = 500,
          .d_ff = 40,
          .n_buckets = 10,
          .value_hidden_size = 16,
          .num_fourier_freq = 8};
}

// Positions of random games.
std::vector<Board> Positions(size_t count, uint64_t seed) {
  std::vector<Board> boards;
  for (uint64_t game = 0; boards.size() < count; ++game) {
    Rng rng({.seed = seed, .sample = game});
    Board board;
    const auto plies = rng.Below(80);
    for (uint64_t ply = 0; ply < plies && chess::HasLegalMove(board); ++ply) {
      const chess::MoveList moves = chess::LegalMoves(board);
      board = board.After(moves[rng.Below(moves.size())]);
    }
    if (chess::HasLegalMove(board)) boards.push_back(board);
  }
  return boards;
}

std::unique_ptr<Player> Tiny(nn::Precision precision = nn::Precision::kF32, int threads = 2) {
  return Player::Load(
      {.path = testing::GoldenPath("decoder/tiny.pt"), .precision = precision, .threads = threads});
}

void ExpectSame(const Thought& a, const Thought& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.blocks, b.blocks);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.move, b.move);
  ASSERT_EQ(a.wl_entries.size(), b.wl_entries.size());
  for (size_t i = 0; i < a.wl_entries.size(); ++i) {
    EXPECT_EQ(a.wl_entries[i].value, b.wl_entries[i].value);
  }
}

TEST(PlayerTest, DraftsChangeNothingWhereTheyOftenFail) {
  const auto player = Player::Random(SmallConfig(), 1, {.threads = 1});
  int drafted = 0;
  int accepted = 0;
  uint64_t seed = 0;
  for (const Board& board : Positions(200, 5)) {
    // Greedy, and drawn: each position of a sequence has its own number, so draws agree too.
    const double temperature = seed % 2 == 0 ? 0 : 0.7;
    ThinkOptions options = {.thinking_temperature = temperature,
                            .structure_temperature = temperature,
                            .max_depth = 2,
                            .max_seq_len = 300,
                            .seed = ++seed};
    const Thought with = player->Think(board, options);
    options.draft = false;
    ExpectSame(with, player->Think(board, options));
    drafted += with.stats.drafted_tokens;
    accepted += with.stats.accepted_tokens;
  }
  EXPECT_GT(drafted, 0);
  EXPECT_LT(accepted, drafted / 2);
}

TEST(PlayerTest, TheRootsValueChangesNothingElse) {
  const auto player = Tiny();
  for (const Board& board : Positions(20, 7)) {
    std::optional<NodeValue> told;
    const Thought with =
        player->Think(board, {.root_value = true},
                      {.on_root = [&](const Thought& thought) { told = thought.instinct_value; }});
    ExpectSame(with, player->Think(board));
    ASSERT_TRUE(with.instinct_value);
    EXPECT_EQ(with.instinct_value, told);
    EXPECT_EQ(with.instinct_value, player->Predict(board, {.value = true}).value);
  }
}

TEST(PlayerTest, DraftsChangeNothingWhereTheyHold) {
  const auto player = Tiny();
  int written = 0;
  int accepted = 0;
  for (const Board& board : Positions(20, 6)) {
    const Thought with = player->Think(board);
    ExpectSame(with, player->Think(board, {.draft = false}));
    for (const Variation& variation : with.variations) {
      for (const ThoughtNode& node : variation.nodes)
        written += static_cast<int>(node.board.size());
    }
    accepted += with.stats.accepted_tokens;
  }
  EXPECT_GT(accepted, written / 2);
}

// Random weights that favour empty squares: drafts of a bare board hold for a while, then fail.
std::unique_ptr<Model> FondOfEmpty() {
  std::vector<io::NamedTensor> tensors = RandomWeights(SmallConfig(), 4).tensors();
  for (io::NamedTensor& item : tensors) {
    if (item.name != "board_head.bias") continue;
    std::vector<float> bias = io::ToFloats(item.tensor);
    bias[static_cast<size_t>(BoardIndex(kEmpty))] = 7;
    const auto* first = reinterpret_cast<const std::byte*>(bias.data());
    item.tensor = io::OwnedTensor(io::DType::kF32, item.tensor.shape,
                                  {first, first + bias.size() * sizeof(float)});
  }
  return std::make_unique<Model>(io::StateDict(std::move(tensors), "test"), SmallConfig(),
                                 nn::NetworkOptions{.threads = 1});
}

// The probability of each token of the vocabulary at each place of the first board, while all
// before it are the draft's: read in one pass.
std::vector<std::vector<double>> DraftProbabilities(Model& model, const Thought& thought,
                                                    const BoardTokens& draft) {
  const CachePtr cache = model.TakeCache(200);
  Reading reading = {.cache = cache.get()};
  const auto bucket = [&](float value, auto centre) {
    int i = 0;
    while (centre(i) != value) ++i;
    return i;
  };
  const int wl = bucket(thought.wl_entries[0].value, [&](int i) { return model.WlOf(i); });
  const int d = bucket(thought.d_entries[0].value, [&](int i) { return model.DOf(i); });
  for (size_t i = 0; i < kBoardTokens + 2; ++i)
    reading.inputs.push_back(Input::Of(thought.tokens[i]));
  reading.inputs.push_back(Input::Wl(wl));
  reading.inputs.push_back(Input::D(d, model.config().n_buckets));
  reading.wanted.push_back(kBoardTokens + 3);
  for (size_t i = 0; i + 1 < kBoardTokens; ++i) {
    reading.wanted.push_back(static_cast<int>(reading.inputs.size()));
    reading.inputs.push_back(Input::Of(draft[i]));
  }
  std::vector<float> logits;
  model.BoardLogits(model.Read({&reading, 1}), kBoardTokens, logits);
  std::vector<std::vector<double>> probabilities;
  for (size_t row = 0; row < kBoardTokens; ++row) {
    std::vector<double> weights;
    double sum = 0;
    for (size_t i = 0; i < kBoardVocabularySize; ++i) {
      weights.push_back(std::exp(logits[row * kBoardVocabularySize + i]));
      sum += weights.back();
    }
    for (double& weight : weights) weight /= sum;
    probabilities.push_back(std::move(weights));
  }
  return probabilities;
}

// 20,000 drawn boards: where each first leaves the draft and with which token, beside the exact
// probabilities. (That drawn boards are the very same with and without drafts is tested above.)
TEST(PlayerTest, DrawnBoardsHaveTheNetworksOwnDistribution) {
  constexpr int kDraws = 20000;
  const auto model = FondOfEmpty();
  Player player(FondOfEmpty());
  const Board root = chess::ParseFen("8/8/8/4k3/8/8/4K3/8 w - - 0 1").OrThrow("");
  const std::vector<Board> roots(100, root);
  std::map<std::pair<size_t, TokenId>, int> found;  // Place and token; place 68: none.
  std::optional<BoardTokens> draft;
  std::vector<std::vector<double>> probabilities;
  for (uint64_t first = 0; first < kDraws; first += roots.size()) {
    for (const Thought& thought :
         player.ThinkAll(roots, {.structure_temperature = 1,
                                .max_seq_len = kBoardTokens + 4 + kBoardTokens,
                                .legal_only = true,
                                .seed = first})) {
      const ThoughtNode& node = thought.variations.front().nodes.front();
      if (!draft) {
        draft = BoardTokensOf(node.after.value());
        probabilities = DraftProbabilities(*model, thought, *draft);
      }
      size_t place = 0;
      while (place < kBoardTokens && node.board[place] == (*draft)[place]) ++place;
      ++found[{place, place < kBoardTokens ? node.board[place] : TokenId{0}}];
    }
  }
  double chi_square = 0;
  int cells = 0;
  double rare_expected = 0;
  double rare_found = 0;
  const auto add = [&](double expected, double count) {
    if (expected < 10) {
      rare_expected += expected;
      rare_found += count;
      return;
    }
    chi_square += std::pow(count - expected, 2) / expected;
    ++cells;
  };
  double held = kDraws;
  for (size_t place = 0; place < kBoardTokens; ++place) {
    for (int i = 0; i < kBoardVocabularySize; ++i) {
      const TokenId token = BoardToken(i);
      if (token == (*draft)[place]) continue;
      add(held * probabilities[place][static_cast<size_t>(i)], found[{place, token}]);
    }
    held *= probabilities[place][static_cast<size_t>(BoardIndex((*draft)[place]))];
  }
  rare_expected += held;
  rare_found += found[{kBoardTokens, 0}];
  chi_square += std::pow(rare_found - rare_expected, 2) / rare_expected;
  ASSERT_GT(cells, 30);
  // Beyond 4 standard deviations: once in thousands of such tests, and the seeds are fixed.
  EXPECT_LT(chi_square, cells + 4 * std::sqrt(2.0 * cells));
}

TEST(PlayerTest, ManyAtOnceAnswerAsAlone) {
  const std::vector<Board> boards = Positions(37, 7);
  for (nn::Precision precision : {nn::Precision::kF32, nn::Precision::kInt8}) {
    const auto player = Tiny(precision);
    const auto many = player->PredictAll(boards, {.temperature = 1, .value = true, .seed = 3});
    const auto thoughts =
        player->ThinkAll({boards.data(), 11}, {.final_temperature = 1, .seed = 9});
    for (size_t i = 0; i < boards.size(); ++i) {
      const auto one = player->Predict(boards[i], {.temperature = 1, .value = true, .seed = 3 + i});
      EXPECT_EQ(one.chosen->token, many[i].chosen->token);
      EXPECT_EQ(one.chosen->logit, many[i].chosen->logit);
      EXPECT_EQ(one.value, many[i].value);
    }
    // In one thread's passes, and in those of three threads.
    for (const int threads : {1, 3}) {
      const auto others = Tiny(precision, threads)
                              ->ThinkAll({boards.data(), 11}, {.final_temperature = 1, .seed = 9});
      for (size_t i = 0; i < thoughts.size(); ++i) ExpectSame(thoughts[i], others[i]);
    }
    for (size_t i = 0; i < thoughts.size(); ++i) {
      ExpectSame(thoughts[i], player->Think(boards[i], {.final_temperature = 1, .seed = 9 + i}));
    }
  }
}

// Of more than 32 MB: here all threads share the passes of all thoughts.
TEST(PlayerTest, LargeNetworksShareThePassesOfAllThoughts) {
  const auto player = Player::Random({.embed_dim = 512,
                                      .num_heads = 8,
                                      .num_layers = 4,
                                      .max_seq_len = 160,
                                      .d_ff = 768,
                                      .n_buckets = 10,
                                      .value_hidden_size = 16,
                                      .num_fourier_freq = 8},
                                     1, {.threads = 2});
  ASSERT_GT(player->memory_bytes(), size_t{32} << 20);
  const std::vector<Board> boards = Positions(3, 6);
  const ThinkOptions options = {.max_variations = 1, .max_depth = 1};
  const auto thoughts = player->ThinkAll(boards, options);
  for (size_t i = 0; i < boards.size(); ++i) {
    ThinkOptions own = options;
    own.seed += i;
    ExpectSame(thoughts[i], player->Think(boards[i], own));
  }
}

TEST(PlayerTest, AnErrorOfTasksEndsAllThreads) {
  const auto player = Tiny(nn::Precision::kF32, 3);
  const std::vector<Board> boards = Positions(10, 5);
  for (int round = 0; round < 2; ++round) {  // The player can go on afterwards.
    size_t taken = 0;
    const auto next = [&]() -> std::optional<ThinkTask> {
      if (taken == 5) throw Error("line 6 is broken");
      return ThinkTask{.root = boards[taken++]};
    };
    size_t finished = 0;
    EXPECT_THROW(player->ThinkEach(next, [&](size_t, const Thought&) { ++finished; }), Error);
    EXPECT_LE(finished, taken);
  }
}

TEST(PlayerTest, ThinksAboutTasksAsTheyComeAndStops) {
  const auto player = Tiny();
  const std::vector<Board> boards = Positions(20, 4);
  // Tasks of their own lengths: many end before those begun earlier.
  const auto task = [&](size_t i) {
    return ThinkTask{.root = boards[i],
                     .options = {.max_variations = 1 + static_cast<int>(i % 3), .seed = i}};
  };
  size_t taken = 0;
  size_t ended = 0;
  std::set<size_t> seen;
  player->ThinkEach(
      [&]() -> std::optional<ThinkTask> {
        EXPECT_LE(taken - ended, 8U);  // A few ahead, not all at once.
        return taken < boards.size() ? std::optional(task(taken++)) : std::nullopt;
      },
      [&](size_t number, const Thought& thought) {
        ++ended;
        EXPECT_TRUE(seen.insert(number).second);
        ExpectSame(thought, player->Think(boards[number], task(number).options));
      });
  EXPECT_EQ(seen.size(), boards.size());

  // A stop: those under way are cancelled, no more are taken.
  std::stop_source stop;
  taken = 0;
  int cancelled = 0;
  player->ThinkEach([&]() -> std::optional<ThinkTask> { return task(taken++ % boards.size()); },
                    [&](size_t, const Thought& thought) {
                      cancelled += thought.end == ThoughtEnd::kCancelled ? 1 : 0;
                      stop.request_stop();
                    },
                    stop.get_token());
  EXPECT_GT(cancelled, 0);
  EXPECT_LE(taken, 16U);
}

TEST(PlayerTest, Int8AgreesWithFloats) {
  const auto f32 = Tiny();
  const auto int8 = Tiny(nn::Precision::kInt8);
  const std::vector<Board> boards = Positions(500, 8);
  const auto exact = f32->PredictAll(boards);
  const auto rounded = int8->PredictAll(boards);
  int equal = 0;
  for (size_t i = 0; i < boards.size(); ++i) {
    equal += exact[i].chosen->token == rounded[i].chosen->token ? 1 : 0;
  }
  EXPECT_GE(equal, 490);
}

TEST(PlayerTest, LimitsAndLegality) {
  const auto player = Tiny();
  for (const Board& board : Positions(10, 9)) {
    const Thought thought = player->Think(
        board,
        {.thinking_temperature = 2, .max_variations = 2, .max_depth = 3, .legal_only = true});
    EXPECT_LE(thought.variations.size(), 2U);
    for (const Variation& variation : thought.variations) {
      EXPECT_LE(variation.nodes.size(), 3U);
      EXPECT_EQ(LegalPart(variation).beyond, 0);
    }
    ASSERT_TRUE(thought.move.has_value());
    EXPECT_TRUE(chess::IsLegal(board, *thought.move));
    EXPECT_TRUE(!thought.final_move || thought.final_move->move.has_value());
  }
}

// Random weights write malformed boards. With legal_only the moves still follow the rules.
TEST(PlayerTest, LegalOnlyHoldsAfterMalformedBoards) {
  const auto player = Player::Random(SmallConfig(), 3, {.threads = 1});
  int after_malformed = 0;
  for (const Board& board : Positions(20, 10)) {
    const Thought thought = player->Think(
        board, {.thinking_temperature = 1, .structure_temperature = 1, .legal_only = true});
    for (const Variation& variation : thought.variations) {
      bool malformed = false;
      for (const ThoughtNode& node : variation.nodes) {
        EXPECT_TRUE(node.move.has_value()) << TokenName(node.token);
        after_malformed += malformed ? 1 : 0;
        malformed = malformed || !BoardOf(node.board);
      }
    }
  }
  EXPECT_GT(after_malformed, 20);
}

TEST(PlayerTest, LegalOnlyWritesNothingWhereTheGameIsOver) {
  const auto player = Tiny();
  const Board mated = chess::ParseFen("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1").OrThrow("");
  const Thought thought = player->Think(mated, {.legal_only = true});
  EXPECT_EQ(thought.end, ThoughtEnd::kFinished);
  EXPECT_TRUE(thought.variations.empty());
  EXPECT_FALSE(thought.final_move.has_value());
  EXPECT_FALSE(thought.move.has_value());
}

TEST(PlayerTest, DistinctVariationsBeginWithDifferentMoves) {
  const auto player = Tiny();
  int repeated = 0;
  for (const Board& board : Positions(10, 3)) {
    for (const bool distinct : {false, true}) {
      const Thought thought = player->Think(
          board, {.max_variations = 4, .max_depth = 1, .legal_only = true, .distinct = distinct});
      std::set<TokenId> first;
      for (const Variation& variation : thought.variations) {
        first.insert(variation.nodes.front().token);
      }
      const size_t moves = chess::LegalMoves(board).size();
      const size_t most = std::min(thought.variations.size(), moves);
      if (!distinct) {
        repeated += first.size() < most ? 1 : 0;
        continue;
      }
      EXPECT_EQ(first.size(), most);
    }
  }
  EXPECT_GT(repeated, 0);
}

TEST(PlayerTest, TopKDrawsOnlyAmongTheMostLikely) {
  const auto player = Tiny();
  std::set<TokenId> seen;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto answer = player->Predict(Board(), {.temperature = 5, .top_k = 3, .seed = seed});
    seen.insert(answer.chosen->token);
    EXPECT_LE(answer.candidates[2].logit, answer.chosen->logit);
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST(PlayerTest, NoLegalMove) {
  const auto player = Tiny();
  const Board mated = chess::ParseFen("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1").OrThrow("");
  EXPECT_FALSE(player->Predict(mated, {.value = true}).chosen.has_value());
  EXPECT_TRUE(player->Predict(mated, {.legal_only = false}).chosen.has_value());
  const Thought thought = player->Think(mated);
  EXPECT_FALSE(thought.move.has_value());
}

TEST(PlayerTest, StopsAtOnceAndGoesOnAfterwards) {
  const auto player = Tiny();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(player->Predict(Board(), {.stop = stop.get_token()}).cancelled);
  const Thought none = player->Think(Board(), {.stop = stop.get_token()});
  EXPECT_EQ(none.end, ThoughtEnd::kCancelled);
  EXPECT_TRUE(none.variations.empty());

  // In the middle: what was written stays, and the move is the instinct's.
  std::stop_source later;
  const Thought half = player->Think(Board(), {.stop = later.get_token()},
                                     {.on_board = [&](const Thought&) { later.request_stop(); }});
  EXPECT_EQ(half.end, ThoughtEnd::kCancelled);
  EXPECT_EQ(half.variations.size(), 1U);
  EXPECT_TRUE(half.by_instinct);
  EXPECT_EQ(half.move, half.instinct.front().move);

  const auto reader = player->Read(Board());
  reader->Play(reader->Predict().chosen->move.value());
  EXPECT_TRUE(reader->Predict({.stop = stop.get_token()}).cancelled);
  const auto again = reader->Predict();
  const auto fresh = player->Read(Board());
  fresh->Play(fresh->Predict().chosen->move.value());
  EXPECT_EQ(again.chosen->logit, fresh->Predict().chosen->logit);
}

TEST(PlayerTest, TellsWhatHappensInOrder) {
  const auto player = Tiny();
  std::vector<TokenId> heard;
  std::string events;
  ThoughtListener listener;
  listener.on_token = [&](TokenId token, int position) {
    EXPECT_EQ(position, static_cast<int>(heard.size()));
    heard.push_back(token);
  };
  listener.on_root = [&](const Thought& thought) {
    EXPECT_FALSE(thought.instinct.empty());
    events += "r";
  };
  listener.on_value = [&](const Thought&) { events += "v"; };
  listener.on_board = [&](const Thought&) { events += "b"; };
  listener.on_variation_end = [&](const Thought&) { events += "e"; };
  const Thought thought = player->Think(Board(), {}, listener);
  EXPECT_EQ(heard, thought.tokens);
  std::string expected = "r";
  for (const Variation& variation : thought.variations) {
    for (size_t i = 0; i < variation.nodes.size(); ++i) expected += "vb";
    expected += "e";
  }
  EXPECT_EQ(events, expected);
}

TEST(PlayerTest, WritesWhatItIsTold) {
  const auto player = Player::Random(SmallConfig(), 2, {.threads = 1});
  const Thought told = Tiny()->Think(Board());
  const Thought thought = player->Think(Board(), {.script = told.tokens});
  EXPECT_EQ(thought.tokens, told.tokens);
  EXPECT_GT(thought.stats.accepted_tokens, 0);
}

TEST(PlayerTest, RefusesWhatIsNoDecoder) {
  const testing::TempFolder folder;
  EXPECT_THROW(Player::Load({.path = folder.File("none.pt")}), Error);
  NetConfig config = SmallConfig();
  const io::StateDict weights = RandomWeights(config, 1);
  config.d_ff = 48;
  try {
    const Model model(io::StateDict(weights.tensors(), "here.pt"), config, {.threads = 1});
    FAIL() << model.memory_bytes();
  } catch (const Error& error) {
    EXPECT_NE(
        error.message().find("here.pt: layers.0.mlp.w1.weight is [40, 32], expected [48, 32]"),
        std::string::npos)
        << error.message();
  }
}

// A checkpoint of these weights with this config.model.
void WriteCheckpoint(const std::string& path, const io::StateDict& weights,
                     const nlohmann::ordered_json& model) {
  const auto dict = [](const char* key, io::Value value) {
    return std::pair(io::Value::String(key), std::move(value));
  };
  io::WritePt(path, io::Value::Dict(
                        {dict("model_state_dict", io::ToDict(weights.tensors())),
                         dict("config", io::Value::Dict({dict("model", io::FromTree(model))}))}));
}

TEST(PlayerTest, ConfigsMayLackSizesAndHaveOtherKeys) {
  const testing::TempFolder folder;
  const std::string path = folder.File("model.pt");
  const Prediction expected = Player::Random(SmallConfig(), 1, {.threads = 1})->Predict(Board());
  for (const nlohmann::ordered_json& model : std::vector<nlohmann::ordered_json>{
           {{"num_heads", 4}, {"max_seq_len", 500}},
           {{"embed_dim", 32}, {"num_heads", 4}, {"num_layers", 2}, {"d_ff", nullptr}},
           {{"num_heads", 4}, {"vocab_size", 1968}, {"rope_theta", 1e4}}}) {
    WriteCheckpoint(path, RandomWeights(SmallConfig(), 1), model);
    const auto player = Player::Load({.path = path, .threads = 1});
    EXPECT_EQ(player->config().d_ff, 40) << model;
    EXPECT_EQ(player->Predict(Board()).chosen->logit, expected.chosen->logit) << model;
  }
}

TEST(PlayerTest, AWidenedNetworkThinksTheSame) {
  const testing::TempFolder folder;
  const WeightsFile small{.weights = RandomWeights(SmallConfig(), 1), .config = SmallConfig()};
  const WeightsFile wide = Widen(small, {.seed = 3});
  EXPECT_EQ(wide.config.embed_dim, 2 * small.config.embed_dim);
  const auto load = [&](const WeightsFile& file, const std::string& path) {
    WriteCheckpoint(path, file.weights, {{"num_heads", file.config.num_heads}});
    return Player::Load({.path = path, .threads = 1});
  };
  const auto before = load(small, folder.File("small.pt"));
  const auto after = load(wide, folder.File("wide.pt"));
  EXPECT_EQ(after->config().d_ff, 2 * before->config().d_ff);
  EXPECT_NEAR(after->Predict(Board()).chosen->logit, before->Predict(Board()).chosen->logit, 1e-3);
  const ThinkOptions options{.max_variations = 2, .max_depth = 2};
  EXPECT_EQ(after->Think(Board(), options).tokens, before->Think(Board(), options).tokens);
}

TEST(PlayerTest, MeanValuesAreNearTheMiddleOfAFlatDistribution) {
  // Random heads give nearly equal chances to all buckets: their mean is near 0 and 1/2, while the
  // most likely bucket lies anywhere.
  NetConfig config = SmallConfig();
  double modes = 0;
  double means = 0;
  for (const bool mean_values : {false, true}) {
    config.mean_values = mean_values;
    const auto player = Player::Random(config, 3, {.threads = 1});
    for (const Board& board : Positions(40, 6)) {
      const NodeValue value = *player->Predict(board, {.value = true}).value;
      (mean_values ? means : modes) += std::abs(value.wl) + std::abs(value.d - 0.5);
    }
  }
  EXPECT_LT(means / 40, 0.35);
  EXPECT_GT(modes, 1.5 * means);
}

TEST(PlayerTest, HeadsMustBeKnown) {
  const testing::TempFolder folder;
  const std::string path = folder.File("model.pt");
  WriteCheckpoint(path, RandomWeights(SmallConfig(), 1), {{"embed_dim", 32}});
  EXPECT_THAT(testing::MessageOf([&] { Player::Load({.path = path}); }),
              ::testing::HasSubstr("model.pt: found no num_heads"));
  EXPECT_EQ(Player::Load({.path = path, .num_heads = 4})->config().num_heads, 4);
}

TEST(PlayerTest, SaysThatAFileIsMissing) {
  const testing::TempFolder folder;
  EXPECT_THAT(testing::MessageOf([&] { Player::Load({.path = folder.File("none.pt")}); }),
              ::testing::HasSubstr("none.pt: found no such file or folder"));
}

TEST(DraftTest, FollowsTheRulesAndMovesOnWithoutThem) {
  const Board start;
  const BoardTokens before = BoardTokensOf(start);
  const TokenId e2e4 = FindToken("e2e4").value();
  const auto after = start.After(MoveOf(start, e2e4).OrThrow(""));
  EXPECT_EQ(DraftBoard(before, e2e4, after), BoardTokensOf(after));
  // A rook through its own pawn: moved all the same.
  const BoardTokens drafted = DraftBoard(before, FindToken("a1a5").value(), std::nullopt);
  EXPECT_EQ(drafted[1], kEmpty);
  EXPECT_EQ(drafted[33], kWhiteRook);
  EXPECT_EQ(drafted[67], kBlackToMove);
}

}  // namespace
}  // namespace kibitz::decoder
