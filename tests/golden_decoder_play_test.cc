// Predictions and thinking of the golden network, without torch: the same moves, values and tokens
// as the public reference, token by token and drafted, one position and many at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "io/tables/npy.h"
#include "io/weights/convert_weights.h"
#include "students/decoder/data/weights_file.h"
#include "students/decoder/play/model.h"
#include "students/decoder/play/player.h"
#include "tests/support/golden_kit.h"

namespace kibitz::decoder {
namespace {

using Json = nlohmann::json;
using testing::Compared;

// Choices nearer than this may go either way in another order of summation.
constexpr double kSafeMargin = 1e-4;
constexpr double kTolerance = 1e-6;

std::vector<Json> Rows(const std::string& file) {
  std::ifstream in(testing::GoldenPath("decoder/" + file));
  std::vector<Json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(Json::parse(line));
  EXPECT_FALSE(rows.empty()) << file;
  return rows;
}

chess::Board BoardAt(const std::string& fen) {
  return chess::ParseFen(fen, {.drop_wrong_castling = true}).OrThrow(fen);
}

bool Safe(const Json& row, const std::string& key) {
  return row[key].is_null() || row[key].get<double>() >= kSafeMargin;
}

Player& Tiny() {
  static const auto player =
      Player::Load({.path = testing::GoldenPath("decoder/tiny.pt"), .threads = 2});
  return *player;
}

std::vector<float> Golden(const std::string& file) {
  return io::ToFloats(io::NpyFile::Open(testing::GoldenPath("decoder/forward/" + file)).AsTensor());
}

// Where a bucket's centre is this very value.
int BucketOf(const std::vector<float>& centres, float value) {
  const auto nearest = std::ranges::min_element(
      centres, {}, [&](float centre) { return std::fabs(centre - value); });
  EXPECT_NEAR(*nearest, value, 1e-6);
  return static_cast<int>(nearest - centres.begin());
}

std::vector<Input> InputsOf(const std::string& name, const Model& model) {
  const auto ids = Golden(name + ".ids.npy");
  const auto wl_positions = Golden(name + ".wl_positions.npy");
  const auto d_positions = Golden(name + ".d_positions.npy");
  const auto wl_values = Golden(name + ".wl_values.npy");
  const auto d_values = Golden(name + ".d_values.npy");
  const auto wl_centres = Golden("wl_bucket_centers.npy");
  const auto d_centres = Golden("d_bucket_centers.npy");
  std::vector<Input> inputs;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (wl_positions[i] != 0) {
      inputs.push_back(Input::Wl(BucketOf(wl_centres, wl_values[i])));
    } else if (d_positions[i] != 0) {
      inputs.push_back(Input::D(BucketOf(d_centres, d_values[i]), model.config().n_buckets));
    } else {
      inputs.push_back(Input::Of(static_cast<TokenId>(ids[i])));
    }
  }
  return inputs;
}

// The reference writes castling by the token's name alone, whichever piece stands on e1 or e8.
std::string ReferenceText(const Candidate& candidate) {
  static const std::map<std::string, std::string> castling = {
      {"e1h1", "e1g1"}, {"e1a1", "e1c1"}, {"e8h8", "e8g8"}, {"e8a8", "e8c8"}};
  const std::string name(TokenName(candidate.token));
  const auto known = castling.find(name);
  return known == castling.end() ? name : known->second;
}

// The reference has no token for knight promotions and never chooses them.
bool IsKnightPromotion(const Candidate& candidate) {
  return candidate.move && candidate.move->promotion() == chess::PieceType::kKnight;
}

// The whole sequence in pieces: blocks where the ids of neighbours are equal.
std::vector<Reading> PrefixReadings(const std::vector<Input>& inputs,
                                    const std::vector<float>& blocks, nn::KvCache& cache) {
  std::vector<Reading> readings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i == 0 || blocks[i] != blocks[i - 1]) {
      readings.push_back({.cache = &cache, .first = static_cast<int>(i), .block = true});
    }
    readings.back().wanted.push_back(static_cast<int>(readings.back().inputs.size()));
    readings.back().inputs.push_back(inputs[i]);
  }
  return readings;
}

void ExpectNear(const float* found, const std::vector<float>& expected, const std::string& what) {
  float worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::fabs(found[i] - expected[i]));
  }
  EXPECT_LT(worst, 1e-4F) << what;
}

