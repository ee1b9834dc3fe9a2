// Made-up evaluations as the Lichess database has them: positions of legal games, analysed in
// sessions of one to three lines, the same position again and again far apart in the file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kibitz::testing {

struct EvaluationRow {
  std::string fen;   // Four fields.
  std::string line;  // Ten to eighteen moves, castling as king takes rook.
  int64_t depth = 0;
  int64_t knodes = 0;
  std::optional<int64_t> cp;  // From White's point of view, as mate.
  std::optional<int64_t> mate;
  bool same_session = false;  // As the row before.
};

struct EvaluationPlan {
  uint64_t rows = 1000;
  uint64_t positions = 400;  // About as many, rounded to whole games.
  uint64_t seed = 1;
};

// Calls use(row) for every row, in order. Chance hangs on the seed and the place alone.
void MakeEvaluations(const EvaluationPlan& plan,
                     const std::function<void(const EvaluationRow&)>& use);

// The same rows as files: Parquet in Hugging Face's layout, and JSON lines in Lichess's own, a line
// for each session.
void WriteEvaluations(const EvaluationPlan& plan, const std::string& parquet,
                      const std::string& jsonl);

}  // namespace kibitz::testing
