// lc0's training data: recorded games come out exactly, canonical rows too, and damage is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/pgn.h"
#include "io/bytes/gunzip.h"
#include "io/tables/jsonl.h"
#include "io/tables/parquet.h"
#include "oracles/lc0/policy_index.h"
#include "oracles/lc0/training_row.h"
#include "oracles/records/lc0_records.h"
#include "tests/support/corruption.h"
#include "tests/support/test_data.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::Color;
using chess::Move;
using chess::Square;
using testing::DataPath;
using testing::ReadWhole;
using testing::SourcePath;
using testing::TempFolder;

std::string ExampleGame() { return SourcePath("examples/lc0/game.gz"); }

// Calls use(game, result, moves as lc0 printed them) for each recorded game.
template <typename Use>
int ForEachRecordedGame(Use use) {
  io::JsonLines lines(DataPath("lc0-training/games.jsonl"));
  int games = 0;
  while (const io::JsonLine* line = lines.Next()) {
    const std::string file(line->root()["file"].String());
    std::vector<std::string> moves;
    for (io::JsonValue move : line->root()["moves"].Items()) moves.emplace_back(move.String());
    SkipCounter skipped;
    const Lc0Game game =
        ReadLc0Game(ReadWhole(DataPath("lc0-training/" + file)), file, {}, skipped);
    EXPECT_TRUE(skipped.empty()) << file << ": " << skipped.Text();
    use(game, std::string(line->root()["result"].String()), moves);
    ++games;
  }
  return games;
}

TEST(Lc0TrainingTest, RecordedGamesComeOutExactly) {
  SKIP_WITHOUT(DataPath("lc0-training/games.jsonl"));
  int positions = 0;
  int castlings = 0;
  int en_passants = 0;
  const int games = ForEachRecordedGame(
      [&](const Lc0Game& game, const std::string& result, const std::vector<std::string>& moves) {
        ASSERT_EQ(game.plies.size(), moves.size()) << game.id;
        Board board;
        for (size_t i = 0; i < moves.size(); ++i) {
          const Lc0Ply& ply = game.plies[i];
          EXPECT_EQ(ToFen(ply.board), ToFen(board)) << game.id << ", row " << i;
          EXPECT_EQ(ply.follows, i > 0);
          EXPECT_EQ(ToText(board, ply.played, chess::MoveStyle::kUciRook), moves[i]);
          float sum = 0;
          bool best_visited = false;
          for (const Lc0Visit& visit : ply.visited) {
            sum += visit.share;
            best_visited = best_visited || visit.move == ply.best;
          }
          EXPECT_NEAR(sum, 1, 1e-4);
          EXPECT_TRUE(best_visited);
          const double white =
              (board.side_to_move() == Color::kWhite ? 1 : -1) * (ply.result.win - ply.result.loss);
          EXPECT_EQ(white, result == "whitewon" ? 1 : result == "blackwon" ? -1 : 0);
          if (ply.played == ply.best) {
            EXPECT_NEAR(ply.played_wdl.win, ply.best_wdl.win, 1e-5);
          }
          castlings += ply.played.kind() == Move::Kind::kCastle;
          en_passants += board.en_passant().has_value();
          board = board.After(ply.played);
          ++positions;
        }
      });
  std::printf("[ compared ] %d games, %d positions, %d castlings, %d with en passant\n", games,
              positions, castlings, en_passants);
  EXPECT_GT(games, 0);
  EXPECT_GT(castlings, 0);
}

// As lc0 writes formats 3 to 5: the board from the side to move, turned by the flags in this order.
int Turned(int square, int flags) {
  int file = square % 8;
  int rank = square / 8;
  if ((flags & io::kLc0Flip) != 0) file = 7 - file;
  if ((flags & io::kLc0Mirror) != 0) rank = 7 - rank;
  if ((flags & io::kLc0Transpose) != 0) std::swap(file, rank), file = 7 - file, rank = 7 - rank;
  return rank * 8 + file;
}