TEST(GoldenDecoderPlayTest, HiddenStatesOfBothStreams) {
  const WeightsFile file = ReadWeightsFile(testing::GoldenPath("decoder/tiny.pt"));
  Model model(file.weights, file.config, {.threads = 2});
  const Json cases =
      Json::parse(std::ifstream(testing::GoldenPath("decoder/forward/forward.json")));
  for (const auto& [name, about] : cases.items()) {
    const std::vector<Input> inputs = InputsOf(name, model);
    const auto size = static_cast<int>(inputs.size());
    const CachePtr cache = model.TakeCache(size);
    const auto prefix = PrefixReadings(inputs, Golden(name + ".block_id.npy"), *cache);
    ExpectNear(model.Read(prefix), Golden(name + ".h_prefix.npy"), name + ": prefix");

    Reading causal = {.cache = cache.get(), .inputs = inputs};
    for (int i = 0; i < size; ++i) causal.wanted.push_back(i);
    const float* hidden = model.Read({&causal, 1});
    ExpectNear(hidden, Golden(name + ".h_causal.npy"), name + ": causal");
    std::vector<float> logits;
    model.BoardLogits(hidden, size, logits);
    ExpectNear(logits.data(), Golden(name + ".board_logits.npy"), name + ": board");

    // Token by token, from what is kept of those before.
    const CachePtr slow = model.TakeCache(size);
    const auto expected = Golden(name + ".h_causal.npy");
    const auto width = static_cast<size_t>(model.config().embed_dim);
    for (int i = 0; i < size; ++i) {
      const Reading one = {.cache = slow.get(),
                           .first = i,
                           .inputs = {inputs[static_cast<size_t>(i)]},
                           .wanted = {0}};
      const auto at = expected.begin() + static_cast<std::ptrdiff_t>(width) * i;
      ExpectNear(model.Read({&one, 1}), {at, at + static_cast<std::ptrdiff_t>(width)}, name);
    }
  }
}

// Compares the best legal move and its value; false when the reference cannot have that move.
bool ExpectLegalPrediction(const Json& row) {
  const std::string fen = row["fen"];
  const Prediction legal = Tiny().Predict(BoardAt(fen), {.value = true});
  if (IsKnightPromotion(*legal.chosen)) return false;
  EXPECT_EQ(ReferenceText(*legal.chosen), row["predict_move_legal"]) << fen;
  if (!Safe(row, "margin_wl") || !Safe(row, "margin_d")) return true;
  EXPECT_NEAR(legal.value->wl, row["wl"].get<double>(), kTolerance) << fen;
  EXPECT_NEAR(legal.value->d, row["d"].get<double>(), kTolerance) << fen;
  const Wdl wdl = WdlOf(*legal.value);
  EXPECT_NEAR(wdl.win, row["win"].get<double>(), kTolerance) << fen;
  EXPECT_NEAR(wdl.draw, row["draw"].get<double>(), kTolerance) << fen;
  EXPECT_NEAR(wdl.loss, row["loss"].get<double>(), kTolerance) << fen;
  return true;
}

void ExpectAnyPrediction(const Json& row) {
  const std::string fen = row["fen"];
  const Prediction any = Tiny().Predict(BoardAt(fen), {.legal_only = false});
  EXPECT_EQ(ReferenceText(*any.chosen), row["predict_move_any"]) << fen;
  if (IsKnightPromotion(*any.chosen)) return;
  EXPECT_EQ(any.chosen->move.has_value(), row["any_is_legal"].get<bool>()) << fen;
}

TEST(GoldenDecoderPlayTest, PredictsTheSameMovesAndValues) {
  int rows = 0;
  int legal = 0;
  int any = 0;
  for (const Json& row : Rows("predict.jsonl")) {
    if (row["kind"] != "single") continue;
    ++rows;
    if (Safe(row, "margin_legal") && ExpectLegalPrediction(row)) ++legal;
    if (Safe(row, "margin_any")) {
      ExpectAnyPrediction(row);
      ++any;
    }
  }
  Compared(legal, rows, "legal predictions");
  Compared(any, rows, "predictions of any move");
}

TEST(GoldenDecoderPlayTest, ReadsGamesMoveByMove) {
  int compared = 0;
  int games = 0;
  for (const Json& row : Rows("predict.jsonl")) {
    if (row["kind"] == "single") continue;
    ++games;
    const auto reader = Tiny().Read(BoardAt(row["initial_fen"]));
    bool threw = false;
    for (const auto& step : row["history"]) {
      const std::string text = step[1];
      const chess::Move move = chess::ParseMove(reader->board(), text).OrThrow(text);
      try {
        reader->Play(move);
      } catch (const Error& error) {
        threw = true;
        break;
      }
      EXPECT_EQ(chess::ToFen(reader->board()), step[0].get<std::string>());
    }
    if (row["kind"] == "history_error") {
      EXPECT_TRUE(threw);
      EXPECT_EQ(reader->max_moves(), row["max_history"]);
      ++compared;
      continue;
    }
    ASSERT_FALSE(threw);
    if (!Safe(row, "min_margin_values") || !Safe(row, "margin_move")) continue;
    // Asking in between costs a pass but changes nothing.
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(ReferenceText(*reader->Predict().chosen), row["move"]);
    }
    ASSERT_EQ(reader->values().size(), row["wl_d"].size());
    for (size_t i = 0; i < reader->values().size(); ++i) {
      EXPECT_NEAR(reader->values()[i].wl, row["wl_d"][i][0].get<double>(), kTolerance);
      EXPECT_NEAR(reader->values()[i].d, row["wl_d"][i][1].get<double>(), kTolerance);
    }
    ++compared;
  }
  Compared(compared, games, "games");
}

