// The decoder's data side beside the public reference: vocabulary, tokens, sequences and targets.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "io/tables/npy.h"
#include "students/decoder/data/batch.h"
#include "students/decoder/data/records.h"
#include "students/decoder/data/tokens.h"
#include "tests/support/test_data.h"

namespace kibitz::decoder {
namespace {

using kibitz::testing::GoldenPath;
using nlohmann::json;

std::vector<json> Lines(const std::string& name) {
  std::ifstream in(GoldenPath(name));
  EXPECT_TRUE(in.good()) << name;
  std::vector<json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(json::parse(line));
  EXPECT_FALSE(rows.empty()) << name;
  return rows;
}

json Parsed(const std::string& name) { return json::parse(std::ifstream(GoldenPath(name))); }

std::vector<std::string> Words(const std::string& name) {
  std::ifstream in(GoldenPath(name));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

TEST(GoldenDecoderTest, Vocabulary) {
  const std::vector<std::string> names = Words("decoder/vocab.txt");
  ASSERT_EQ(names.size(), kVocabularySize);
  for (TokenId token = 0; token < kVocabularySize; ++token) {
    EXPECT_EQ(TokenName(token), names[token]);
    EXPECT_EQ(FindToken(names[token]), token);
  }
  const std::vector<std::string> board_names = Words("decoder/board_vocab.txt");
  ASSERT_EQ(board_names.size(), kBoardVocabularySize);
  for (int i = 0; i < kBoardVocabularySize; ++i) {
    EXPECT_EQ(TokenName(BoardToken(i)), board_names[static_cast<size_t>(i)]);
  }
}

TEST(GoldenDecoderTest, VocabularyMaps) {
  const json maps = Parsed("decoder/vocab_map.json");
  EXPECT_EQ(maps["vocab_size"], kVocabularySize);
  EXPECT_EQ(maps["board_vocab_size"], kBoardVocabularySize);
  EXPECT_EQ(maps["move_vocab_size"], kMoveVocabularySize);
  for (int i = 0; i < kBoardVocabularySize; ++i) {
    EXPECT_EQ(maps["board_idx_to_full_idx"][static_cast<size_t>(i)], BoardToken(i));
  }
  size_t in_board = 0;
  for (TokenId token = 0; token < kVocabularySize; ++token) {
    const auto known = maps["full_idx_to_board_idx"].find(std::to_string(token));
    const bool is_board = known != maps["full_idx_to_board_idx"].end();
    EXPECT_EQ(BoardIndex(token), is_board ? known->get<int>() : -1) << token;
    in_board += is_board ? 1 : 0;
  }
  EXPECT_EQ(in_board, kBoardVocabularySize);
}

TEST(GoldenDecoderTest, Tokens) {
  for (const json& row : Lines("decoder/tokenize.jsonl")) {
    const std::string fen = row["fen"];
    const chess::Board board = chess::ParseFen(fen, {.drop_wrong_castling = true}).OrThrow(fen);
    const BoardTokens tokens = BoardTokensOf(board);
    EXPECT_EQ(json(tokens), row["ids"]) << fen;
    const Result<chess::Board> back = BoardOf(tokens);
    ASSERT_TRUE(back) << fen << ": " << back.reason();
    EXPECT_TRUE(SameTokens(*back, board)) << fen;
  }
}

TEST(GoldenDecoderTest, LegalMoveTokens) {
  for (const json& row : Lines("decoder/legal.jsonl")) {
    const std::string fen = row["fen"];
    const chess::Board board = chess::ParseFen(fen, {.drop_wrong_castling = true}).OrThrow(fen);
    for (size_t i = 0; i < row["legal_uci"].size(); ++i) {
      const std::string uci = row["legal_uci"][i];
      const chess::Move move = chess::ParseMove(board, uci).OrThrow(fen);
      EXPECT_EQ(TokenOf(move), row["legal_model_idx"][i].get<int>()) << fen << " " << uci;
      const Result<chess::Move> back = MoveOf(board, TokenOf(move));
      ASSERT_TRUE(back) << back.reason();
      EXPECT_EQ(*back, move) << fen << " " << uci;
    }
    // No other token is a legal move.
    size_t legal = 0;
    for (TokenId token = 0; token < kMoveVocabularySize; ++token)
      legal += MoveOf(board, token) ? 1 : 0;
    EXPECT_EQ(legal, row["legal_uci"].size()) << fen;
  }
}

std::optional<double> Number(const json& row, const char* key) {
  if (!row.contains(key) || row[key].is_null()) return std::nullopt;
  return row[key].get<double>();
}

WdlCells WdlOf(const json& row) {
  return {Number(row, "win"), Number(row, "draw"), Number(row, "loss")};
}

SearchRow SearchOf(const json& row) {
  const std::string fen = row["fen"];
  const std::string variations = row["variations"].is_string()
                                     ? row["variations"].get<std::string>()
                                     : row["variations"].dump();
  const std::string action = row["mcts_action"];
  SkipCounter skipped;
  auto read = SearchReader("golden").Read({fen, variations, action, WdlOf(row)}, 0, skipped);
  EXPECT_TRUE(read.has_value()) << skipped.Text();
  return read.value_or(SearchRow{});
}

// Choices of a golden row; "identity" and "max" are words of the kit.
ThinkingChoices ChoicesOf(const json& options, const SearchRow& row) {
  const int count =
      std::min(options["max_variations"].get<int>(), static_cast<int>(row.variations.size()));
  ThinkingChoices choices;
  if (options["ranking"].is_array()) choices.ranking = options["ranking"].get<std::vector<int>>();
  if (options["ranking"] == "identity") {
    for (int i = 1; i <= count; ++i) choices.ranking.push_back(i);
  }
  if (options["depths"].is_array()) choices.depths = options["depths"].get<std::vector<int>>();
  if (options["depths"] == "max") {
    choices.depths.assign(static_cast<size_t>(count), options["max_depth"].get<int>());
  }
  return choices;
}

ThinkingOptions OptionsOf(const json& options) {
  return {.max_seq_len = options["max_seq_len"],
          .max_variations = options["max_variations"],
          .max_depth = options["max_depth"],
          .terminal_leaves = false};
}

ThinkingResult ThinkAs(const json& golden) {
  const SearchRow row = SearchOf(golden["row"]);
  Rng rng({.seed = 1});
  return Think(row, OptionsOf(golden["settings"]), rng, ChoicesOf(golden["settings"], row));
}

std::vector<Ply> GameOf(const json& rows) {
  std::vector<Ply> game;
  PlyReader reader("golden");
  for (const json& row : rows) {
    const std::string fen = row["fen"];
    const std::string played = row["played_move"];
    const std::string best = row["best_move"];
    SkipCounter skipped;
    auto ply = reader.Read({fen, played, best, WdlOf(row), {}, {}}, 0, skipped);
    EXPECT_TRUE(ply.has_value()) << skipped.Text();
    game.push_back(ply.value_or(Ply{}));
  }
  return game;
}

Sequence PlayAs(const json& golden) {
  const std::vector<Ply> game = GameOf(golden["rows"]);
  const json& options = golden["settings"];
  return GameSequence(
      game, GameOptions{.max_seq_len = options["max_seq_len"]},
      GameChoices{.start = options["slice_start_choice"],
                  .board_skipped = options["board_skipped"].get<std::vector<bool>>()});
}

std::vector<int> Positions(const std::vector<uint8_t>& mask) {
  std::vector<int> positions;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) positions.push_back(static_cast<int>(i));
  }
  return positions;
}

// The kit keeps natural targets at positions that no mask lets through; compare where scored.
void ExpectSame(const Sequence& sequence, const json& golden) {
  SCOPED_TRACE(golden["name"].get<std::string>());
  EXPECT_EQ(sequence.size(), golden["seq_len"]);
  EXPECT_EQ(json(sequence.ids), golden["ids"]);
  const PaddedBatch dense = Pad(Pack(std::span(&sequence, 1)), sequence.size());
  EXPECT_EQ(json(Positions(dense.board_mask)), golden["board_mask"]);
  for (int position : Positions(dense.board_mask)) {
    const auto i = static_cast<size_t>(position);
    EXPECT_EQ(dense.board_target_ids[i], golden["board_target_ids"][i]) << "position " << i;
  }
  EXPECT_EQ(json(dense.move_target_ids), golden["move_target_ids"]);
  EXPECT_EQ(json(Positions(dense.move_mask)), golden["move_mask"]);
  EXPECT_EQ(json(Positions(dense.wl_positions)), golden["wl_positions"]);
  EXPECT_EQ(json(Positions(dense.d_positions)), golden["d_positions"]);
  EXPECT_EQ(json(dense.block_id), golden["block_id"]);
  if (golden.contains("thinking_move_mask")) {
    EXPECT_EQ(json(Positions(dense.thinking_move_mask)), golden["thinking_move_mask"]);
    EXPECT_EQ(json(Positions(dense.continue_var_mask)), golden["continue_var_mask"]);
    EXPECT_EQ(json(Positions(dense.new_variation_mask)), golden["new_variation_mask"]);
    EXPECT_EQ(sequence.first_is_not_best, golden["first_is_not_best"]);
  }
  ASSERT_EQ(sequence.values.size(), golden["wl_targets_at_wl_positions"].size());
  for (size_t i = 0; i < sequence.values.size(); ++i) {
    const auto wl = static_cast<size_t>(sequence.values[i].wl_position);
    EXPECT_EQ(dense.wl_targets[wl], golden["wl_targets_at_wl_positions"][i].get<float>());
    EXPECT_EQ(dense.d_targets[wl + 1], golden["d_targets_at_d_positions"][i].get<float>());
    EXPECT_EQ(sequence.values[i].valid, golden["wdl_valid_at_wl_positions"][i].get<bool>());
  }
}

TEST(GoldenDecoderTest, ThinkingSequences) {
  for (const json& golden : Lines("decoder/finetune/variations.jsonl")) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const ThinkingResult result = ThinkAs(golden);
    const bool skipped = golden.contains("skipped") && golden["skipped"].get<bool>();
    ASSERT_EQ(result.sequence.has_value(), !skipped);
    ASSERT_EQ(result.attempts.size(), golden["attempts"].size());
    for (size_t i = 0; i < result.attempts.size(); ++i) {
      const ThinkingAttempt& ours = result.attempts[i];
      const json& theirs = golden["attempts"][i];
      EXPECT_EQ(ours.max_variations, theirs["max_variations"]);
      EXPECT_EQ(ours.max_depth, theirs["max_depth"]);
      EXPECT_EQ(ours.length, theirs["len"]);
      EXPECT_EQ(json(ours.ranking), theirs["ranking"]);
      EXPECT_EQ(json(ours.depths), theirs["depths"]);
    }
    if (!skipped) ExpectSame(*result.sequence, golden);
  }
}

