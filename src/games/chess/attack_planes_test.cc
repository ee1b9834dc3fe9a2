// Attack planes beside a plain computation that walks from square to square, by hand in a few
// positions, and in mirrors.
#include "games/chess/attack_planes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/mirror.h"
#include "games/chess/movegen.h"

namespace kibitz::chess {
namespace {

// Positions of random games; their kings walk about, and pieces hang and are pinned.
std::vector<Board> SomeBoards(uint64_t games) {
  std::vector<Board> boards;
  for (uint64_t game = 0; game < games; ++game) {
    Rng rng({.seed = 8, .sample = game});
    Board board;
    for (int ply = 0; ply < 150; ++ply) {
      boards.push_back(board);
      const MoveList moves = LegalMoves(board);
      if (moves.empty()) break;
      board = board.After(moves[rng.Below(moves.size())]);
    }
  }
  return boards;
}

// The pieces as letters, large ones for the side to move, which plays up the board.
using Letters = std::array<char, 64>;
constexpr std::string_view kKinds = "pnbrqk";

Letters LettersOf(const Board& given) {
  const bool black = given.side_to_move() == Color::kBlack;
  const Board board = black ? SwapColours(given) : given;
  Letters letters{};
  for (int i = 0; i < 64; ++i) {
    const Piece piece = board.PieceAt(Square(i));
    letters[static_cast<size_t>(i)] = piece.empty() ? '.' : piece.Letter();
  }
  return letters;
}

bool IsOwn(char letter) { return letter >= 'A' && letter <= 'Z'; }
size_t At(int square) { return static_cast<size_t>(square); }

// Whether a piece of this letter on `from` would attack `to`.
bool Attacks(const Letters& board, char letter, int from, int to) {
  const int files = to % 8 - from % 8;
  const int ranks = to / 8 - from / 8;
  const bool diagonal = std::abs(files) == std::abs(ranks);
  const bool straight = files == 0 || ranks == 0;
  if (from == to) return false;
  switch (letter | 0x20) {
    case 'p':
      return std::abs(files) == 1 && ranks == (IsOwn(letter) ? 1 : -1);
    case 'n':
      return std::abs(files * ranks) == 2;
    case 'k':
      return std::abs(files) <= 1 && std::abs(ranks) <= 1;
    case 'b':
      if (!diagonal) return false;
      break;
    case 'r':
      if (!straight) return false;
      break;
    default:
      if (!diagonal && !straight) return false;
  }
  const int step = (files > 0) - (files < 0) + 8 * ((ranks > 0) - (ranks < 0));
  for (int square = from + step; square != to; square += step) {
    if (board[At(square)] != '.') return false;
  }
  return true;
}

int CountAttackers(const Letters& board, bool own, int to) {
  int count = 0;
  for (int from = 0; from < 64; ++from) {
    const char letter = board[At(from)];
    if (letter != '.' && IsOwn(letter) == own) count += Attacks(board, letter, from, to) ? 1 : 0;
  }
  return count;
}

Letters Without(Letters board, int square) {
  board[At(square)] = '.';
  return board;
}

// What the planes say about one square, by their definitions.
class PlainPlanes {
 public:
  explicit PlainPlanes(const Letters& board) : board_(board) {
    for (int square = 0; square < 64; ++square) {
      if (board[At(square)] == 'K') kings_[0] = square;
      if (board[At(square)] == 'k') kings_[1] = square;
    }
  }

  AttackPlanes All() {
    for (int square = 0; square < 64; ++square) {
      for (int side = 0; side < 2; ++side) {
        AddAttacks(side, square);
        AddChecks(side, square);
        AddFlights(side, square);
      }
      AddShields(square);
    }
    return planes_;
  }

 private:
  static char Letter(int side, size_t kind) {
    return static_cast<char>(side == 0 ? kKinds[kind] - 0x20 : kKinds[kind]);
  }
  void Set(int plane, int square, bool value) {
    if (value) planes_[static_cast<size_t>(plane)] |= Square(square).bit();
  }
  void AddAttacks(int side, int square) {
    for (int from = 0; from < 64; ++from) {
      for (size_t kind = 0; kind < 6; ++kind) {
        const char letter = Letter(side, kind);
        if (board_[At(from)] != letter) continue;
        Set(kAttackPlane + 6 * side + static_cast<int>(kind), square,
            Attacks(board_, letter, from, square));
      }
    }
    Set(kTwicePlane + side, square, CountAttackers(board_, side == 0, square) >= 2);
  }
  void AddChecks(int side, int square) {
    for (size_t kind = 0; kind < 5; ++kind) {
      Set(kCheckPlane + 5 * side + static_cast<int>(kind), square,
          Attacks(board_, Letter(side, kind), square, kings_[1 - side]));
    }
  }
  // Of the king of the other side.
  void AddFlights(int side, int square) {
    const int king = kings_[1 - side];
    const char there = board_[At(square)];
    const bool free = there == '.' || IsOwn(there) == (side == 0);
    Set(kFlightPlane + side, square,
        Attacks(board_, 'k', king, square) && free &&
            CountAttackers(Without(board_, king), side == 0, square) == 0);
  }
  // Men whose leaving adds an attacker of a king.
  void AddShields(int square) {
    const char man = board_[At(square)];
    if (man == '.') return;
    const Letters without = Without(board_, square);
    const auto opens = [&](int king, bool own) {
      const bool was_attacker = IsOwn(man) == own && Attacks(board_, man, square, king);
      return CountAttackers(without, own, king) + (was_attacker ? 1 : 0) >
             CountAttackers(board_, own, king);
    };
    Set(kPinnedPlane, square, IsOwn(man) && opens(kings_[0], false));
    Set(kPinnedPlane + 1, square, !IsOwn(man) && opens(kings_[1], true));
    Set(kUncoverPlane, square, IsOwn(man) && opens(kings_[1], true));
  }

