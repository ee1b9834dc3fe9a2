#include "games/twenty48/diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kibitz::twenty48 {
namespace {

constexpr int kWidth = 8;  // Of a tile, in characters.

struct Paint {
  int ground;  // Of the terminal's 256 colours.
  int ink;
};

// By rank: light tiles first, then orange and red, gold from 128, dark beyond 2048.
constexpr std::array<Paint, kMaxRank + 1> kPaints = {{{250, 250},
                                                      {255, 240},
                                                      {230, 240},
                                                      {215, 231},
                                                      {209, 231},
                                                      {203, 231},
                                                      {196, 231},
                                                      {222, 236},
                                                      {221, 236},
                                                      {220, 236},
                                                      {214, 236},
                                                      {208, 231},
                                                      {90, 231},
                                                      {55, 231},
                                                      {25, 231},
                                                      {23, 231},
                                                      {16, 220},
                                                      {16, 196}}};

std::string Centered(const std::string& text) {
  const int before = (kWidth - static_cast<int>(text.size())) / 2;
  return fmt::format("{:{}}{:<{}}", "", before, text, kWidth - before);
}

std::string PaintedRow(const Board& board, int row) {
  std::string lines;
  for (int line = 0; line < 3; ++line) {
    for (int column = 0; column < 4; ++column) {
      const int rank = board.Rank(4 * row + column);
      const Paint paint = kPaints[static_cast<size_t>(rank)];
      const std::string text = line == 1 && rank > 0 ? std::to_string(TileOf(rank)) : "";
      lines +=
          fmt::format("\x1b[48;5;{};38;5;{};1m{}\x1b[0m ", paint.ground, paint.ink, Centered(text));
    }
    lines += '\n';
  }
  return lines;
}

std::string PlainRow(const Board& board, int row) {
  std::string line;
  for (int column = 0; column < 4; ++column) {
    const int rank = board.Rank(4 * row + column);
    line += fmt::format("{:>7}", rank == 0 ? "." : std::to_string(TileOf(rank)));
  }
  return line + '\n';
}

}  // namespace

std::string Diagram(const Board& board, const DiagramStyle& style) {
  std::string text;
  for (int row = 0; row < 4; ++row) {
    text += style.color ? PaintedRow(board, row) : PlainRow(board, row);
  }
  return text;
}

}  // namespace kibitz::twenty48
