#include "students/decoder/data/mirror.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "games/chess/movegen.h"
#include "students/decoder/data/records.h"
#include "students/decoder/data/tokens.h"
#include "tests/support/decoder_records.h"

namespace kibitz::decoder {
namespace {

std::vector<SearchRow> RowsToMirror(uint64_t count) {
  std::vector<SearchRow> rows;
  SkipCounter skipped;
  SearchReader reader("made");
  kibitz::testing::MakeSearches({.count = count, .seed = 8}, [&](const auto& record) {
    rows.push_back(*reader.Read({.fen = record.fen,
                                 .variations = record.variations,
                                 .mcts_action = record.mcts_action,
                                 .wdl = {record.win, record.draw, record.loss}},
                                0, skipped));
  });
  return rows;
}

// Every line of the row can be played on its boards.
void ExpectLegal(const SearchRow& row) {
  for (const SearchVariation& variation : row.variations) {
    chess::Board board = row.root;
    TokenId move = variation.root_move;
    for (const LineNode& node : row.NodesOf(variation)) {
      const auto legal = MoveOf(board, move);
      ASSERT_TRUE(legal);
      board = board.After(*legal);
      EXPECT_EQ(BoardTokensOf(board), BoardTokensOf(node.board));
      move = node.move;
    }
  }
}

bool Same(const SearchRow& a, const SearchRow& b) {
  const auto same_node = [](const LineNode& x, const LineNode& y) {
    return x.board == y.board && x.wl == y.wl && x.d == y.d && x.valid == y.valid;
  };
  const auto same_line = [](const SearchVariation& x, const SearchVariation& y) {
    return x.root_move == y.root_move && x.visit_fraction == y.visit_fraction;
  };
  return a.root == b.root && a.best_move == b.best_move &&
         std::ranges::equal(a.nodes, b.nodes, same_node) &&
         std::ranges::equal(a.variations, b.variations, same_line);
}

TEST(MirrorTest, LinesStayLegalAndTwiceIsTheRowAgain) {
  int mirrored = 0;
  for (const SearchRow& row : RowsToMirror(100)) {
    const SearchRow swapped = SwapColours(row);
    EXPECT_NE(swapped.root.side_to_move(), row.root.side_to_move());
    ExpectLegal(swapped);
    EXPECT_TRUE(Same(SwapColours(swapped), row));
    if (!CanMirrorFiles(row)) continue;
    ++mirrored;
    const SearchRow other = MirrorFiles(row);
    EXPECT_EQ(CountLegalMoves(other.root), CountLegalMoves(row.root));
    ExpectLegal(other);
    EXPECT_TRUE(Same(MirrorFiles(other), row));
  }
  EXPECT_GT(mirrored, 0);
}

}  // namespace
}  // namespace kibitz::decoder
