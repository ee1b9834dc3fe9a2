// Rows of the evaluation database, made into values: text in, 40 bytes out.
//
//   RowPacker packer;
//   PackedRow row;
//   if (packer.Pack(raw, row) ...)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "students/policy/data/labels.h"
#include "students/policy/data/packed_position.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::policy {

// One line of an engine's answer as files have it; cp and mate from White's point of view.
struct RawRow {
  std::string_view fen;
  std::string_view line;  // Moves in UCI; only the first one counts. Empty where there is none.
  std::optional<int64_t> depth;
  std::optional<int64_t> knodes;
  std::optional<int64_t> cp;
  std::optional<int64_t> mate;  // Counts before cp where a row has both.
};

struct PackedRow {
  PackedPosition position;  // `analyses` is 1, or 0 where the row teaches nothing but the position.
  Analysis analysis;
};
static_assert(sizeof(PackedRow) == 40);

// Why a row, or a part of it, was left out.
enum class RowFault : uint8_t {
  kNone,
  kNoMove,       // No line: the row is left out.
  kBadFen,       // The row is left out.
  kUnknownMove,  // The first move is no move of any piece: the position stays.
  kNoScore,      // Neither cp nor mate: the position stays.
  kIllegalMove,  // Found when positions are put together: the position stays.
  kImpossible,   // The side not to move is in check: the position is left out.
  kTooMany,      // More than 65535 analyses of one position: the shallowest are left out.
  kCount
};
// For people: "rows without a move".
std::string_view NameOf(RowFault fault);
// For JSON: "no_move".
std::string_view KeyOf(RowFault fault);

class Tally {
 public:
  void Add(RowFault fault, uint64_t count = 1) { counts_[static_cast<size_t>(fault)] += count; }
  void Add(const Tally& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }
  uint64_t operator[](RowFault fault) const { return counts_[static_cast<size_t>(fault)]; }

 private:
  std::array<uint64_t, static_cast<size_t>(RowFault::kCount)> counts_{};
};

// Castling in any notation as king takes rook; other moves as they are.
MoveWord NormalCastling(const PackedPosition& position, MoveWord word);

// Remembers the last FEN, since rows of one position often come together.
class RowPacker {
 public:
  // Fills `out` unless the row is left out (see RowFault). Legality is not looked at.
  RowFault Pack(const RawRow& row, PackedRow& out);

 private:
  const Vocabulary& words_ = Vocabulary::Full();
  std::string last_fen_;  // Empty before the first one.
  PackedPosition last_;
};

}  // namespace kibitz::policy
