#include "students/decoder/data/sight.h"

#include <bit>

#include "base/check.h"
#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {
namespace {

struct Step {
  int file;
  int rank;
};
// A line and the one behind it differ by four.
constexpr std::array<Step, kSightLines> kLines = {
    {{0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}}};
constexpr std::array<Step, kSightJumps> kJumps = {
    {{1, 2}, {2, 1}, {2, -1}, {1, -2}, {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}}};
constexpr int kOpposite = 4;

int SquareAt(int square, Step step, int distance) {
  const int file = (square & 7) + step.file * distance;
  const int rank = (square >> 3) + step.rank * distance;
  return file < 0 || file > 7 || rank < 0 || rank > 7 ? -1 : rank * 8 + file;
}

constexpr size_t Index(int number) { return static_cast<size_t>(number); }

// By square and slot.
const std::array<std::array<int8_t, kSightSlots>, 64>& Slots() {
  static const auto slots = [] {
    std::array<std::array<int8_t, kSightSlots>, 64> made{};
    for (int square = 0; square < 64; ++square) {
      for (int slot = 0; slot < kSightSlots; ++slot) {
        const int jump = slot - kSightLines * kSightDistances;
        const int found = jump >= 0 ? SquareAt(square, kJumps[Index(jump)], 1)
                                    : SquareAt(square, kLines[Index(slot / kSightDistances)],
                                               slot % kSightDistances + 1);
        made[Index(square)][Index(slot)] = static_cast<int8_t>(found);
      }
    }
    return made;
  }();
  return slots;
}

// Calls found(square, row) for each sight, piece by piece: those who see a piece on a line are the
// empty squares up to the next piece, and that one.
template <typename Found>
void ForEachSight(std::span<const TokenId> board, const Found& found) {
  CHECK(board.size() == kBoardTokens);
  const auto& slots = Slots();
  for (int square = 0; square < 64; ++square) {
    const int piece = SightPiece(board[Index(square) + 1]);
    if (piece < 0) continue;
    const auto& seen = slots[Index(square)];
    const auto tell = [&](int from, int slot) { found(from, slot * kSightPieces + piece); };
    for (int line = 0; line < kSightLines; ++line) {
      const int back = (line + kOpposite) % kSightLines;
      for (int distance = 0; distance < kSightDistances; ++distance) {
        const int from = seen[Index(line * kSightDistances + distance)];
        if (from < 0) break;
        tell(from, back * kSightDistances + distance);
        if (SightPiece(board[Index(from) + 1]) >= 0) break;
      }
    }
    for (int jump = 0; jump < kSightJumps; ++jump) {
      const int slot = kSightLines * kSightDistances + jump;
      const int from = seen[Index(slot)];
      const int back = kSightLines * kSightDistances + (jump + kOpposite) % kSightJumps;
      if (from >= 0) tell(from, back);
    }
  }
}

// Calls found(square, plane) for each square of each attack plane.
template <typename Found>
void ForEachAttack(std::span<const TokenId> board, const Found& found) {
  CHECK(board.size() == kBoardTokens);
  const bool black = board.back() == kBlackToMove;
  const int mirror = black ? 56 : 0;
  chess::MenInView men;
  for (int square = 0; square < 64; ++square) {
    const int piece = SightPiece(board[Index(square) + 1]);
    if (piece < 0) continue;
    auto& side = (piece >= 6) == black ? men.own : men.enemy;
    side[Index(5 - piece % 6)] |= uint64_t{1} << (square ^ mirror);  // Tokens go from king to pawn.
  }
  int plane = 0;
  for (chess::Bitboard squares : chess::AttackPlanesOf(men)) {
    for (; squares != 0; squares &= squares - 1) {
      found(std::countr_zero(squares) ^ mirror, plane);
    }
    ++plane;
  }
}

void AddRow(std::span<const float> embedding, int row, int64_t width, int square, float* rows) {
  const float* from = embedding.data() + row * width;
  float* to = rows + (square + 1) * width;
  for (int64_t i = 0; i < width; ++i) to[i] += from[i];
}

}  // namespace

int SightSquare(int square, int slot) { return Slots()[Index(square)][Index(slot)]; }

std::vector<SightRow> SightsOf(std::span<const TokenId> board) {
  std::vector<SightRow> sights;
  ForEachSight(board, [&](int square, int row) {
    sights.push_back({static_cast<int16_t>(square), static_cast<int16_t>(row)});
  });
  return sights;
}

void AddSights(std::span<const TokenId> board, std::span<const float> embedding, int64_t width,
               float* rows) {
  ForEachSight(board, [&](int square, int row) { AddRow(embedding, row, width, square, rows); });
}

std::vector<SightRow> AttacksOf(std::span<const TokenId> board) {
  std::vector<SightRow> attacks;
  ForEachAttack(board, [&](int square, int plane) {
    attacks.push_back({static_cast<int16_t>(square), static_cast<int16_t>(plane)});
  });
  return attacks;
}

void AddAttacks(std::span<const TokenId> board, std::span<const float> embedding, int64_t width,
                float* rows) {
  ForEachAttack(board,
                [&](int square, int plane) { AddRow(embedding, plane, width, square, rows); });
}

}  // namespace kibitz::decoder
