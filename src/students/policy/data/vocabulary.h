// The moves a policy chooses from, numbered. The full vocabulary has every move that some piece
// could make on an empty board, and promotions; a smaller one has the moves of some data.
//
//   const Vocabulary& all = Vocabulary::Full();                      // 1968 moves
//   all.IndexOf(*MoveWord::FromText("e2e4"));                        // 378
//
// Castling is king takes rook (e1h1), and only that: WordOf and NormalCastling see to it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "games/chess/board.h"
#include "games/chess/types.h"

namespace kibitz::policy {

// A move of a vocabulary: squares and promotion. Sorted by these three.
struct MoveWord {
  uint8_t from = 0;       // a1 = 0, h8 = 63.
  uint8_t to = 0;         // Of castling: the rook's square.
  uint8_t promotion = 0;  // 0 none, 1 knight, 2 bishop, 3 rook, 4 queen.

  // "e2e4", "a7a8n"; nothing for any other text.
  static std::optional<MoveWord> FromText(std::string_view text);
  std::string Text() const;
  // Ranks mirrored.
  MoveWord Flipped() const {
    return {static_cast<uint8_t>(from ^ 56), static_cast<uint8_t>(to ^ 56), promotion};
  }

  auto operator<=>(const MoveWord&) const = default;
};
static_assert(sizeof(MoveWord) == 3);

// The word of a legal move. Boards already keep castling as king takes rook.
MoveWord WordOf(chess::Move move);

inline constexpr int kFullVocabularySize = 1968;
inline constexpr uint16_t kNoMove = 0xffff;

class Vocabulary {
 public:
  // All 1968 moves.
  static const Vocabulary& Full();
  // Sorts and removes duplicates. Throws Error for words that are not among the 1968, and for none.
  explicit Vocabulary(std::vector<MoveWord> words);
  // From a .npy of bytes, (N, 3). Throws Error.
  static Vocabulary Read(const std::string& path);
  void Write(const std::string& path) const;

  int size() const { return static_cast<int>(words_.size()); }
  const MoveWord& operator[](int index) const { return words_[static_cast<size_t>(index)]; }
  // kNoMove for a word that is not in it.
  uint16_t IndexOf(MoveWord word) const {
    if (word.from > 63 || word.to > 63 || word.promotion > 4) return kNoMove;
    return index_[(size_t{word.from} * 64 + word.to) * 5 + word.promotion];
  }
  // The number of the move mirrored top to bottom; kNoMove where that, or `index`, is not in it.
  uint16_t Flipped(uint16_t index) const {
    return index < flipped_.size() ? flipped_[index] : kNoMove;
  }
  bool IsFull() const { return size() == kFullVocabularySize; }

  bool operator==(const Vocabulary& other) const { return words_ == other.words_; }

 private:
  std::vector<MoveWord> words_;
  std::vector<uint16_t> index_;    // By from, to, promotion.
  std::vector<uint16_t> flipped_;  // By number.
};

}  // namespace kibitz::policy
