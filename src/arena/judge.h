// What moves of a position are worth, by an engine at fixed nodes or by recorded scores.
//
//   EngineJudge judge({.engine = "stockfish", .nodes = 20000}, 2);
//   const std::optional<Verdict> verdict = judge.Judge(piece, board, moves);
//   if (verdict) Use(verdict->best, verdict->moves[0]);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arena/ordered_work.h"
#include "arena/player_table.h"
#include "base/options.h"
#include "games/chess/board.h"
#include "students/policy/data/rows.h"

namespace kibitz::arena {

// In centipawns for the side to move; mates count 10000 less their moves.
struct Verdict {
  int best = 0;            // Of the best move known.
  std::vector<int> moves;  // Of the moves asked about, in their order.
};

class Judging {
 public:
  virtual ~Judging() = default;
  // On the thread of this piece. Nothing when it does not know, or when stopped.
  virtual std::optional<Verdict> Judge(const Piece& piece, const chess::Board& board,
                                       std::span<const chess::Move> moves) = 0;
  // For people, and for the journal.
  virtual std::string name() const = 0;
};

struct JudgeOptions {
  std::string engine = "stockfish";
  int64_t nodes = 20000;     // For each move that is judged, and for the best one.
  std::string teacher = {};  // A file of scores instead; "": the engine.
};
Fields FieldsOf(JudgeOptions& options);

// An engine that searches each move by itself.
class EngineJudge final : public Judging {
 public:
  EngineJudge(const JudgeOptions& options, int threads);

  std::optional<Verdict> Judge(const Piece& piece, const chess::Board& board,
                               std::span<const chess::Move> moves) override;
  std::string name() const override;

 private:
  std::optional<int> ScoreOf(const Piece& piece, const chess::Board& board,
                             std::optional<chess::Move> move);

  JudgeOptions options_;
  std::vector<std::unique_ptr<PlayerTable>> tables_;
};

// Scores as 'kibitz oracle evals' writes them, Parquet or JSON lines: the deepest analysis of a
// position, of two lines or more. A move that it does not list is at most as good as the last one
// listed, and counts so.
class RecordedJudge final : public Judging {
 public:
  // Throws Error.
  explicit RecordedJudge(std::string path);

  std::optional<Verdict> Judge(const Piece& piece, const chess::Board& board,
                               std::span<const chess::Move> moves) override;
  std::string name() const override { return path_; }
  // The positions it knows, in the order of the file.
  const std::vector<chess::Board>& positions() const { return positions_; }

 private:
  using MoveScore = std::pair<chess::Move, int>;
  using Effort = std::pair<int64_t, int64_t>;  // Depth, thousands of nodes.

  // One line of an analysis.
  void Add(const policy::RawRow& row);

  std::string path_;
  // By the position's key: its analyses, of which one remains, the best move first.
  std::map<uint64_t, std::map<Effort, std::vector<MoveScore>>> known_;
  std::vector<chess::Board> positions_;
};

}  // namespace kibitz::arena
