#include "students/policy/data/rows.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace kibitz::policy {
namespace {

constexpr unsigned kKing = 6;

// Letter by letter: the first word is short, and the rest of the line long.
std::string_view FirstWord(std::string_view line) {
  const auto blank = [&](size_t i) { return line[i] == ' ' || line[i] == '\t'; };
  size_t begin = 0;
  while (begin < line.size() && blank(begin)) ++begin;
  size_t end = begin;
  while (end < line.size() && !blank(end)) ++end;
  return line.substr(begin, end - begin);
}

bool Fits(int64_t value, int64_t min, int64_t max) { return value >= min && value <= max; }

// Scores as the packed form holds them, mates of at most 10000 moves, depths up to kMaxDepth.
bool InRange(const RawRow& row) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMostMoves = 10'000;
  return Fits(row.depth.value_or(1), 0, kMaxDepth) && Fits(row.knodes.value_or(0), 0, kMost) &&
         Fits(row.cp.value_or(0), -kMost, kMost) &&
         Fits(row.mate.value_or(0), -kMostMoves, kMostMoves);
}

}  // namespace

std::string_view NameOf(RowFault fault) {
  switch (fault) {
    case RowFault::kNoMove:
      return "rows without a move";
    case RowFault::kBadFen:
      return "rows with a bad FEN";
    case RowFault::kUnknownMove:
      return "rows with a move that no piece can make";
    case RowFault::kNoScore:
      return "rows without a score (cp or mate)";
    case RowFault::kIllegalMove:
      return "analyses of an illegal move";
    case RowFault::kImpossible:
      return "positions with the side not to move in check";
    case RowFault::kOutOfRange:
      return "rows with a number out of range (depth, knodes, cp or mate)";
    case RowFault::kTooMany:
      return "analyses beyond 65535 of one position";
    default:
      return "sound rows";
  }
}

std::string_view KeyOf(RowFault fault) {
  switch (fault) {
    case RowFault::kNoMove:
      return "no_move";
    case RowFault::kBadFen:
      return "bad_fen";
    case RowFault::kUnknownMove:
      return "unknown_move";
    case RowFault::kNoScore:
      return "no_score";
    case RowFault::kIllegalMove:
      return "illegal_move";
    case RowFault::kImpossible:
      return "impossible_position";
    case RowFault::kOutOfRange:
      return "out_of_range";
    case RowFault::kTooMany:
      return "too_many_analyses";
    default:
      return "none";
  }
}

void Skip(SkipCounter& skipped, RowFault fault) { skipped.Add(std::string(NameOf(fault))); }

nlohmann::ordered_json LeftOutToJson(const SkipCounter& skipped) {
  auto json = nlohmann::ordered_json::object();
  for (size_t i = 1; i < static_cast<size_t>(RowFault::kCount); ++i) {
    const auto fault = static_cast<RowFault>(i);
    json[std::string(KeyOf(fault))] = skipped.CountOf(std::string(NameOf(fault)));
  }
  return json;
}

SkipCounter LeftOutFrom(const nlohmann::ordered_json& json) {
  SkipCounter skipped;
  for (size_t i = 1; i < static_cast<size_t>(RowFault::kCount); ++i) {
    const auto fault = static_cast<RowFault>(i);
    const std::string key(KeyOf(fault));
    if (fault == RowFault::kOutOfRange && !json.contains(key)) continue;  // Of earlier versions.
    skipped.Add(std::string(NameOf(fault)), {}, json.at(key).get<uint64_t>());
  }
  return skipped;
}

MoveWord NormalCastling(const PackedPosition& position, MoveWord word) {
  const int home = position.black_to_move() ? 60 : 4;
  if (word.from != home || (word.to != home + 2 && word.to != home - 2)) return word;
  if (position.CodeAt(home) != (position.black_to_move() ? kKing + 8 : kKing)) return word;
  word.to = static_cast<uint8_t>(word.to > home ? home + 3 : home - 4);
  return word;
}

RowFault RowPacker::Pack(const RawRow& row, PackedRow& out) {
  const std::string_view text = FirstWord(row.line);
  if (text.empty()) return RowFault::kNoMove;
  if (row.fen.empty() || row.fen != last_fen_) {
    const Result<PackedPosition> position = PackFen(row.fen);
    if (!position) return RowFault::kBadFen;
    last_ = *position;
    last_fen_ = row.fen;
  }
  out.position = last_;
  out.position.analyses = 0;
  out.analysis = {};
  const std::optional<MoveWord> word = MoveWord::FromText(text);
  const uint16_t move = word ? words_.IndexOf(NormalCastling(last_, *word)) : kNoMove;
  if (move == kNoMove) return RowFault::kUnknownMove;
  if (!row.mate && !row.cp) return RowFault::kNoScore;
  if (!InRange(row)) return RowFault::kOutOfRange;
  out.position.analyses = 1;
  out.analysis = {.knodes = static_cast<uint32_t>(row.knodes.value_or(0)),
                  .score = static_cast<int32_t>(row.mate ? *row.mate : *row.cp),
                  .move = move,
                  .depth_mate = Analysis::DepthMate(std::max<int64_t>(row.depth.value_or(1), 1),
                                                    row.mate.has_value())};
  return RowFault::kNone;
}

}  // namespace kibitz::policy
