// The shipped 2048 model has no attention. At play it must give the logits of the encoder that it
// is a warm start for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "games/twenty48/slide.h"
#include "io/weights/model_file.h"
#include "learn/weights.h"
#include "students/twenty48/data/attention_free_layout.h"
#include "students/twenty48/net/encoder.h"
#include "students/twenty48/play/games.h"
#include "tests/support/test_data.h"

namespace kibitz::twenty48 {
namespace {

using kibitz::testing::ModelPath;
using kibitz::testing::TempFolder;

TEST(WarmStart, TheShippedModelPlaysAsItsEncoder) {
  const std::string shipped = ModelPath("twenty48-small");
  ASSERT_TRUE(IsAttentionFree(io::ReadModel(shipped).weights));
  const NetConfig config = ConfigOf(io::ReadModel(shipped));
  Encoder net(config);
  InitEncoder(net, 1);
  LoadWeightsInto(net, shipped);
  const TempFolder folder;
  io::WriteModel(folder.path(), io::StateDict(learn::WeightsOf(*net), folder.path()),
                 ConfigTree(config, BinningOf(io::ReadModel(shipped))));
  ASSERT_FALSE(IsAttentionFree(io::ReadModel(folder.path()).weights));

  Player fast({.network = {.path = shipped, .threads = 1}});
  Player plain({.network = {.path = folder.path(), .threads = 1}});
  std::vector<Board> boards;
  PlayGames(fast, {.games = 8, .seed = 2}, [&](const Board& board, const Choice&) {
    if (board.packed() % 16 == 0 || boards.size() < 100) boards.push_back(board);
  });
  boards.resize(std::min<size_t>(boards.size(), 600));
  const std::vector<Choice> one = fast.Choose(boards);
  const std::vector<Choice> other = plain.Choose(boards);
  double gap = 0;
  int same = 0;
  for (size_t i = 0; i < boards.size(); ++i) {
    for (size_t move = 0; move < 4; ++move) {
      gap = std::max(gap, std::abs(double{one[i].scores[move]} - other[i].scores[move]));
    }
    if (one[i].best == other[i].best) ++same;
  }
  EXPECT_LT(gap, 1e-4);
  EXPECT_EQ(same, std::ssize(boards));
}

}  // namespace
}  // namespace kibitz::twenty48
