#include "oracles/records/search_teacher.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/interrupt.h"

namespace kibitz::oracles {
namespace {

MoverScore ScoreOf(double q, const std::optional<Mate>& mate) {
  MoverScore score;
  if (mate) {
    score.mate = mate;
  } else {
    score.centipawns = CentipawnsFrom(q);
  }
  return score;
}

Variation VariationOf(const RootMove& move, int64_t visits, int line_plies) {
  Variation variation;
  variation.visits = move.visits;
  variation.fraction = static_cast<double>(move.visits) / static_cast<double>(visits);
  variation.prior = move.prior;
  variation.score = ScoreOf(move.q, move.mate);
  for (const LineNode& node :
       std::span(move.line).first(std::min(move.line.size(), static_cast<size_t>(line_plies)))) {
    variation.nodes.push_back({.move = node.move, .wdl = node.wdl, .visits = node.visits});
  }
  return variation;
}

}  // namespace

int CentipawnsFrom(double q) {
  return static_cast<int>(std::lround(90 * std::tan(1.5637541897 * std::clamp(q, -1.0, 1.0))));
}

SearchTeacher::SearchTeacher(Evaluator& evaluator, const SearchTeacherOptions& options)
    : evaluator_(evaluator), options_(options) {
  CHECK(options_.visits > 1);  // The root alone has no move.
}

std::vector<std::optional<Lesson>> SearchTeacher::Teach(std::span<const GameSoFar> games) {
  // Checks for Ctrl-C after each batch.
  const std::vector<SearchReport> reports = SearchMany(
      evaluator_, games, options_.tree, {.visits = options_.visits}, [] { ThrowIfInterrupted(); });
  std::vector<std::optional<Lesson>> lessons(games.size());
  for (size_t i = 0; i < games.size(); ++i) {
    const SearchReport& report = reports[i];
    if (report.moves.empty() || report.moves.front().visits == 0) continue;
    Lesson& lesson = lessons[i].emplace();
    lesson.best = report.moves.front().move;
    lesson.wdl = report.wdl;
    lesson.score = ScoreOf(report.q, report.mate);
    lesson.depth = report.depth;
    lesson.nodes = report.visits;
    for (const RootMove& move : report.moves) {
      const bool enough =
          options_.max_variations > 0 && std::ssize(lesson.variations) == options_.max_variations;
      if (move.visits == 0 || enough) continue;
      lesson.variations.push_back(VariationOf(move, report.visits - 1, options_.line_plies));
    }
  }
  return lessons;
}

nlohmann::ordered_json SearchTeacher::OptionsJson() const {
  const TreeOptions& tree = options_.tree;
  return {{"kind", "search"},
          {"name", evaluator_.name()},
          {"visits", options_.visits},
          {"leaves", tree.leaves},
          {"cpuct", tree.cpuct},
          {"cpuct_factor", tree.cpuct_factor},
          {"cpuct_base", tree.cpuct_base},
          {"fpu_reduction", tree.fpu_reduction},
          {"two_fold_draws", tree.two_fold_draws},
          {"certainty", tree.certainty},
          {"noise", tree.noise},
          {"noise_alpha", tree.noise_alpha},
          {"noise_seed", tree.seed},
          {"max_variations", options_.max_variations},
          {"line_plies", options_.line_plies}};
}

}  // namespace kibitz::oracles
