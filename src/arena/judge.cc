#include "arena/judge.h"

#include <algorithm>
#include <utility>

#include "arena/game.h"
#include "base/error.h"
#include "base/log.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "io/tables/jsonl.h"

namespace kibitz::arena {
namespace {

constexpr int kMate = 10000;

}  // namespace

Fields FieldsOf(JudgeOptions& options) {
  Fields fields;
  fields.Add("judge", options.engine, "the engine that scores moves", {.metavar = "PLAYER"});
  fields.Add("judge_nodes", options.nodes, "its nodes for each move", {.min = 1});
  fields.Add("teacher", options.teacher,
             "recorded scores instead: JSON lines of 'kibitz oracle evals' with several lines a "
             "position",
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

RecordedJudge::RecordedJudge(std::string path) : path_(std::move(path)) {
  io::JsonLines lines(path_);
  while (const io::JsonLine* line = lines.Next()) {
    if (!line->ok()) throw Error("{}", line->problem());
    const auto board = chess::ParseFen(line->root()["fen"].String(), {.drop_wrong_castling = true});
    if (!board) throw Error("{}: {}", line->Place(), board.reason());
    Scores best;
    for (io::JsonValue eval : line->root()["evals"].Items()) {
      Scores scores{.depth = eval["depth"].OptionalInt().value_or(0), .moves = {}};
      for (io::JsonValue pv : eval["pvs"].Items()) {
        const std::string_view words = pv["line"].String();
        const auto move =
            chess::ParseMove(*board, words.substr(0, words.find(' ')), chess::MoveStyle::kUciRook);
        if (!move) throw Error("{}: {}", line->Place(), move.reason());
        int64_t white = pv["cp"].OptionalInt().value_or(0);
        if (const auto mate = pv["mate"].OptionalInt()) {
          white = *mate > 0 ? kMate - *mate : -kMate - *mate;
        }
        const bool mover_is_white = board->side_to_move() == chess::Color::kWhite;
        scores.moves.emplace_back(*move, static_cast<int>(mover_is_white ? white : -white));
      }
      if (scores.depth > best.depth && scores.moves.size() >= 2) best = std::move(scores);
    }
    if (best.moves.empty()) continue;
    std::ranges::stable_sort(best.moves, std::greater(), &std::pair<chess::Move, int>::second);
    if (known_.emplace(board->key(), std::move(best)).second) positions_.push_back(*board);
  }
  if (known_.empty()) {
    throw Error(
        "{}: no position has scores of two moves or more; make them with 'kibitz oracle "
        "evals' and several lines",
        path_);
  }
}

std::optional<Verdict> RecordedJudge::Judge(const Piece&, const chess::Board& board,
                                            std::span<const chess::Move> moves) {
  const auto found = known_.find(board.key());
  if (found == known_.end()) return std::nullopt;
  const auto& scores = found->second.moves;
  Verdict verdict{.best = scores.front().second, .moves = {}};
  for (chess::Move move : moves) {
    const auto score = std::ranges::find(scores, move, &std::pair<chess::Move, int>::first);
    verdict.moves.push_back(score == scores.end() ? scores.back().second : score->second);
  }
  return verdict;
}

}  // namespace kibitz::arena