io::Lc0Row CanonicalRow(const Board& board, Move played, int flags, uint32_t input_format = 3) {
  io::Lc0Row row;
  std::memset(&row, 0, sizeof(row));
  row.version = 6;
  row.input_format = input_format;
  const bool black = board.side_to_move() == Color::kBlack;
  const int side = black ? 56 : 0;
  const auto turned = [&](Square square) { return Turned(square.index() ^ side, flags); };
  for (int i = 0; i < 64; ++i) {
    const chess::Piece piece = board.PieceAt(Square(i));
    if (piece.empty()) continue;
    const int at = turned(Square(i));
    const size_t plane =
        static_cast<size_t>(piece.type()) - 1 + (piece.color() == board.side_to_move() ? 0U : 6U);
    row.planes[plane] |= uint64_t{1} << (at / 8 * 8 + 7 - at % 8);
  }
  const auto right = [&](bool us, chess::CastlingSide wing) {
    const auto rook = board.CastlingRook(us ? board.side_to_move() : ~board.side_to_move(), wing);
    return static_cast<uint8_t>(rook ? 1 << rook->file() : 0);
  };
  row.castling_us_queen = right(true, chess::CastlingSide::kQueen);
  row.castling_us_king = right(true, chess::CastlingSide::kKing);
  row.castling_them_queen = right(false, chess::CastlingSide::kQueen);
  row.castling_them_king = right(false, chess::CastlingSide::kKing);
  if (const auto passed = board.passed_square()) {
    row.side_or_en_passant = static_cast<uint8_t>(1 << turned(*passed) % 8);
  }
  row.rule50 = static_cast<uint8_t>(board.halfmove_clock());
  row.flags = static_cast<uint8_t>(flags | (black ? io::kLc0Black : 0));
  std::ranges::fill(row.shares, -1.0F);
  const Move seen(Square(turned(played.from())), Square(turned(played.to())), played.kind());
  row.played = row.best = static_cast<uint16_t>(Lc0MoveIndex(Color::kWhite, seen));
  row.shares[row.played] = 1;
  row.result_d = 1;
  return row;
}

// Format 2 has castling as the canonical formats, the side to move in a byte of its own, and en
// passant only by the board before.
io::Lc0Row CastlingRookRow(const Board& before, const Board& board, Move played) {
  io::Lc0Row row = CanonicalRow(board, played, 0, 2);
  const bool black = board.side_to_move() == Color::kBlack;
  row.flags = 0;
  row.side_or_en_passant = black ? 1 : 0;
  for (int i = 0; i < 64; ++i) {
    const chess::Piece piece = before.PieceAt(Square(i));
    if (piece != chess::Piece(~board.side_to_move(), chess::PieceType::kPawn)) continue;
    const int at = i ^ (black ? 56 : 0);
    row.planes[13 + 6] |= uint64_t{1} << (at / 8 * 8 + 7 - at % 8);
  }
  return row;
}

