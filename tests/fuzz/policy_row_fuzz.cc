// A row of the evaluation database, as two lines of text: a FEN, then moves. Any of them is left
// out for a reason, or packed as the slow and sure way packs it, and comes back from everything
// that positions are turned into.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "games/chess/board.h"
#include "games/chess/fen.h"
#include "students/policy/data/group.h"
#include "students/policy/data/packed_position.h"
#include "students/policy/data/planes.h"
#include "students/policy/data/rows.h"

namespace kibitz::policy {
namespace {

bool WrongSideInCheck(const chess::Board& board) {
  const chess::Color mover = board.side_to_move();
  return (board.AttackersOf(board.KingOf(~mover), board.occupied()) & board.pieces(mover)) != 0;
}

// The quick reader must give what the board of the rules gives, and may only miss what grouping
// sees: the side not to move in check.
void CheckPosition(std::string_view fen, const Result<PackedPosition>& position) {
  const Result<chess::Board> board = chess::ParseFen(fen, {.drop_wrong_castling = true});
  CHECK(position || !board);
  if (!position) return;
  CHECK(IsSound(*position));
  CHECK(board ? SamePosition(*position, Pack(*board)) : WrongSideInCheck(BoardOf(*position)));
  CHECK(SamePosition(*position, Pack(BoardOf(*position))));
  const auto again = FromPlanes(PlanesOf(*position), MetaOf(*position));
  CHECK(again && SamePosition(*position, *again));
  CHECK(HashOf(*position) == HashOf(*again));
}

void CheckRow(std::string_view fen, std::string_view line, int64_t number) {
  RowPacker packer;
  PackedRow row;
  const RawRow raw = {.fen = fen,
                      .line = line,
                      .depth = number,
                      .knodes = number,
                      .cp = number % 2 == 0 ? std::optional<int64_t>(number) : std::nullopt,
                      .mate = number % 3 == 0 ? std::optional<int64_t>(-number) : std::nullopt};
  const RowFault fault = packer.Pack(raw, row);
  if (fault == RowFault::kNoMove || fault == RowFault::kBadFen) return;
  CHECK((row.position.analyses == 1) == (fault == RowFault::kNone));
  CHECK(fault != RowFault::kNone || row.analysis.move < kFullVocabularySize);
  // A second time from what it remembers.
  PackedRow same;
  CHECK(packer.Pack(raw, same) == fault && SamePosition(row.position, same.position));
  const GroupedPartition grouped = GroupRows({row, same}, {0, 0});
  const Grouped& train = grouped.splits[static_cast<size_t>(Split::kTrain)];
  const uint64_t impossible = grouped.skipped.CountOf(std::string(NameOf(RowFault::kImpossible)));
  CHECK(train.positions.size() + impossible == 1);
  for (const PackedPosition& position : train.positions) {
    CHECK(position.analyses == train.analyses.size() && position.analyses <= 2);
  }
}

}  // namespace
}  // namespace kibitz::policy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\n');
  const std::string_view fen = text.substr(0, end);
  const std::string_view line =
      end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  kibitz::policy::CheckPosition(fen, kibitz::policy::PackFen(fen));
  kibitz::policy::CheckRow(fen, line, static_cast<int64_t>(size) * 1'000'003 - 100'000'000);
  return 0;
}
