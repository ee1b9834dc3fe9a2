// Packs rows of the evaluation database, which are text, into 40 bytes each.
//
//   RowPacker packer;
//   PackedRow row;
//   if (packer.Pack(raw, row) == RowFault::kNone) rows.push_back(row);
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/skip_counter.h"
#include "students/policy/data/labels.h"
#include "students/policy/data/packed_position.h"
#include "students/policy/data/vocabulary.h"

namespace kibitz::policy {

// One line (PV) of an engine's answer as files have it; cp and mate from White's point of view.
struct RawRow {
  std::string_view fen;
  std::string_view line;  // Moves in UCI; only the first one counts. Empty where there is none.
  std::optional<int64_t> depth;
  std::optional<int64_t> knodes;
  std::optional<int64_t> cp;
  std::optional<int64_t> mate;  // Counts before cp where a row has both.
};

struct PackedRow {
  PackedPosition position;  // `analyses` is 1, or 0 where the row has no usable analysis.
  Analysis analysis;
};
static_assert(sizeof(PackedRow) == 40);

// Why a row, or a part of it, was skipped.
enum class RowFault : uint8_t {
  kNone,
  kNoMove,       // No line: the row is skipped.
  kBadFen,       // The row is skipped.
  kUnknownMove,  // No piece can make the first move: the position stays.
  kNoScore,      // Neither cp nor mate: the position stays.
  kIllegalMove,  // Found when rows are grouped: the position stays.
  kImpossible,   // The side not to move is in check: the position is skipped.
  kOutOfRange,   // A number that no search has, such as a negative depth: the position stays.
  kTooMany,      // More than 65535 analyses of one position: the shallowest are skipped.
  kCount
};
// For people: "rows without a move".
std::string_view NameOf(RowFault fault);
// For files: "no_move".
std::string_view KeyOf(RowFault fault);

// Counts a fault under its NameOf.
void Skip(SkipCounter& skipped, RowFault fault);
// Counts of all faults by their KeyOf, as manifests and journals have them, and back. LeftOutFrom
// throws a JSON exception for anything else.
nlohmann::ordered_json LeftOutToJson(const SkipCounter& skipped);
SkipCounter LeftOutFrom(const nlohmann::ordered_json& json);

// Castling in any notation becomes king takes rook; other moves stay as they are.
MoveWord NormalCastling(const PackedPosition& position, MoveWord word);

// Remembers the last FEN, since rows of one position often come together.
class RowPacker {
 public:
  // Fills `out` unless the row is skipped (see RowFault). Does not check that the move is legal.
  RowFault Pack(const RawRow& row, PackedRow& out);

 private:
  const Vocabulary& words_ = Vocabulary::Full();
  std::string last_fen_;  // Empty before the first one.
  PackedPosition last_;
};

}  // namespace kibitz::policy
