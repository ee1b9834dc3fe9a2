#include "oracles/records/pgn_records.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/interrupt.h"
#include "games/chess/rules.h"
#include "oracles/records/rate_note.h"
#include "oracles/records/rows.h"
#include "oracles/records/source_games.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::PgnGame;
using chess::PgnNote;

// A game with the labels of its file.
struct NotedGame {
  std::string place;
  GameSoFar game;
  std::string result;
  std::vector<Board> boards;                       // One more than moves.
  std::vector<std::optional<MoverScore>> scores;   // By board.
  std::vector<std::optional<chess::Move>> better;  // By move: the best move.
  std::vector<std::optional<Lesson>> lessons;      // By move; the teacher's.
};

MoverScore ScoreOf(const chess::PgnEval& eval, chess::Color mover) {
  WhiteScore score;
  score.centipawns = eval.centipawns;
  if (eval.mate) score.mate = Mate{*eval.mate > 0, std::abs(*eval.mate)};
  return ToMover(score, mover);
}

// A variation for a move that is marked as a mistake.
std::optional<chess::Move> BetterMove(const PgnNote& note) {
  const bool mistake = std::any_of(note.nags.begin(), note.nags.end(),
                                   [](int nag) { return nag == 2 || nag == 4 || nag == 6; });
  if (!mistake) return std::nullopt;
  for (const chess::PgnVariation& variation : note.variations) {
    if (!variation.moves.empty()) return variation.moves.front();
  }
  return std::nullopt;
}

NotedGame Noted(const PgnGame& game, const std::string& place, bool ignore_notes) {
  NotedGame noted;
  noted.place = place;
  noted.game = {.start = game.start, .moves = game.moves};
  noted.result = NameOf(game.result);
  noted.boards = {game.start};
  for (chess::Move move : game.moves) noted.boards.push_back(noted.boards.back().After(move));
  noted.scores.resize(noted.boards.size());
  noted.better.resize(game.moves.size());
  noted.lessons.resize(game.moves.size());
  if (ignore_notes) return noted;
  for (const PgnNote& note : game.notes) {
    if (note.ply >= noted.boards.size()) continue;
    if (const auto eval = chess::EvalOf(note.comment)) {
      noted.scores[note.ply] = ScoreOf(*eval, noted.boards[note.ply].side_to_move());
    }
    if (note.ply > 0) noted.better[note.ply - 1] = BetterMove(note);
  }
  return noted;
}

class PgnRun {
 public:
  PgnRun(Teacher* teacher, const PgnRecordOptions& options, const PartStore& parts,
         SkipCounter& skipped, Progress& progress)
      : teacher_(teacher),
        options_(options),
        parts_(parts),
        skipped_(skipped),
        progress_(progress),
        rate_(progress) {}

  bool Take(const PgnGame& game, const std::string& place) {
    if (options_.limit > 0 && games_ == options_.limit) return false;
    if (game.moves.empty()) {
      skipped_.AddAndWarn("game without moves", {.file = place});
      return true;
    }
    if (!seen_.insert(KeyOf(game)).second) {
      skipped_.Add(kDuplicateReason, {.file = place});
      return true;
    }
    if (parts_.Needs(part_)) {
      waiting_.push_back(Noted(game, place, options_.ignore_notes));
    }
    ++games_;
    if (games_ % options_.part_games == 0) EndPart();
    return true;
  }

  int64_t Finish() {
    if (games_ % options_.part_games != 0) EndPart();
    return asked_;
  }

 private:
  static uint64_t KeyOf(const PgnGame& game) {
    uint64_t key = game.start.key();
    for (chess::Move move : game.moves)
      key = (key ^ move.bits()) * 0x9e3779b97f4a7c15 + (key >> 29);
    return key;
  }

  void EndPart() {
    ThrowIfInterrupted();
    if (parts_.Needs(part_)) {
      if (teacher_ != nullptr) AskTeacher();
      std::vector<Json> units;
      for (const NotedGame& game : waiting_) {
        const GameRecord record = RecordOf(game);
        if (!record.plies.empty()) units.push_back(GameUnit(record));
      }
      parts_.Write(part_, units);
    }
    progress_.Add(static_cast<uint64_t>(games_) - progress_.done());
    waiting_.clear();
    ++part_;
  }