// Random games, and endings without pawns, where a board may be turned all ways.
TEST(Lc0TrainingTest, RowsOfFormats2To5ComeOutExactly) {
  Rng rng({.seed = 1, .epoch = 0, .sample = 0, .purpose = Purpose("lc0 rows")});
  int turns = 0;
  std::array<int, 4> en_passants{};
  for (int game = 0; game < 120; ++game) {
    Board board;
    Board before;
    const uint32_t format = 2 + static_cast<uint32_t>(game / 3 % 4);
    if (game % 3 == 1) board = *chess::ParseFen("8/2k5/8/3q4/8/6R1/1N3K2/8 w - - 3 40");
    if (game % 3 == 2) {
      board = *chess::ParseFen("nrbkqbrn/pppppppp/8/8/8/8/PPPPPPPP/NRBKQBRN w KQkq - 0 1",
                               {.chess960 = true});
    }
    before = board;
    for (int ply = 0; ply < 100; ++ply) {
      const chess::MoveList moves = chess::LegalMoves(board);
      if (moves.empty() || board.halfmove_clock() > 200) break;
      const Move move = moves[rng.Below(moves.size())];
      const bool pawns = board.pawns() != 0;
      const uint64_t ways = board.castling_rooks() != 0 ? 1 : pawns ? 2 : 8;
      const int flags = static_cast<int>(rng.Below(ways));
      const io::Lc0Row row = format == 2 ? CastlingRookRow(before, board, move)
                                         : CanonicalRow(board, move, flags, format);
      const auto read = DecodeLc0Row(row, board.fullmove_number());
      ASSERT_TRUE(read) << ToFen(board) << ": " << read.reason();
      ASSERT_EQ(ToFen(read->board), ToFen(board)) << flags;
      ASSERT_EQ(read->board.key(), board.key());
      ASSERT_EQ(read->played, move) << ToFen(board);
      turns += format != 2 && flags != 0;
      en_passants[format - 2] += board.en_passant().has_value();
      before = board;
      board = board.After(move);
    }
  }
  EXPECT_GT(turns, 100);
  for (const int count : en_passants) EXPECT_GT(count, 0);
}

TEST(Lc0TrainingTest, OtherVersionsAndFormatsAreRefusedByName) {
  io::Lc0Row row = CanonicalRow(Board(), chess::LegalMoves(Board())[0], 0);
  const auto reason = [&] { return DecodeLc0Row(row, 1).reason(); };
  EXPECT_EQ(reason(), "");
  row.input_format = 132;
  EXPECT_NE(reason().find("132 (112 planes, canonical, hectoplies, armageddon)"),
            std::string::npos);
  row.input_format = 77;
  EXPECT_EQ(reason(), "unknown input format");
  row.version = 5;
  EXPECT_EQ(reason(), "rows of version 5, expected 6");
  row.version = 6;
  row.input_format = 3;
  row.flags = io::kLc0Deleted;
  EXPECT_NE(reason().find("deletion"), std::string::npos);
  row.flags = 0;
  row.root_q = std::nanf("");
  EXPECT_NE(reason().find("probabilities"), std::string::npos);
  row.root_q = 0;
  row.played = 60000;
  EXPECT_EQ(reason(), "illegal move played");
}

// Every byte: cut there, and changed there. Each ends in whole rows and counted reasons.
TEST(Lc0TrainingTest, DamagedFilesEndInACountedReason) {
  const std::string bytes = ReadWhole(ExampleGame());
  SkipCounter none;
  const Lc0Game whole = ReadLc0Game(bytes, "game.gz", {}, none);
  ASSERT_TRUE(none.empty());
  ASSERT_GT(whole.plies.size(), 10U);
  int unnoticed = 0;
  for (size_t at = 0; at < bytes.size(); ++at) {
    SkipCounter cut;
    const Lc0Game some = ReadLc0Game(bytes.substr(0, at), "game.gz", {}, cut);
    EXPECT_TRUE(at == 0 || !cut.empty()) << "cut at byte " << at;
    EXPECT_LE(some.plies.size(), whole.plies.size());
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    SkipCounter damage;
    ReadLc0Game(changed, "game.gz", {}, damage);
    unnoticed += damage.empty();
  }
  // The header's time, name and system are not protected by a checksum.
  EXPECT_LT(unnoticed, 40);
}

// The same unpacked: rows of damaged numbers are read or have a reason.
TEST(Lc0TrainingTest, DamagedRowsEndInACountedReason) {
  std::string content;
  ASSERT_TRUE(io::Gunzip(ReadWhole(ExampleGame()), 1 << 24, content));
  content.resize(2 * sizeof(io::Lc0Row));
  std::set<std::string> reasons;
  for (size_t at = 0; at < sizeof(io::Lc0Row); ++at) {
    std::string changed = content;
    for (const int bits : {0x01, 0x80, 0xff}) {
      changed[sizeof(io::Lc0Row) + at] = static_cast<char>(content[sizeof(io::Lc0Row) + at] ^ bits);
      SkipCounter skipped;
      const Lc0Game game = ReadLc0Game(changed, "game", {}, skipped);
      EXPECT_EQ(game.rows, 2U);
      for (const auto& [reason, entry] : skipped.entries()) reasons.insert(reason);
    }
  }
  EXPECT_GE(reasons.size(), 8U);
  EXPECT_LE(reasons.size(), 40U);
}

