#include "students/decoder/data/row_problems.h"

#include <fmt/format.h>

#include <tuple>

#include "base/log.h"

namespace kibitz::decoder {

std::string RowProblem::Text() const {
  const std::string place = row < 0 ? file : fmt::format("{}, row {}", file, row);
  return fmt::format("{}: {}{}{}", place, reason, detail.empty() ? "" : ": ", detail);
}

void RowProblems::Add(const RowProblem& problem, uint64_t count) {
  const std::scoped_lock lock(mutex_);
  Tally& tally = tallies_[problem.reason];
  const bool earlier =
      std::tie(problem.file, problem.row) < std::tie(tally.first.file, tally.first.row);
  if (tally.count == 0 || earlier) tally.first = problem;
  tally.count += count;
}

void RowProblems::AddAll(const RowProblems& other, bool tell) {
  for (const auto& [reason, tally] : other.tallies()) {
    bool known = false;
    {
      const std::scoped_lock lock(mutex_);
      known = tallies_.contains(reason);
    }
    if (tell && !known) {
      LogWarn("{} (skipped; more of this kind are only counted)", tally.first.Text());
    }
    Add(tally.first, tally.count);
  }
}

std::map<std::string, RowProblems::Tally> RowProblems::tallies() const {
  const std::scoped_lock lock(mutex_);
  return tallies_;
}

bool RowProblems::empty() const {
  const std::scoped_lock lock(mutex_);
  return tallies_.empty();
}

std::string RowProblems::Summary() const {
  std::string text;
  for (const auto& [reason, tally] : tallies()) {
    text += fmt::format("{}{} x {} (first: {})", text.empty() ? "" : "; ", tally.count, reason,
                        tally.first.Text());
  }
  return text;
}

}  // namespace kibitz::decoder
