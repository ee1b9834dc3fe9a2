// A teacher, such as a UCI engine, as an evaluator for a search: its wdl is the value, its lines'
// fractions are the priors. Moves without a line share `rest` equally.
//
//   TeacherEvaluator evaluator(std::make_unique<EngineTeacher>(options), 16);
//   Search(evaluator, tree, {.visits = 100});
#pragma once

#include <memory>
#include <span>
#include <string>

#include "oracles/records/teacher.h"
#include "oracles/search/evaluator.h"

namespace kibitz::oracles {

class TeacherEvaluator : public Evaluator {
 public:
  // Positions are searched without their history, `batch` at a time.
  TeacherEvaluator(std::unique_ptr<Teacher> teacher, int batch, double rest = 0.05);

  void Evaluate(std::span<const Question> questions, std::span<Evaluation> answers) override;
  int batch() const override { return batch_; }
  std::string name() const override;

 private:
  std::unique_ptr<Teacher> teacher_;
  int batch_;
  double rest_;
};

}  // namespace kibitz::oracles