TEST(Lc0TrainingTest, RecordsAreTheSameForAnyThreadsAndFromArchives) {
  TempFolder folder;
  std::vector<std::string> words = {"tar", "-cf", folder.File("all.tar"), "-C"};
  words.push_back(SourcePath("examples/lc0"));
  words.emplace_back("game.gz");
  ASSERT_EQ(testing::RunCommand(words).code, 0);
  std::vector<std::string> texts;
  for (const int threads : {1, 3}) {
    SkipCounter skipped;
    Progress progress("rows", 0, {.mode = Progress::Options::Mode::kSilent});
    const Lc0Records made = MakeLc0Records({folder.File("all.tar"), ExampleGame(), ExampleGame()},
                                           {.games = folder.File("games.parquet"),
                                            .policy = folder.File("policy.parquet"),
                                            .pgn = folder.File("games.pgn"),
                                            .threads = threads},
                                           skipped, progress);
    EXPECT_EQ(made.files, 3);
    EXPECT_EQ(made.games, 3);
    EXPECT_TRUE(skipped.empty());
    texts.push_back(ReadWhole(folder.File("games.parquet")) +
                    ReadWhole(folder.File("policy.parquet")) + ReadWhole(folder.File("games.pgn")));
  }
  EXPECT_TRUE(texts[0] == texts[1]);
  std::set<std::string> ids;
  const io::ParquetReader reader({folder.File("games.parquet")});
  io::ParquetScan scan = reader.Scan({{"game_id", io::ColumnType::kText}});
  while (const io::Chunk* chunk = scan.Next()) {
    for (size_t i = 0; i < chunk->rows; ++i) ids.emplace(chunk->columns[0].texts[i]);
  }
  EXPECT_EQ(ids.size(), 3U);
}

// The scores of policy rows, as labels, are the visit shares again.
TEST(Lc0TrainingTest, PolicyRowsKeepTheShares) {
  TempFolder folder;
  SkipCounter skipped;
  Progress progress("rows", 0, {.mode = Progress::Options::Mode::kSilent});
  MakeLc0Records({ExampleGame()},
                 {.games = folder.File("games.parquet"), .policy = folder.File("policy.parquet")},
                 skipped, progress);
  const Lc0Game game = ReadLc0Game(ReadWhole(ExampleGame()), "game", {}, skipped);
  const io::ParquetReader reader({folder.File("policy.parquet")});
  io::ParquetScan scan = reader.Scan({{"cp", io::ColumnType::kInt64}});
  std::vector<double> scores;
  while (const io::Chunk* chunk = scan.Next()) {
    for (size_t i = 0; i < chunk->rows; ++i) {
      scores.push_back(static_cast<double>(chunk->columns[0].ints[i]));
    }
  }
  size_t next = 0;
  for (const Lc0Ply& ply : game.plies) {
    const double sign = ply.board.side_to_move() == Color::kWhite ? 1 : -1;
    double sum = 0;
    for (size_t i = 0; i < ply.visited.size(); ++i) {
      sum += std::exp(sign * scores.at(next + i) / kVisitTemperature);
    }
    for (const Lc0Visit& visit : ply.visited) {
      const double share = std::exp(sign * scores[next++] / kVisitTemperature) / sum;
      EXPECT_NEAR(share, visit.share, 5e-4);
    }
  }
  EXPECT_EQ(next, scores.size());
}

}  // namespace
}  // namespace kibitz::oracles
