// The chess rules on real data: perft suites, games, openings, puzzles.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/perft.h"
#include "games/chess/pgn.h"
#include "games/chess/san.h"
#include "tests/support/perft_suite.h"
#include "tests/support/test_data.h"

namespace kibitz::chess {
namespace {

using testing::DataPath;

// The bench "perft" goes up to 10^8 nodes.
TEST(ChessDataTest, PerftOfEveryLineToAMillionNodes) {
  SKIP_WITHOUT(DataPath("perft"));
  int counted = 0;
  for (const auto& line : testing::ReadPerftSuites(DataPath("perft"))) {
    if (line.nodes > 1000000) continue;
    EXPECT_EQ(Perft(line.board, line.depth), line.nodes)
        << line.place << ": " << line.fen << " depth " << line.depth;
    ++counted;
  }
  EXPECT_GT(counted, 0);
}

TEST(ChessDataTest, GamesReplayAndWriteTheirOwnText) {
  SKIP_WITHOUT(DataPath("games"));
  int games = 0;
  for (const auto& path : testing::DataFiles("games", ".pgn")) {
    const std::string text = testing::ReadWhole(path);
    PgnReader reader(TextSource(text));
    PgnGame game;
    for (auto read = reader.Next(game); read != PgnRead::kEnd; read = reader.Next(game)) {
      ASSERT_EQ(read, PgnRead::kGame)
          << path << ":" << reader.problem().line << ": " << reader.problem().reason;
      ++games;
      Board board = game.start;
      for (Move move : game.moves) {
        // The file's own notation is standard: ours must stand in it.
        const std::string san = ToSan(board, move);
        ASSERT_NE(text.find(san), std::string::npos) << san;
        ASSERT_EQ(*ParseSan(board, san), move);
        board = board.After(move);
      }
    }
  }
  EXPECT_GT(games, 0);
}

TEST(ChessDataTest, OpeningsAreReadAndWrittenBack) {
  SKIP_WITHOUT(DataPath("openings"));
  int positions = 0;
  for (const auto& path : testing::DataFiles("openings", ".epd")) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      const std::string_view fen = Trim(line);
      const auto board = ParseFen(fen);
      ASSERT_TRUE(board) << path << ": " << fen << ": " << board.reason();
      const bool counters = SplitWords(fen).size() == 6;
      const std::string lean = ToFen(*board, {.counters = counters});
      const std::string full = ToFen(*board, {.every_passed_square = true, .counters = counters});
      EXPECT_TRUE(lean == fen || full == fen) << fen << " became " << lean;
      ++positions;
    }
  }
  EXPECT_GT(positions, 0);
}

// The header names the columns, in any order; without one they are FEN,Moves,Rating.
size_t ColumnOf(std::string_view name, std::string_view header, size_t otherwise) {
  const auto columns = Split(header, ',');
  for (size_t i = 0; i < columns.size(); ++i) {
    if (LowerCase(Trim(columns[i])) == name) return i;
  }
  return otherwise;
}

TEST(ChessDataTest, PuzzleSolutionsAreLegal) {
  SKIP_WITHOUT(DataPath("puzzles"));
  int moves = 0;
  for (const auto& path : testing::DataFiles("puzzles", ".csv")) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    const size_t fen = ColumnOf("fen", line, 0);
    const size_t solution = ColumnOf("moves", line, 1);
    while (std::getline(in, line)) {
      const auto columns = Split(line, ',');
      ASSERT_GT(columns.size(), std::max(fen, solution)) << path << ": " << line;
      Board board = ParseFen(columns[fen]).OrThrow(line);
      for (std::string_view text : SplitWords(columns[solution])) {
        const auto move = ParseMove(board, text);
        ASSERT_TRUE(move) << line << ": " << move.reason();
        EXPECT_EQ(ToText(board, *move), text);
        board = board.After(*move);
        ++moves;
      }
    }
  }
  EXPECT_GT(moves, 0);
}

}  // namespace
}  // namespace kibitz::chess