TEST(GoldenDecoderTest, GameSequences) {
  for (const json& golden : Lines("decoder/pretrain/games.jsonl"))
    ExpectSame(PlayAs(golden), golden);
}

TEST(GoldenDecoderTest, Reordering) {
  for (const json& golden : Lines("decoder/finetune/reorder.jsonl")) {
    const Wdl wdl{golden["win"], golden["draw"], golden["loss"]};
    EXPECT_NEAR(ResultVariance(wdl), golden["wdl_var"].get<double>(), 1e-12);
    const double tau = Temperature(wdl, golden["tau_base"], golden["tau_alpha"]);
    EXPECT_NEAR(tau, golden["tau"].get<double>(), 1e-12);
    const auto fractions = golden["visit_fractions"].get<std::vector<double>>();
    std::vector<double> noise(fractions.size());  // A single candidate has none.
    if (golden["gumbel_noise"].is_array())
      noise = golden["gumbel_noise"].get<std::vector<double>>();
    EXPECT_EQ(json(OrderByUtility(fractions, tau, noise)), golden["ranking"]);
  }
}

// The dense tensors, as a trainer of the reference gets them.
template <typename T>
void ExpectTensor(const std::string& folder, const std::string& name, const std::vector<T>& ours,
                  const std::vector<uint8_t>* where = nullptr) {
  SCOPED_TRACE(name);
  const io::NpyFile file = io::NpyFile::Open(GoldenPath(folder + "/" + name + ".npy"));
  ASSERT_EQ(file.bytes().size(), ours.size() * sizeof(T));
  std::vector<T> golden(ours.size());
  std::memcpy(golden.data(), file.bytes().data(), file.bytes().size());
  for (size_t i = 0; i < ours.size(); ++i) {
    if (where != nullptr && (*where)[i] == 0) continue;
    ASSERT_EQ(ours[i], golden[i]) << "element " << i;
  }
}

