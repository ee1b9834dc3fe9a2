#include "games/chess/types.h"

namespace kibitz::chess {
namespace {
constexpr std::string_view kLetters = ".PNBRQK..pnbrqk";
}

std::optional<Piece> Piece::FromLetter(char letter) {
  const size_t code = kLetters.find(letter);
  if (letter == '.' || code == std::string_view::npos) return std::nullopt;
  return FromCode(static_cast<unsigned>(code));
}

char Piece::Letter() const { return kLetters[code_]; }

std::optional<Square> Square::FromName(std::string_view name) {
  if (name.size() != 2 || name[0] < 'a' || name[0] > 'h' || name[1] < '1' || name[1] > '8') {
    return std::nullopt;
  }
  return At(name[0] - 'a', name[1] - '1');
}

std::string Square::Name() const {
  return {static_cast<char>('a' + file()), static_cast<char>('1' + rank())};
}

}  // namespace kibitz::chess
