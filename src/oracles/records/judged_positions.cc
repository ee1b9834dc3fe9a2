#include "oracles/records/judged_positions.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/interrupt.h"
#include "games/chess/fen.h"
#include "oracles/records/rows.h"

namespace kibitz::oracles {
namespace {

// Positions a batch: enough to keep engines busy, few enough for smooth progress. Rows of positions
// that an engine searches between two ucinewgame begin with a batch.
constexpr size_t kBatch = 256;

using Judge = std::function<std::vector<Json>(std::span<const GameSoFar>)>;

int64_t FillParts(std::span<const GameSoFar> positions, int64_t part_size, const PartStore& parts,
                  Progress& progress, const Judge& judge) {
  int64_t asked = 0;
  const auto size = static_cast<size_t>(part_size);
  for (size_t first = 0; first < positions.size(); first += size) {
    const auto some = positions.subspan(first, std::min(size, positions.size() - first));
    const auto part = static_cast<int64_t>(first / size);
    if (!parts.Needs(part)) {
      progress.Add(some.size());
      continue;
    }
    std::vector<Json> units;
    for (size_t begin = 0; begin < some.size(); begin += kBatch) {
      ThrowIfInterrupted();
      const auto batch = some.subspan(begin, std::min(kBatch, some.size() - begin));
      for (Json& unit : judge(batch)) units.push_back(std::move(unit));
      progress.Add(batch.size());
    }
    parts.Write(part, units);
    asked += static_cast<int64_t>(some.size());
  }
  return asked;
}

// The position as a game without history.
GameSoFar WithoutPast(const GameSoFar& game) {
  const std::string fen = ToFen(game.Current(), {.counters = false});
  return {.start = *chess::ParseFen(fen), .moves = {}};
}

}  // namespace

int64_t JudgeSearches(Teacher& teacher, std::span<const GameSoFar> positions, int64_t part_size,
                      const PartStore& parts, Progress& progress) {
  return FillParts(positions, part_size, parts, progress, [&](std::span<const GameSoFar> batch) {
    const auto lessons = teacher.Teach(batch);
    std::vector<Json> units;
    for (size_t i = 0; i < batch.size(); ++i) {
      CHECK(lessons[i].has_value());
      units.push_back(SearchUnit(batch[i].Current(), *lessons[i]));
    }
    return units;
  });
}

int64_t JudgeEvals(std::span<const std::unique_ptr<Teacher>> sessions,
                   std::span<const GameSoFar> positions, int64_t part_size, const PartStore& parts,
                   Progress& progress) {
  return FillParts(positions, part_size, parts, progress, [&](std::span<const GameSoFar> batch) {
    std::vector<GameSoFar> questions;
    for (const GameSoFar& game : batch) questions.push_back(WithoutPast(game));
    std::vector<std::vector<Lesson>> found(batch.size());
    for (const auto& session : sessions) {
      const auto lessons = session->Teach(questions);
      for (size_t i = 0; i < batch.size(); ++i) {
        CHECK(lessons[i].has_value());
        found[i].push_back(*lessons[i]);
      }
    }
    std::vector<Json> units;
    for (size_t i = 0; i < batch.size(); ++i) {
      units.push_back(EvalUnit(questions[i].start, found[i]));
    }
    return units;
  });
}

}  // namespace kibitz::oracles
