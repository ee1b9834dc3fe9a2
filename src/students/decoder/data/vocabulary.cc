#include "students/decoder/data/vocabulary.h"

#include <algorithm>

#include "base/check.h"

namespace kibitz::decoder {
namespace {

using chess::PieceType;
using chess::Square;

// Every pair of squares a queen or a knight can move between, then the promotions: White's,
// Black's.
constexpr int Distance(int a, int b) { return a > b ? a - b : b - a; }

constexpr bool Reachable(Square from, Square to) {
  const int files = Distance(from.file(), to.file());
  const int ranks = Distance(from.rank(), to.rank());
  if (files == 0 && ranks == 0) return false;
  return files == 0 || ranks == 0 || files == ranks || files * ranks == 2;
}

constexpr std::array kPromotions = {PieceType::kQueen, PieceType::kRook, PieceType::kBishop};
constexpr std::array kPromotionLetters = {'q', 'r', 'b'};

constexpr size_t kNoToken = 0xffff;

struct MoveTables {
  std::array<MoveSquares, kMoveVocabularySize> squares{};
  std::array<TokenId, size_t{64} * 64> bare{};
  // By kind of promotion, side (0: White), file, and step to the left, ahead, to the right.
  std::array<TokenId, size_t{3} * 2 * 8 * 3> promotions{};
  size_t count = 0;
};

constexpr size_t PairSlot(Square from, Square to) {
  return static_cast<size_t>(from.index()) * 64 + static_cast<size_t>(to.index());
}

constexpr size_t PromotionSlot(size_t piece, Square from, Square to) {
  const size_t side = to.rank() == 7 ? 0 : 1;
  const int step = to.file() - from.file() + 1;
  return ((piece * 2 + side) * 8 + static_cast<size_t>(from.file())) * 3 +
         static_cast<size_t>(step);
}

constexpr void AddPromotions(MoveTables& tables, int from_rank, int to_rank) {
  for (int file = 0; file < 8; ++file) {
    for (int to_file = std::max(0, file - 1); to_file <= std::min(7, file + 1); ++to_file) {
      const Square from = Square::At(file, from_rank);
      const Square to = Square::At(to_file, to_rank);
      for (size_t piece = 0; piece < kPromotions.size(); ++piece) {
        tables.promotions[PromotionSlot(piece, from, to)] = static_cast<TokenId>(tables.count);
        tables.squares[tables.count++] = {from, to, kPromotions[piece]};
      }
    }
  }
}

constexpr MoveTables MakeMoveTables() {
  MoveTables tables;
  tables.bare.fill(kNoToken);
  tables.promotions.fill(kNoToken);
  for (int from = 0; from < 64; ++from) {
    for (int to = 0; to < 64; ++to) {
      if (!Reachable(Square(from), Square(to))) continue;
      tables.bare[PairSlot(Square(from), Square(to))] = static_cast<TokenId>(tables.count);
      tables.squares[tables.count++] = {Square(from), Square(to), PieceType::kNone};
    }
  }
  AddPromotions(tables, 6, 7);
  AddPromotions(tables, 1, 0);
  return tables;
}

constexpr MoveTables kMoves = MakeMoveTables();
static_assert(kMoves.count == kMoveVocabularySize);

constexpr std::array<std::string_view, kVocabularySize - kMoveVocabularySize> kMarkNames = {
    "white_king",
    "white_queen",
    "white_rook",
    "white_bishop",
    "white_knight",
    "white_pawn",
    "black_king",
    "black_queen",
    "black_rook",
    "black_bishop",
    "black_knight",
    "black_pawn",
    "start_pos",
    "end_pos",
    "white_to_move",
    "black_to_move",
    "empty",
    "pad",
    "bos",
    "eos",
    "wl_value",
    "d_value",
    "start_think",
    "end_think",
    "K",
    "Q",
    "k",
    "q",
    "KQ",
    "Kk",
    "Kq",
    "Qk",
    "Qq",
    "kq",
    "KQk",
    "KQq",
    "Kkq",
    "Qkq",
    "KQkq",
    "no_castling_rights",
    "end_var",
    "continue_var",
    "new_variation",
    "generic_move"};

// Names of moves, five bytes each; four are used by those without a promotion letter.
constexpr size_t kMoveNameBytes = 5;
constexpr auto MakeMoveNames() {
  std::array<char, kMoveVocabularySize * kMoveNameBytes> names{};
  for (size_t i = 0; i < kMoveVocabularySize; ++i) {
    const MoveSquares& move = kMoves.squares[i];
    char* name = &names[i * kMoveNameBytes];
    name[0] = static_cast<char>('a' + move.from.file());
    name[1] = static_cast<char>('1' + move.from.rank());
    name[2] = static_cast<char>('a' + move.to.file());
    name[3] = static_cast<char>('1' + move.to.rank());
    for (size_t piece = 0; piece < kPromotions.size(); ++piece) {
      if (move.promotion == kPromotions[piece]) name[4] = kPromotionLetters[piece];
    }
  }
  return names;
}
constexpr auto kMoveNames = MakeMoveNames();

constexpr std::array<TokenId, kBoardVocabularySize> MakeBoardTokens() {
  std::array<TokenId, kBoardVocabularySize> tokens{};
  size_t count = 0;
  const auto add = [&](int first, int last) {
    for (int token = first; token <= last; ++token) tokens[count++] = static_cast<TokenId>(token);
  };
  add(kWhiteKing, kBlackPawn);
  add(kStartPos, kEmpty);
  add(kWlValue, kDValue);
  add(kFirstCastling, kNoCastling);
  add(kEndVar, kGenericMove);
  add(kEndThink, kEndThink);
  add(kStartThink, kStartThink);
  return tokens;
}
constexpr auto kBoardTokenTable = MakeBoardTokens();

constexpr auto MakeBoardIndices() {
  std::array<int8_t, kVocabularySize> indices{};
  indices.fill(-1);
  for (size_t i = 0; i < kBoardTokenTable.size(); ++i) {
    indices[kBoardTokenTable[i]] = static_cast<int8_t>(i);
  }
  return indices;
}
constexpr auto kBoardIndices = MakeBoardIndices();

}  // namespace

std::string_view TokenName(TokenId token) {
  CHECK(token < kVocabularySize);
  if (!IsMove(token)) return kMarkNames[token - kMoveVocabularySize];
  const bool promotes = kMoves.squares[token].promotion != PieceType::kNone;
  return {&kMoveNames[token * kMoveNameBytes], promotes ? size_t{5} : size_t{4}};
}

std::optional<TokenId> FindToken(std::string_view name) {
  const auto* mark = std::find(kMarkNames.begin(), kMarkNames.end(), name);
  if (mark != kMarkNames.end()) {
    return static_cast<TokenId>(kMoveVocabularySize + (mark - kMarkNames.begin()));
  }
  if (name.size() != 4 && name.size() != 5) return std::nullopt;
  const auto from = Square::FromName(name.substr(0, 2));
  const auto to = Square::FromName(name.substr(2, 2));
  if (!from || !to) return std::nullopt;
  if (name.size() == 4) return MoveTokenOf(*from, *to);
  for (size_t piece = 0; piece < kPromotions.size(); ++piece) {
    if (name[4] == kPromotionLetters[piece]) return MoveTokenOf(*from, *to, kPromotions[piece]);
  }
  return std::nullopt;
}

int BoardIndex(TokenId token) {
  CHECK(token < kVocabularySize);
  return kBoardIndices[token];
}

TokenId BoardToken(int board_index) {
  CHECK(board_index >= 0 && board_index < kBoardVocabularySize);
  return kBoardTokenTable[static_cast<size_t>(board_index)];
}

std::optional<TokenId> MoveTokenOf(Square from, Square to, PieceType promotion) {
  size_t token = kNoToken;
  if (promotion == PieceType::kNone || promotion == PieceType::kKnight) {
    token = kMoves.bare[PairSlot(from, to)];
  } else {
    const auto* piece = std::find(kPromotions.begin(), kPromotions.end(), promotion);
    const bool last_step =
        (from.rank() == 6 && to.rank() == 7) || (from.rank() == 1 && to.rank() == 0);
    if (piece == kPromotions.end() || !last_step || Distance(from.file(), to.file()) > 1) {
      return std::nullopt;
    }
    token =
        kMoves
            .promotions[PromotionSlot(static_cast<size_t>(piece - kPromotions.begin()), from, to)];
  }
  if (token == kNoToken) return std::nullopt;
  return static_cast<TokenId>(token);
}

MoveSquares SquaresOf(TokenId move) {
  CHECK(IsMove(move));
  return kMoves.squares[move];
}

}  // namespace kibitz::decoder
