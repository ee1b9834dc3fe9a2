// What is wrong with rows of training data: counted by reason, told once for each reason with file
// and row.
//
//   problems.Add({.reason = "illegal move", .detail = "e2e5 in <fen>", .file = path, .row = 812});
//   problems.counts()["illegal move"];
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace kibitz::decoder {

struct RowProblem {
  std::string reason;  // The heading it is counted under.
  std::string detail;
  std::string file;
  int64_t row = -1;  // In the file, from 0; -1 for the file as a whole.

  // "games.parquet, row 812: illegal move: e2e5 in ...".
  std::string Text() const;
};

// May be used from several threads.
class RowProblems {
 public:
  struct Tally {
    uint64_t count = 0;
    RowProblem first;
  };

  // Keeps the problem with the lowest file and row as the first of its reason.
  void Add(const RowProblem& problem, uint64_t count = 1);
  // The same for all of another collection. With `tell`, warns of reasons that are new here.
  void AddAll(const RowProblems& other, bool tell);

  std::map<std::string, Tally> tallies() const;
  bool empty() const;
  // "3 rows: illegal move (games.parquet, row 812: ...); 1 row: ...".
  std::string Summary() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Tally> tallies_;  // Guarded by mutex_.
};

}  // namespace kibitz::decoder