void ExpectEntries(const std::vector<Thought::Entry>& entries, const Json& expected) {
  ASSERT_EQ(entries.size(), expected.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].position, expected[i][0].get<int>());
    EXPECT_NEAR(entries[i].value, expected[i][1].get<double>(), kTolerance);
  }
}

void ExpectThought(const Thought& thought, const Json& row) {
  SCOPED_TRACE(row["fen"].get<std::string>());
  EXPECT_EQ(thought.tokens, row["token_ids"].get<std::vector<TokenId>>());
  EXPECT_EQ(thought.blocks, row["block_ids"].get<std::vector<int>>());
  ExpectEntries(thought.wl_entries, row["wl_entries"]);
  ExpectEntries(thought.d_entries, row["d_entries"]);
  EXPECT_EQ(thought.end == ThoughtEnd::kFinished, row["ended_thinking"].get<bool>());
  int boards = 0;
  for (const Variation& variation : thought.variations) {
    for (const ThoughtNode& node : variation.nodes) boards += node.board.empty() ? 0 : 1;
  }
  EXPECT_EQ(boards, row["boards_generated"].get<int>());
  ASSERT_TRUE(thought.move.has_value());
  if (row["final_move"].is_null()) {
    EXPECT_FALSE(thought.final_move.has_value());
    EXPECT_TRUE(thought.by_instinct);
    EXPECT_EQ(thought.move, thought.instinct.front().move);
  } else {
    EXPECT_EQ(TokenName(thought.final_move->token), row["final_move_token"].get<std::string>());
    if (!IsKnightPromotion(*thought.final_move)) {
      EXPECT_EQ(thought.final_move->move.has_value(), row["final_move_legal"].get<bool>());
    }
    EXPECT_FALSE(thought.by_instinct);
  }
}

TEST(GoldenDecoderPlayTest, ThinksTheSameTokens) {
  int compared = 0;
  const std::vector<Json> rows = Rows("think.jsonl");
  for (const Json& row : rows) {
    if (!Safe(row, "min_margin")) continue;
    ASSERT_EQ(row["temperature"], 0.0);
    for (bool draft : {true, false}) {
      ExpectThought(
          Tiny().Think(BoardAt(row["fen"]), {.max_seq_len = row["max_seq_len"], .draft = draft}),
          row);
    }
    ++compared;
  }
  Compared(compared, std::ssize(rows), "thoughts");
}

TEST(GoldenDecoderPlayTest, ThinksTheSameManyAtOnce) {
  int compared = 0;
  const std::vector<Json> all = Rows("think.jsonl");
  std::map<int, std::vector<Json>> by_length;
  for (const Json& row : all) by_length[row["max_seq_len"]].push_back(row);
  for (const auto& [length, rows] : by_length) {
    std::vector<chess::Board> roots;
    for (const Json& row : rows) roots.push_back(BoardAt(row["fen"]));
    const std::vector<Thought> thoughts = Tiny().ThinkAll(roots, {.max_seq_len = length});
    ASSERT_EQ(thoughts.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!Safe(rows[i], "min_margin")) continue;
      ExpectThought(thoughts[i], rows[i]);
      ++compared;
    }
  }
  Compared(compared, std::ssize(all), "thoughts");
}

TEST(GoldenDecoderPlayTest, LoadsSafetensorsAlike) {
  const testing::TempFolder folder;
  const std::string path = folder.File("tiny.safetensors");
  io::ConvertPtToSafetensors(testing::GoldenPath("decoder/tiny.pt"), path);
  const auto player = Player::Load({.path = path, .threads = 1});
  const std::vector<Json> rows = Rows("think.jsonl");
  const chess::Board board = BoardAt(rows.front()["fen"]);
  EXPECT_EQ(player->Think(board).tokens, Tiny().Think(board).tokens);
}

}  // namespace
}  // namespace kibitz::decoder
