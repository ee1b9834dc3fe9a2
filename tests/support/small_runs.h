// Small runs of every long command, for tests of what happens when they are stopped, doubled or
// resumed: inputs of a few kB, a second or so of work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/test_data.h"

namespace kibitz::testing {

class SmallRuns {
 public:
  struct Options {
    uint64_t evaluation_rows = 1000;
  };
  // Writes the inputs.
  SmallRuns() : SmallRuns(Options()) {}
  explicit SmallRuns(const Options& options);

  const std::string& path() const { return folder_.path(); }
  std::string File(const std::string& name) const { return folder_.File(name); }

  using Words = std::vector<std::string>;
  // Command lines; `more` goes to the end. Run "NAME" lives in File("NAME").
  Words Finetune(const std::string& name, const Words& more = {}) const;
  Words Precompute(const std::string& name, const Words& more = {}) const;
  // Of the shards in File("SHARDS").
  Words Merge(const std::string& shards, const std::string& name, const Words& more = {}) const;
  Words OracleGames(const std::string& name, const Words& more = {}) const;
  Words OracleVariations(const std::string& name, const Words& more = {}) const;
  Words OracleEvals(const std::string& name, const Words& more = {}) const;
  Words Generate(const std::string& name, const Words& more = {}) const;
  Words Pack(const std::string& name, const Words& more = {}) const;
  Words ArenaMatch(const std::string& name, const Words& more = {}) const;

  std::string net() const { return File("net.pb"); }
  std::string games() const { return File("games.pgn"); }
  std::string evaluations() const { return File("evals.jsonl"); }
  std::string searches() const { return File("searches.parquet"); }

 private:
  TempFolder folder_;
};

}  // namespace kibitz::testing
