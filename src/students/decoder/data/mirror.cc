#include "students/decoder/data/mirror.h"

#include <array>
#include <string>
#include <string_view>

#include "base/check.h"
#include "games/chess/mirror.h"

namespace kibitz::decoder {
namespace {

constexpr int kRanks = 56;  // Exclusive or with a square's index: the rank counted from above.
constexpr int kFiles = 7;   // The file counted from the right.

using MoveTable = std::array<TokenId, kMoveVocabularySize>;

MoveTable MirroredMoves(int mirror) {
  MoveTable table;
  for (TokenId token = 0; token < kMoveVocabularySize; ++token) {
    const std::string_view name = TokenName(token);
    std::string other;
    for (size_t end = 0; end < 2; ++end) {
      const chess::Square square = *chess::Square::FromName(name.substr(2 * end, 2));
      other += chess::Square(square.index() ^ mirror).Name();
    }
    const auto found = FindToken(other + std::string(name.substr(4)));
    CHECK(found.has_value());
    table[static_cast<size_t>(token)] = *found;
  }
  return table;
}

// `mirror` makes the mirrored board.
template <typename Mirror>
SearchRow Mirrored(const SearchRow& row, const Mirror& mirror, const MoveTable& moves) {
  const auto move = [&](TokenId token) { return moves.at(static_cast<size_t>(token)); };
  SearchRow result = row;
  result.root = mirror(row.root);
  result.best_move = move(row.best_move);
  for (SearchVariation& variation : result.variations) {
    variation.root_move = move(variation.root_move);
    for (uint32_t i = 0; i < variation.node_count; ++i) {
      LineNode& node = result.nodes[variation.first_node + i];
      node.board = mirror(node.board);
      if (i + 1 < variation.node_count) node.move = move(node.move);
    }
  }
  return result;
}

}  // namespace

SearchRow SwapColours(const SearchRow& row) {
  static const MoveTable moves = MirroredMoves(kRanks);
  return Mirrored(
      row, [](const chess::Board& b) { return chess::SwapColours(b); }, moves);
}

bool CanMirrorFiles(const SearchRow& row) { return chess::CanMirrorFiles(row.root); }

SearchRow MirrorFiles(const SearchRow& row) {
  CHECK(CanMirrorFiles(row));
  static const MoveTable moves = MirroredMoves(kFiles);
  return Mirrored(
      row, [](const chess::Board& b) { return chess::MirrorFiles(b); }, moves);
}

}  // namespace kibitz::decoder
