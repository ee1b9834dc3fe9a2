#include "arena/judge.h"

#include <algorithm>
#include <utility>

#include "arena/game.h"
#include "base/error.h"
#include "base/log.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "students/policy/data/row_source.h"

namespace kibitz::arena {
namespace {

constexpr int kMate = 10000;

}  // namespace

Fields FieldsOf(JudgeOptions& options) {
  Fields fields;
  fields.Add("judge", options.engine, "the engine that scores moves", {.metavar = "PLAYER"});
  fields.Add("judge_nodes", options.nodes, "its nodes for each move", {.min = 1});
  fields.Add("teacher", options.teacher,
             "recorded scores instead: Parquet or JSON lines of 'kibitz oracle evals' with several "
             "lines a position",
             {.metavar = "FILE"});
  return fields;
}

EngineJudge::EngineJudge(const JudgeOptions& options, int threads) : options_(options) {
  const std::vector<Contender> judges = {{.name = options.engine}};
  CheckContenders(judges);
  for (int i = 0; i < threads; ++i) tables_.push_back(std::make_unique<PlayerTable>(judges));
}

std::string EngineJudge::name() const {
  return fmt::format("{} at {} nodes", options_.engine, options_.nodes);
}

std::optional<int> EngineJudge::ScoreOf(const Piece& piece, const chess::Board& board,
                                        std::optional<chess::Move> move) {
  PlayerTable& table = *tables_[static_cast<size_t>(piece.worker)];
  players::Request request{.game = {.start = board}, .stop = piece.stop};
  request.limits.nodes = options_.nodes;
  if (move) request.limits.search_moves = {*move};
  players::Player& player = table.At(0);
  player.NewGame();  // What it knows of the move before must not help.
  return CentipawnsOf(player.Play(request));
}

std::optional<Verdict> EngineJudge::Judge(const Piece& piece, const chess::Board& board,
                                          std::span<const chess::Move> moves) {
  Verdict verdict;
  const auto best = ScoreOf(piece, board, std::nullopt);
  if (!best) return std::nullopt;
  verdict.best = *best;
  std::vector<std::pair<chess::Move, int>> known;
  for (chess::Move move : moves) {
    auto found = std::ranges::find(known, move, &std::pair<chess::Move, int>::first);
    if (found == known.end()) {
      const auto score = ScoreOf(piece, board, move);
      if (!score || piece.stop.stop_requested()) return std::nullopt;
      known.emplace_back(move, *score);
      found = known.end() - 1;
    }
    verdict.moves.push_back(found->second);
    verdict.best = std::max(verdict.best, found->second);
  }
  return verdict;
}

namespace {

// For the side to move.
int ScoreOf(const policy::RawRow& row, chess::Color mover) {
  int64_t white = row.cp.value_or(0);
  if (row.mate) white = *row.mate > 0 ? kMate - *row.mate : -kMate - *row.mate;
  return static_cast<int>(mover == chess::Color::kWhite ? white : -white);
}

}  // namespace

void RecordedJudge::Add(const policy::RawRow& row) {
  const auto board = chess::ParseFen(row.fen, {.drop_wrong_castling = true});
  if (!board) throw Error("{}: {}", path_, board.reason());
  if (row.line.empty() || (!row.cp && !row.mate)) return;
  const auto move =
      chess::ParseMove(*board, row.line.substr(0, row.line.find(' ')), chess::MoveStyle::kUciRook);
  if (!move) throw Error("{}: {}", path_, move.reason());
  auto& analyses = known_[board->key()];
  if (analyses.empty()) positions_.push_back(*board);
  auto& moves = analyses[{row.depth.value_or(0), row.knodes.value_or(0)}];
  if (std::ranges::find(moves, *move, &MoveScore::first) != moves.end()) return;
  moves.emplace_back(*move, ScoreOf(row, board->side_to_move()));
}

RecordedJudge::RecordedJudge(std::string path) : path_(std::move(path)) {
  policy::RowSource source(policy::FindInputs({path_}), {});
  while (auto piece = source.Next()) {
    piece->ForEach([&](const policy::RawRow& row) { Add(row); });
  }
  // The deepest analysis that compares moves.
  for (auto& [key, analyses] : known_) {
    std::erase_if(analyses, [](const auto& item) { return item.second.size() < 2; });
    while (analyses.size() > 1) analyses.erase(analyses.begin());
    for (auto& [effort, moves] : analyses) {
      std::ranges::stable_sort(moves, std::greater(), &MoveScore::second);
    }
  }
  std::erase_if(positions_,
                [&](const chess::Board& board) { return known_.at(board.key()).empty(); });
  if (positions_.empty()) {
    throw Error(
        "{}: no position has scores of two moves or more; make them with 'kibitz oracle "
        "evals' and several lines",
        path_);
  }
}

std::optional<Verdict> RecordedJudge::Judge(const Piece&, const chess::Board& board,
                                            std::span<const chess::Move> moves) {
  const auto found = known_.find(board.key());
  if (found == known_.end() || found->second.empty()) return std::nullopt;
  const std::vector<MoveScore>& scores = found->second.begin()->second;
  Verdict verdict{.best = scores.front().second, .moves = {}};
  for (chess::Move move : moves) {
    const auto score = std::ranges::find(scores, move, &MoveScore::first);
    verdict.moves.push_back(score == scores.end() ? scores.back().second : score->second);
  }
  return verdict;
}

}  // namespace kibitz::arena