std::vector<json> RowsOfTensors(const std::string& folder, const std::string& lines) {
  std::vector<json> chosen;
  const std::vector<json> rows = Lines(lines);
  for (const json& name : Parsed(folder + "/rows.json")) {
    for (const json& row : rows) {
      if (row["name"] == name) chosen.push_back(row);
    }
  }
  EXPECT_FALSE(chosen.empty());
  return chosen;
}

void ExpectTensors(const std::string& folder, const PaddedBatch& dense) {
  ExpectTensor(folder, "input_ids", dense.input_ids);
  ExpectTensor(folder, "board_target_ids", dense.board_target_ids, &dense.board_mask);
  ExpectTensor(folder, "move_target_ids", dense.move_target_ids);
  ExpectTensor(folder, "move_mask", dense.move_mask);
  ExpectTensor(folder, "wl_positions", dense.wl_positions);
  ExpectTensor(folder, "d_positions", dense.d_positions);
  ExpectTensor(folder, "block_id", dense.block_id);
}

TEST(GoldenDecoderTest, ThinkingTensors) {
  const std::string folder = "decoder/finetune/tensors";
  std::vector<Sequence> sequences;
  int length = 0;
  for (const json& row : RowsOfTensors(folder, "decoder/finetune/variations.jsonl")) {
    length = row["settings"]["max_seq_len"];
    sequences.push_back(ThinkAs(row).sequence.value());
  }
  const PaddedBatch dense = Pad(Pack(sequences), length);
  ExpectTensors(folder, dense);
  ExpectTensor(folder, "thinking_move_mask", dense.thinking_move_mask);
  ExpectTensor(folder, "continue_var_mask", dense.continue_var_mask);
  ExpectTensor(folder, "new_variation_mask", dense.new_variation_mask);
  ExpectTensor(folder, "first_is_not_best", dense.first_is_not_best);
  ExpectTensor(folder, "wl_targets_all_moves", dense.wl_targets);
  ExpectTensor(folder, "d_targets_all_moves", dense.d_targets);
  ExpectTensor(folder, "wdl_valid_all_moves", dense.wdl_valid);
}

TEST(GoldenDecoderTest, GameTensors) {
  const std::string folder = "decoder/pretrain/tensors";
  std::vector<Sequence> sequences;
  int length = 0;
  for (const json& row : RowsOfTensors(folder, "decoder/pretrain/games.jsonl")) {
    length = row["settings"]["max_seq_len"];
    sequences.push_back(PlayAs(row));
  }
  const PaddedBatch dense = Pad(Pack(sequences), length);
  ExpectTensors(folder, dense);
  ExpectTensor(folder, "wl_targets", dense.wl_targets);
  ExpectTensor(folder, "d_targets", dense.d_targets);
  ExpectTensor(folder, "wdl_valid", dense.wdl_valid);
}

}  // namespace
}  // namespace kibitz::decoder
