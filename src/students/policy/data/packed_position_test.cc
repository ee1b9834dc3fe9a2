#include "students/policy/data/packed_position.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "students/policy/data/fen_pieces.h"
#include "students/policy/data/planes.h"
#include "students/policy/data/rows.h"

namespace kibitz::policy {
namespace {

using chess::Board;

// Positions of random games.
std::vector<Board> SomeBoards(int games) {
  std::vector<Board> boards;
  for (int game = 0; game < games; ++game) {
    Rng rng({.seed = 3, .sample = static_cast<uint64_t>(game)});
    Board board;
    for (int ply = 0; ply < 120; ++ply) {
      const chess::MoveList moves = LegalMoves(board);
      if (moves.empty()) break;
      board = board.After(moves[rng.Below(moves.size())]);
      boards.push_back(board);
    }
  }
  return boards;
}

std::string FourFields(const Board& board) { return chess::ToFen(board, {.counters = false}); }

TEST(PackedPosition, HoldsWhatAFenSays) {
  for (const Board& board : SomeBoards(60)) {
    for (const std::string& fen : {FourFields(board), chess::ToFen(board)}) {
      const Result<PackedPosition> position = PackFen(fen);
      ASSERT_TRUE(position) << fen << " " << position.reason();
      ASSERT_TRUE(SamePosition(*position, Pack(board))) << fen;
      ASSERT_TRUE(IsSound(*position)) << fen;
      ASSERT_EQ(FourFields(BoardOf(*position)), FourFields(board));
      for (int square = 0; square < 64; ++square) {
        ASSERT_EQ(position->CodeAt(square), board.PieceAt(chess::Square(square)).code());
      }
    }
  }
}

TEST(PackedPosition, AnUnusableEnPassantSquareMakesNoOtherPosition) {
  const PackedPosition with = *PackFen("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3");
  const PackedPosition without = *PackFen("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -");
  EXPECT_TRUE(SamePosition(with, without));
  // Rights without their rook are none.
  EXPECT_TRUE(SamePosition(*PackFen("4k3/8/8/8/8/8/8/4K2R w KQkq -"),
                           *PackFen("4k3/8/8/8/8/8/8/4K2R w K - 3 9")));
}

// One or two letters changed, added or taken away.
std::string Spoilt(std::string fen, Rng& rng) {
  constexpr std::string_view kLetters = "pnbrqkPNBRQK12345678/ w-bKQkq0a3e6";
  for (uint64_t changes = 1 + rng.Below(2); changes > 0 && !fen.empty(); --changes) {
    const size_t at = rng.Below(fen.size());
    const char letter = kLetters[rng.Below(kLetters.size())];
    switch (rng.Below(3)) {
      case 0:
        fen[at] = letter;
        break;
      case 1:
        fen.insert(at, 1, letter);
        break;
      default:
        fen.erase(at, 1);
    }
  }
  return fen;
}

// The quick reader against the plain one: spoilt FENs are refused alike, and read alike. Only the
// side not to move being in check is left to later.
TEST(PackedPosition, QuickReaderAgreesWithThePlainOne) {
  Rng rng({.seed = 8});
  int read = 0;
  for (const Board& board : SomeBoards(40)) {
    const std::string fen =
        Spoilt(rng.Below(2) == 0 ? FourFields(board) : chess::ToFen(board), rng);
    const Result<Board> plain = chess::ParseFen(fen, {.drop_wrong_castling = true});
    const Result<PackedPosition> quick = PackFen(fen);
    if (plain) {
      ASSERT_TRUE(quick) << fen << " " << quick.reason();
      ASSERT_TRUE(SamePosition(*quick, Pack(*plain))) << fen;
      ++read;
    } else if (quick) {
      ASSERT_NE(plain.reason().find("in check"), std::string::npos) << fen << " " << plain.reason();
    }
  }
  EXPECT_GT(read, 20);
}

// Both readers say the same of a text. Returns whether it is sound.
bool ReadAlike(std::string_view fen) {
  PackedPosition fast;
  PackedPosition plain;
  const size_t length = ReadPieces(fen, fast);
  EXPECT_EQ(length, ReadPiecesPlain(fen, plain)) << fen;
  EXPECT_TRUE(length == 0 || SamePosition(fast, plain)) << fen;
  return length > 0;
}

TEST(FenPieces, VectorsAgreeWithThePlainVersion) {
  Rng rng({.seed = 9});
  int sound = 0;
  for (const Board& board : SomeBoards(400)) {
    const std::string fen = FourFields(board);
    ASSERT_TRUE(ReadAlike(fen));
    for (int i = 0; i < 4; ++i) sound += ReadAlike(Spoilt(fen, rng)) ? 1 : 0;
    ReadAlike(std::string_view(fen).substr(0, rng.Below(fen.size())));
  }
  EXPECT_GT(sound, 10'000);
}

TEST(FenPieces, OddFieldsAreReadAlike) {
  const std::string ranks = "/8/8/8/8/8/8/";
  for (const std::string& pieces :
       {std::string("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR"), "4k3" + ranks + "4K3",
        "4k3" + ranks + "P3K3", "p3k3" + ranks + "4K3", "4k3" + ranks + "8", "4k3" + ranks + "3KK3",
        "4k3" + ranks + "5K3", "4k3" + ranks + "4K2", "4k3" + ranks + "4K3/",
        "/4k3" + ranks + "4K3", "4k3" + ranks + "4K21", "4k3" + ranks + "4\xcb\x33",
        // More than 64 letters, with and without too many pieces.
        std::string("k1r1r1r1/1r1r1r1r/r1r1r1r1/1q1q1n1n/N1N1Q1Q1/1R1R1R1R/R1R1R1R1/1R1R1R1K"),
        std::string("1r1r1r1r/r1r1r1r1/1r1r1r1k/8/8/1R1R1R1R/R1R1R1R1/1R1R1R1K"),
        std::string("rrrrrrrk/rrrrrrrr/rrrrrrrr/8/8/RRRRRRRR/RRRRRRRR/RRRRRRRK"),
        std::string("4k3/pppppppp/p7/8/8/8/8/4K3"),
        // The sums of its squares overflow a byte.
        std::string("8k8K8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r8r")}) {
    for (const char* rest : {"", " ", " w - -", "\tw - -"}) ReadAlike(pieces + rest);
  }
  EXPECT_TRUE(ReadAlike("4k3" + ranks + "4K3 w - -"));
  EXPECT_TRUE(ReadAlike("1r1r1r1r/r1r1r1r1/1r1r1r1k/8/8/1R1R1R1R/R1R1R1R1/1R1R1R1K w"));
  EXPECT_FALSE(ReadAlike("4k3" + ranks + "P3K3 w - -"));
  EXPECT_FALSE(ReadAlike(""));
}

TEST(PackedPosition, HashesDiffer) {
  std::set<uint64_t> hashes;
  std::set<std::string> fens;
  for (const Board& board : SomeBoards(200)) {
    hashes.insert(HashOf(Pack(board)));
    fens.insert(FourFields(board));
  }
  EXPECT_EQ(hashes.size(), fens.size());
}

TEST(PackedPosition, DamageIsSeen) {
  const PackedPosition good = *PackFen("r3k2r/8/8/3pP3/8/8/8/R3K2R w KQkq d6");
  ASSERT_TRUE(IsSound(good));
  PackedPosition bad = good;
  bad.occupied = {};
  EXPECT_FALSE(IsSound(bad));
  EXPECT_FALSE(IsSound(PackedPosition()));
  bad = good;
  bad.en_passant = 3;
  EXPECT_FALSE(IsSound(bad));
  bad = good;
  bad.pieces[15] = 1;
  EXPECT_FALSE(IsSound(bad));
  bad = good;
  bad.state = 0xff;
  EXPECT_FALSE(IsSound(bad));
}

TEST(Planes, ThereAndBack) {
  for (const Board& board : SomeBoards(20)) {
    const PackedPosition position = Pack(board);
    const Result<PackedPosition> again = FromPlanes(PlanesOf(position), MetaOf(position));
    ASSERT_TRUE(again) << again.reason();
    ASSERT_TRUE(SamePosition(*again, position));
  }
}

TEST(Planes, NoPositionIsRefused) {
  const PackedPosition position = Pack(Board());
  PlaneBytes planes = PlanesOf(position);
  planes[64 + 8] = 1;  // A knight where a pawn stands.
  EXPECT_FALSE(FromPlanes(planes, MetaOf(position)));
  planes = PlanesOf(position);
  planes[8] = 2;
  EXPECT_FALSE(FromPlanes(planes, MetaOf(position)));
  EXPECT_FALSE(FromPlanes(PlaneBytes{}, MetaOf(position)));
  EXPECT_FALSE(FromPlanes(PlanesOf(position), MetaBytes{}));
}

// Channels against the planes, and a flipped board against the same position with colours changed.
TEST(Planes, ChannelsShowThePlanes) {
  for (const Board& board : SomeBoards(10)) {
    const PackedPosition position = Pack(board);
    const PlaneBytes planes = PlanesOf(position);
    const MetaBytes meta = MetaOf(position);
    std::vector<float> channels(64 * 18);
    std::vector<float> flat(kFlatInputs);
    WriteInputs(position, {}, channels.data());
    WriteInputs(position, {.flat = true}, flat.data());
    for (size_t square = 0; square < 64; ++square) {
      for (size_t plane = 0; plane < 13; ++plane) {
        ASSERT_EQ(channels[square * 18 + plane], planes[plane * 64 + square]);
        ASSERT_EQ(flat[plane * 64 + square], planes[plane * 64 + square]);
      }
      for (size_t i = 0; i < 5; ++i) ASSERT_EQ(channels[square * 18 + 13 + i], meta[i]);
    }
    for (size_t i = 0; i < 5; ++i) ASSERT_EQ(flat[832 + i], meta[i]);
    std::vector<float> flipped(64 * 17);
    WriteInputs(position, {.flip = true}, flipped.data());
    const bool black = position.black_to_move();
    for (size_t square = 0; square < 64; ++square) {
      for (size_t plane = 0; plane < 13; ++plane) {
        const size_t from = black && plane < 12 ? (plane + 6) % 12 : plane;
        ASSERT_EQ(flipped[square * 17 + plane], planes[from * 64 + (black ? square ^ 56 : square)]);
      }
      for (size_t i = 0; i < 4; ++i) {
        ASSERT_EQ(flipped[square * 17 + 13 + i], meta[1 + (black ? i ^ 2 : i)]);
      }
    }
  }
}

TEST(Rows, CastlingHasOneName) {
  RowPacker packer;
  const auto move_of = [&](std::string_view fen, std::string_view line) {
    PackedRow row;
    EXPECT_EQ(
        packer.Pack({.fen = fen, .line = line, .depth = 9, .knodes = 1, .cp = 0, .mate = {}}, row),
        RowFault::kNone);
    return Vocabulary::Full()[row.analysis.move].Text();
  };
  const std::string white = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq -";
  const std::string black = "r3k2r/8/8/8/8/8/8/R3K2R b KQkq -";
  EXPECT_EQ(move_of(white, "e1g1 e8c8"), "e1h1");
  EXPECT_EQ(move_of(white, "e1h1"), "e1h1");
  EXPECT_EQ(move_of(white, "e1c1"), "e1a1");
  EXPECT_EQ(move_of(black, "e8g8"), "e8h8");
  EXPECT_EQ(move_of(black, "e8a8"), "e8a8");
  // A rook that goes the same way does not castle.
  EXPECT_EQ(move_of("4k3/8/8/8/8/8/2K5/4R3 w - -", "e1g1"), "e1g1");
}

// The first row too: there is no position before it that it could be.
TEST(Rows, AnEmptyFenIsNone) {
  RowPacker packer;
  PackedRow row;
  EXPECT_EQ(
      packer.Pack({.fen = "", .line = "e2e4", .depth = 9, .knodes = 1, .cp = 0, .mate = {}}, row),
      RowFault::kBadFen);
}

TEST(Rows, NumbersOutOfRangeAreRefused) {
  RowPacker packer;
  PackedRow row;
  const std::string fen = FourFields(Board());
  const RawRow sound = {.fen = fen, .line = "e2e4", .depth = 30, .knodes = 9, .cp = 5, .mate = {}};
  EXPECT_EQ(packer.Pack(sound, row), RowFault::kNone);
  const auto fault_of = [&](const std::function<void(RawRow&)>& change) {
    RawRow changed = sound;
    change(changed);
    return packer.Pack(changed, row);
  };
  static constexpr int64_t kFar = int64_t{1} << 40;
  EXPECT_EQ(fault_of([](RawRow& raw) { raw.depth = 300'000; }), RowFault::kOutOfRange);
  EXPECT_EQ(fault_of([](RawRow& raw) { raw.depth = -1; }), RowFault::kOutOfRange);
  EXPECT_EQ(fault_of([](RawRow& raw) { raw.knodes = -1; }), RowFault::kOutOfRange);
  EXPECT_EQ(fault_of([](RawRow& raw) { raw.knodes = kFar; }), RowFault::kOutOfRange);
  EXPECT_EQ(fault_of([](RawRow& raw) { raw.cp = -kFar; }), RowFault::kOutOfRange);
  EXPECT_EQ(fault_of([](RawRow& raw) { raw.mate = kFar; }), RowFault::kOutOfRange);
  EXPECT_EQ(row.position.analyses, 0);  // The position stays.
}

TEST(Planes, AttacksAreThoseOfTheBoard) {
  for (const Board& board : SomeBoards(20)) {
    ASSERT_EQ(AttackPlanesOf(Pack(board)), chess::AttackPlanesOf(board)) << chess::ToFen(board);
  }
}

TEST(Planes, AttacksStandBehindTheOtherChannels) {
  constexpr InputForm kBare = {.flip = true};
  constexpr InputForm kForm = {.flip = true, .attacks = true};
  static_assert(kBare.channels() == 17 && kForm.channels() == 46);
  std::vector<float> bare(static_cast<size_t>(kBare.size()));
  std::vector<float> all(static_cast<size_t>(kForm.size()), 7.0F);
  for (const Board& board : SomeBoards(5)) {
    const PackedPosition position = Pack(board);
    const chess::AttackPlanes planes = AttackPlanesOf(position);
    WriteInputs(position, kBare, bare.data());
    WriteInputs(position, kForm, all.data());
    for (size_t square = 0; square < 64; ++square) {
      for (size_t i = 0; i < 17; ++i) ASSERT_EQ(all[square * 46 + i], bare[square * 17 + i]);
      for (size_t i = 0; i < chess::kAttackPlanes; ++i) {
        ASSERT_EQ(all[square * 46 + 17 + i], static_cast<float>(planes[i] >> square & 1)) << i;
      }
    }
  }
}

// Damaged rows: any bytes.
TEST(Planes, AttacksOfDamagedRows) {
  EXPECT_EQ(AttackPlanesOf(PackedPosition{}), chess::AttackPlanes{});
  Rng rng({.seed = 2});
  for (int i = 0; i < 2000; ++i) {
    std::array<uint64_t, 4> words{};
    for (uint64_t& word : words) word = rng.Below(~uint64_t{0});
    PackedPosition position;
    std::memcpy(static_cast<void*>(&position), words.data(), sizeof position);
    AttackPlanesOf(position);
  }
}

}  // namespace
}  // namespace kibitz::policy