  Letters board_;
  std::array<int, 2> kings_{};  // Own, enemy.
  AttackPlanes planes_{};
};

AttackPlanes Of(const std::string& fen) { return AttackPlanesOf(ParseFen(fen).OrThrow(fen)); }

Bitboard Squares(const std::string& names) {
  Bitboard set = 0;
  for (size_t i = 0; i < names.size(); i += 3) set |= Square::FromName(names.substr(i, 2))->bit();
  return set;
}

TEST(AttackPlanes, AreThoseOfThePlainComputation) {
  std::array<uint64_t, kAttackPlanes> squares{};
  for (const Board& board : SomeBoards(60)) {
    const AttackPlanes planes = AttackPlanesOf(board);
    const AttackPlanes plain = PlainPlanes(LettersOf(board)).All();
    for (size_t i = 0; i < planes.size(); ++i) {
      ASSERT_EQ(planes[i], plain[i]) << "plane " << i << " of " << ToFen(board);
      squares[i] += static_cast<uint64_t>(PopCount(planes[i]));
    }
  }
  for (size_t i = 0; i < squares.size(); ++i) EXPECT_GT(squares[i], 50U) << "plane " << i;
}

TEST(AttackPlanes, OfKnownPositions) {
  // A back rank, a rook that may mate on it, and a bishop pinned by a queen.
  AttackPlanes planes = Of("6k1/5ppp/8/4q3/8/4B3/5PPP/R3K3 w Q -");
  EXPECT_EQ(planes[kPinnedPlane], Squares("e3"));
  EXPECT_EQ(planes[kPinnedPlane + 1], 0U);
  EXPECT_EQ(planes[kFlightPlane], Squares("f8 h8"));
  EXPECT_EQ(planes[kFlightPlane + 1], Squares("d1 d2 e2 f1"));
  EXPECT_EQ(planes[kCheckPlane + 1], Squares("e7 f6 h6"));  // Knights.
  EXPECT_EQ(planes[kCheckPlane + 3],                        // Rooks.
            Squares("a8 b8 c8 d8 e8 f8 h8 g7"));
  EXPECT_EQ(planes[kCheckPlane], Squares("f7 h7"));  // Pawns.
  EXPECT_EQ(planes[kAttackPlane + 3], Squares("a2 a3 a4 a5 a6 a7 a8 b1 c1 d1 e1"));
  // A king in check may not step back along the line.
  planes = Of("k7/8/8/8/r3K3/8/8/8 w - -");
  EXPECT_EQ(planes[kFlightPlane + 1], Squares("d3 e3 f3 d5 e5 f5"));
  // A knight that uncovers a rook, seen by Black: the board is turned round.
  planes = Of("4r2k/8/8/4n3/8/8/8/4K3 b - -");
  EXPECT_EQ(planes[kUncoverPlane], Squares("e4"));
  EXPECT_EQ(planes[kPinnedPlane + 1], 0U);
  // Rook and king see the same two squares.
  planes = Of("k7/8/8/8/8/8/7R/6K1 w - -");
  EXPECT_EQ(planes[kTwicePlane], Squares("f2 g2 h1"));
}

TEST(AttackPlanes, AreAlikeInMirrors) {
  const auto mirrored = [](Bitboard set) {
    Bitboard result = 0;
    while (set != 0) result |= Square(TakeFirst(set).index() ^ 7).bit();
    return result;
  };
  for (const Board& board : SomeBoards(40)) {
    const AttackPlanes planes = AttackPlanesOf(board);
    ASSERT_EQ(AttackPlanesOf(SwapColours(board)), planes) << ToFen(board);
    if (!CanMirrorFiles(board)) continue;
    const AttackPlanes other = AttackPlanesOf(MirrorFiles(board));
    for (size_t i = 0; i < planes.size(); ++i) ASSERT_EQ(other[i], mirrored(planes[i])) << i;
  }
}

// Any sets: two men on a square, no king, many kings.
TEST(AttackPlanes, OfNoPosition) {
  EXPECT_EQ(AttackPlanesOf(MenInView{}), AttackPlanes{});
  Rng rng({.seed = 2});
  for (int i = 0; i < 2000; ++i) {
    MenInView men;
    for (auto* side : {&men.own, &men.enemy}) {
      for (Bitboard& set : *side) set = rng.Next() & rng.Next() & rng.Next();
    }
    AttackPlanesOf(men);
  }
}

}  // namespace
}  // namespace kibitz::chess
