#include "games/chess/diagram.h"

#include <array>
#include <string_view>

namespace kibitz::chess {
namespace {

// By Piece::code() & 7. Filled symbols for both sides, told apart by colour, look best on
// coloured squares; without colour White gets the outlined ones.
constexpr std::array<std::string_view, 7> kFilled = {" ", "♟", "♞", "♝", "♜", "♛", "♚"};
constexpr std::array<std::string_view, 7> kOutlined = {" ", "♙", "♘", "♗", "♖", "♕", "♔"};

std::string_view SquareColor(Square square, bool marked) {
  const bool light = (square.bit() & kLightSquares) != 0;
  if (marked) return light ? "\x1b[48;5;186m" : "\x1b[48;5;143m";
  return light ? "\x1b[48;5;187m" : "\x1b[48;5;107m";
}

std::string Symbol(Piece piece, const DiagramStyle& style) {
  if (!style.unicode) return {piece.Letter()};
  const auto type = static_cast<size_t>(piece.type());
  if (style.color) return std::string(kFilled[type]);
  if (piece.empty()) return "·";
  return std::string(piece.color() == Color::kWhite ? kOutlined[type] : kFilled[type]);
}

std::string Cell(const Board& board, Square square, const DiagramStyle& style) {
  const Piece piece = board.PieceAt(square);
  const bool marked =
      style.last_move && (square == style.last_move->from() || square == style.last_move->to());
  const std::string symbol = Symbol(piece, style);
  if (!style.color) return marked ? "(" + symbol + ")" : " " + symbol + " ";
  const std::string_view ink = piece.color() == Color::kWhite ? "\x1b[38;5;231m" : "\x1b[38;5;16m";
  return std::string(SquareColor(square, marked)) + std::string(ink) + " " + symbol + " \x1b[0m";
}

}  // namespace

std::string Diagram(const Board& board, const DiagramStyle& style) {
  std::string text;
  for (int row = 0; row < 8; ++row) {
    const int rank = style.flipped ? row : 7 - row;
    text += "  ";
    text += static_cast<char>('1' + rank);
    text += ' ';
    for (int column = 0; column < 8; ++column) {
      text += Cell(board, Square::At(style.flipped ? 7 - column : column, rank), style);
    }
    text += '\n';
  }
  text += "    ";
  for (int column = 0; column < 8; ++column) {
    text += ' ';
    text += static_cast<char>('a' + (style.flipped ? 7 - column : column));
    text += ' ';
  }
  return text + '\n';
}

}  // namespace kibitz::chess