  void AskTeacher() {
    struct Place {
      size_t game;
      size_t ply;
    };
    std::vector<Place> places;
    std::vector<GameSoFar> questions;
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const NotedGame& noted = waiting_[i];
      for (size_t ply = 0; ply < noted.game.moves.size(); ++ply) {
        if (noted.better[ply] && noted.scores[ply]) continue;
        const auto end = noted.game.moves.begin() + static_cast<std::ptrdiff_t>(ply);
        places.push_back({i, ply});
        questions.push_back({noted.game.start, {noted.game.moves.begin(), end}});
      }
    }
    auto lessons = teacher_->Teach(questions);
    asked_ += static_cast<int64_t>(questions.size());
    rate_.Show(asked_);
    for (size_t i = 0; i < places.size(); ++i) {
      waiting_[places[i].game].lessons[places[i].ply] = std::move(lessons[i]);
    }
  }

  GameRecord RecordOf(const NotedGame& noted) {
    const std::string name = std::filesystem::path(noted.place).filename().string();
    GameRecord record{.id = name, .result = noted.result, .plies = {}};
    for (size_t ply = 0; ply < noted.game.moves.size(); ++ply) {
      const auto best = BestOf(noted, ply);
      if (!best) {
        skipped_.Add("no best move in the PGN; --engine or --net would find one",
                     {.file = fmt::format("{}, ply {}", noted.place, ply)});
        continue;
      }
      PlyRecord& row = record.plies.emplace_back();
      row = {.ply = static_cast<int>(ply),
             .board = noted.boards[ply],
             .played = noted.game.moves[ply],
             .best = *best,
             .wdl = WdlAt(noted, ply),
             .played_wdl = {}};
      if (const auto after = WdlAt(noted, ply + 1)) row.played_wdl = after->Reversed();
    }
    return record;
  }

  std::optional<chess::Move> BestOf(const NotedGame& noted, size_t ply) const {
    if (noted.better[ply]) return noted.better[ply];
    if (noted.lessons[ply]) return noted.lessons[ply]->best;
    const auto& before = noted.scores[ply];
    if (!before) return std::nullopt;
    if (chess::IsCheckmate(noted.boards[ply + 1])) return noted.game.moves[ply];
    const auto& after = noted.scores[ply + 1];
    if (!after) return std::nullopt;
    const double lost = Bounded(*before) + Bounded(*after);  // The latter is the other side's.
    if (lost > options_.tolerance) return std::nullopt;
    return noted.game.moves[ply];
  }

  // Differences beyond ten pawns are ignored.
  static double Bounded(const MoverScore& score) {
    return std::clamp(AsCentipawns(score), -1000.0, 1000.0);
  }

  std::optional<Wdl> WdlAt(const NotedGame& noted, size_t board) const {
    const auto game = std::span(noted.boards).first(board + 1);
    const chess::Ending ending = chess::EndingOf(game);
    // A draw that could be claimed does not end the game.
    if (ending != chess::Ending::kNone && board + 1 == noted.boards.size()) {
      return WdlOfEnding(ending == chess::Ending::kCheckmate);
    }
    if (noted.scores[board]) return WdlOf(*noted.scores[board], options_.wdl_model);
    if (board < noted.lessons.size() && noted.lessons[board]) return noted.lessons[board]->wdl;
    return std::nullopt;
  }

  Teacher* teacher_;
  PgnRecordOptions options_;
  const PartStore& parts_;
  SkipCounter& skipped_;
  Progress& progress_;
  RateNote rate_;
  int64_t games_ = 0;  // Taken.
  int64_t part_ = 0;   // The one being collected.
  int64_t asked_ = 0;
  std::vector<NotedGame> waiting_;     // Of this part.
  std::unordered_set<uint64_t> seen_;  // Keys of games.
};

}  // namespace

Fields FieldsOf(PgnRecordOptions& options) {
  Fields fields;
  fields.Add("tolerance", options.tolerance,
             "without --engine: max centipawns that a move may lose and still count as best",
             {.min = 0, .max = 1000});
  fields.Add("ignore_notes", options.ignore_notes, "ignore evaluations and variations in the file");
  fields.Add("limit", options.limit, "max games; 0: all", {.min = 0});
  fields.Add("part_games", options.part_games, "games of a part, the unit of resuming", {.min = 1});
  return fields;
}

int64_t MakePgnRecords(const std::vector<std::string>& paths, Teacher* teacher,
                       const PgnRecordOptions& options, const PartStore& parts,
                       SkipCounter& skipped, Progress& progress) {
  PgnRun run(teacher, options, parts, skipped, progress);
  for (const std::string& path : paths) {
    ForEachPgnGame(
        path, {.comments = !options.ignore_notes, .variations = !options.ignore_notes}, skipped,
        [&](const PgnGame& game, const std::string& place) { return run.Take(game, place); });
  }
  return run.Finish();
}

}  // namespace kibitz::oracles
