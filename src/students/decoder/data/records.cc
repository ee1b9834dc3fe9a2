#include "students/decoder/data/records.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/rules.h"
#include "students/decoder/data/tokens.h"

namespace kibitz::decoder {
namespace {

using chess::Board;
using chess::MoveStyle;

constexpr std::string_view kBadFen = "bad FEN";
constexpr std::string_view kBadMove = "illegal move";
constexpr std::string_view kBadJson = "malformed variations";
constexpr std::string_view kNoWdl =
    "win/draw/loss missing or impossible, row used without its value";
constexpr std::string_view kNoFollow = "a node is not the result of the move before it";
constexpr std::string_view kNoNodes = "no variation with a node";

// Collects what is wrong with one row; the steps below stop at the first thing.
class RowCheck {
 public:
  RowCheck(const std::string& file, int64_t row, SkipCounter& skipped)
      : file_(file), row_(row), skipped_(skipped) {}

  std::nullopt_t Refuse(std::string_view reason, std::string detail) const {
    skipped_.Add(std::string(reason), {.file = file_, .row = row_, .detail = std::move(detail)});
    return std::nullopt;
  }
  std::optional<Board> ReadBoard(std::string_view fen) const {
    Result<Board> board = chess::ParseFen(fen, {.drop_wrong_castling = true});
    if (!board) return Refuse(kBadFen, board.reason());
    return *board;
  }
  std::optional<chess::Move> ReadMove(const Board& board, std::string_view text,
                                      MoveStyle style) const {
    const Result<chess::Move> move = chess::ParseMove(board, text, style);
    if (!move) return Refuse(kBadMove, move.reason());
    return *move;
  }
  // The three as one value; without them, or with one that is no probability, nothing.
  std::optional<Wdl> ReadWdl(const WdlCells& cells) const {
    constexpr double kSlack = 1e-3;  // Of rounding.
    for (const auto& cell : {cells.win, cells.draw, cells.loss}) {
      if (!cell || !std::isfinite(*cell) || *cell < -kSlack || *cell > 1 + kSlack) {
        return Refuse(kNoWdl, cell ? fmt::format("found {}", *cell) : "found null");
      }
    }
    return Wdl{*cells.win, *cells.draw, *cells.loss};
  }

 private:
  const std::string& file_;
  int64_t row_;
  SkipCounter& skipped_;
};

WdlCells WdlOf(io::JsonValue value) {
  WdlCells cells;
  if (value.kind() != io::JsonKind::kArray) return cells;
  size_t count = 0;
  for (io::JsonValue item : value.Items()) {
    if (count == 0) cells.win = item.OptionalDouble();
    if (count == 1) cells.draw = item.OptionalDouble();
    if (count == 2) cells.loss = item.OptionalDouble();
    ++count;
  }
  return count == 3 ? cells : WdlCells{};
}

// A variation of the record, before sorting.
struct ReadVariation {
  SearchVariation variation;
  double visits = 0;
  bool has_fraction = false;
};

// Reads one row's variations into `row`; false when the row is refused.
class VariationReader {
 public:
  VariationReader(const RowCheck& check, SearchRow& row) : check_(check), row_(row) {}

  bool ReadAll(io::JsonValue list) {
    for (io::JsonValue item : list.Items()) {
      if (!ReadOne(item)) return false;
    }
    FillFractions();
    std::stable_sort(
        read_.begin(), read_.end(),
        [](const ReadVariation& a, const ReadVariation& b) { return a.visits > b.visits; });
    for (const ReadVariation& item : read_) row_.variations.push_back(item.variation);
    return true;
  }

 private:
  bool ReadOne(io::JsonValue item) {
    ReadVariation result;
    const auto move = check_.ReadMove(row_.root, item["root_move"].String(), MoveStyle::kUci);
    if (!move) return false;
    result.visits = item["visit_count"].Double();
    const std::optional<double> fraction = item["visit_fraction"].OptionalDouble();
    result.has_fraction = fraction.has_value();
    result.variation.root_move = TokenOf(*move);
    result.variation.visit_fraction = fraction.value_or(0);
    result.variation.prior = item["prior"].OptionalDouble().value_or(0);
    result.variation.first_node = static_cast<uint32_t>(row_.nodes.size());
    if (!ReadNodes(item["nodes"], row_.root.After(*move))) return false;
    if (row_.nodes.size() == result.variation.first_node) {
      result.variation.synthesised = AddEnding(row_.root.After(*move));
    }
    result.variation.node_count =
        static_cast<uint32_t>(row_.nodes.size()) - result.variation.first_node;
    read_.push_back(result);
    return true;
  }

