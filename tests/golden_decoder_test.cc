// What the public reference implementation of the decoder computes, reproduced exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using chess::MoveStyle;

TEST(GoldenDecoderTest, LegalMoves) {
  std::ifstream in(testing::GoldenPath("decoder/legal.jsonl"));
  ASSERT_TRUE(in.good());
  int rows = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const auto row = nlohmann::json::parse(line);
    const std::string fen = row["fen"];
    // The reference drops castling rights that the pieces do not support.
    const auto board = chess::ParseFen(fen, {.drop_wrong_castling = true}).OrThrow(fen);
    std::vector<std::pair<std::string, std::string>> moves;
    for (chess::Move move : chess::LegalMoves(board)) {
      moves.emplace_back(ToText(board, move, MoveStyle::kUci),
                         ToText(board, move, MoveStyle::kModel));
    }
    std::sort(moves.begin(), moves.end());
    nlohmann::json uci = nlohmann::json::array();
    nlohmann::json model = nlohmann::json::array();
    for (const auto& [text, model_text] : moves) {
      uci.push_back(text);
      model.push_back(model_text);
    }
    EXPECT_EQ(uci, row["legal_uci"]) << fen;
    EXPECT_EQ(model, row["legal_model"]) << fen;
    EXPECT_EQ(board.InCheck(), row["in_check"].get<bool>()) << fen;
    EXPECT_EQ(chess::IsCheckmate(board), row["is_checkmate"].get<bool>()) << fen;
    EXPECT_EQ(chess::IsStalemate(board), row["is_stalemate"].get<bool>()) << fen;
  }
  EXPECT_GT(rows, 0);
}

}  // namespace
}  // namespace kibitz
