// A tree search with a network as a teacher: lessons are its visits.
//
//   SearchTeacher teacher(network, {.visits = 800});
//   auto lessons = teacher.Teach(games);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracles/records/teacher.h"
#include "oracles/search/evaluator.h"
#include "oracles/search/search.h"

namespace kibitz::oracles {

struct SearchTeacherOptions {
  int64_t visits = 800;
  TreeOptions tree = {};
  int max_variations = 0;  // Max root moves of a lesson; 0: all visited ones.
  int line_plies = 10;     // Max, the root move included.
};

class SearchTeacher : public Teacher {
 public:
  // `evaluator` is borrowed.
  SearchTeacher(Evaluator& evaluator, const SearchTeacherOptions& options);

  std::vector<std::optional<Lesson>> Teach(std::span<const GameSoFar> games) override;
  nlohmann::ordered_json OptionsJson() const override;

 private:
  Evaluator& evaluator_;
  SearchTeacherOptions options_;
};

// Centipawns for win minus loss as lc0 shows them: 90 tan(1.5637541897 q).
int CentipawnsFrom(double q);

}  // namespace kibitz::oracles