  bool ReadNodes(io::JsonValue list, Board expected) {
    if (list.kind() == io::JsonKind::kMissing || list.kind() == io::JsonKind::kNull) return true;
    bool ended = false;
    for (io::JsonValue item : list.Items()) {
      const auto board = check_.ReadBoard(item["fen"].String());
      if (!board) return false;
      if (ended || !SameTokens(*board, expected)) {
        check_.Refuse(kNoFollow, fmt::format("found {}, expected {}", ToFen(*board),
                                             ended ? "the end of the line" : ToFen(expected)));
        return false;
      }
      LineNode& node = row_.nodes.emplace_back();
      node.board = *board;
      const std::optional<Wdl> wdl = check_.ReadWdl(WdlOf(item["wdl"]));
      node.valid = wdl.has_value();
      if (wdl) {
        node.wl = static_cast<float>(wdl->win - wdl->loss);
        node.d = static_cast<float>(wdl->draw);
      }
      const std::optional<std::string_view> text = item["move"].OptionalString();
      ended = !text.has_value();
      if (ended) continue;
      const auto move = check_.ReadMove(*board, *text, MoveStyle::kUci);
      if (!move) return false;
      node.move = TokenOf(*move);
      expected = board->After(*move);
    }
    return true;
  }

  // The node that a search leaves out: the position after a move that ends the game.
  bool AddEnding(const Board& board) {
    const chess::Ending ending = chess::EndingOf(board);
    if (ending == chess::Ending::kNone) return false;
    const bool mate = ending == chess::Ending::kCheckmate;
    row_.nodes.push_back(
        {.board = board, .wl = mate ? -1.0F : 0.0F, .d = mate ? 0.0F : 1.0F, .valid = true});
    return true;
  }

  // Records without fractions get them from the visits.
  void FillFractions() {
    double total = 0;
    for (const ReadVariation& item : read_) total += item.visits;
    for (ReadVariation& item : read_) {
      if (!item.has_fraction && total > 0) item.variation.visit_fraction = item.visits / total;
    }
  }

  const RowCheck& check_;
  SearchRow& row_;
  std::vector<ReadVariation> read_;
};

}  // namespace

bool SameTokens(const Board& a, const Board& b) {
  for (chess::PieceType type : chess::kPieceTypes) {
    if (a.pieces(type) != b.pieces(type)) return false;
  }
  return a.pieces(chess::Color::kWhite) == b.pieces(chess::Color::kWhite) &&
         a.castling_rooks() == b.castling_rooks() && a.side_to_move() == b.side_to_move();
}

std::optional<SearchRow> SearchReader::Read(const SearchCells& cells, int64_t row,
                                            SkipCounter& skipped) {
  const RowCheck check(file_, row, skipped);
  const auto root = check.ReadBoard(cells.fen);
  if (!root) return std::nullopt;
  const auto best = check.ReadMove(*root, cells.mcts_action, MoveStyle::kUci);
  if (!best) return std::nullopt;
  SearchRow result{.root = *root, .best_move = TokenOf(*best)};
  const io::JsonLine& json = json_.Parse(cells.variations, static_cast<uint64_t>(row));
  if (!json.ok()) return check.Refuse(kBadJson, Quoted(cells.variations));
  try {
    if (!VariationReader(check, result).ReadAll(json.root())) return std::nullopt;
  } catch (const Error& error) {  // A field that is missing or of another kind.
    return check.Refuse(kBadJson, error.message());
  }
  if (result.nodes.empty()) return check.Refuse(kNoNodes, "");
  result.wdl = check.ReadWdl(cells.wdl);
  return result;
}

std::optional<Ply> PlyReader::Read(const PlyCells& cells, int64_t row, SkipCounter& skipped) {
  const RowCheck check(file_, row, skipped);
  const auto board = check.ReadBoard(cells.fen);
  if (!board) return std::nullopt;
  const auto played = check.ReadMove(*board, cells.played_move, MoveStyle::kModel);
  if (!played) return std::nullopt;
  const auto best = check.ReadMove(*board, cells.best_move, MoveStyle::kModel);
  if (!best) return std::nullopt;
  Ply ply{.board = *board, .played = TokenOf(*played), .best = TokenOf(*best)};
  const bool by_move = cells.played_q && cells.played_d && std::abs(*cells.played_q) <= 1.001 &&
                       *cells.played_d >= -0.001 && *cells.played_d <= 1.001;
  if (by_move) {
    ply.wl = static_cast<float>(*cells.played_q);
    ply.d = static_cast<float>(*cells.played_d);
    ply.valid = true;
  } else if (const auto wdl = check.ReadWdl(cells.wdl)) {
    ply.wl = static_cast<float>(wdl->win - wdl->loss);
    ply.d = static_cast<float>(wdl->draw);
    ply.valid = true;
  }
  return ply;
}

}  // namespace kibitz::decoder
