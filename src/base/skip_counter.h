// Input that was skipped, and why: counted by reason, with the first place of each. Every command
// reports it the same way, as JSON and as text.
//
//   SkipCounter skipped;
//   skipped.Add("illegal move", {.file = "games.parquet", .row = 812, .detail = "e2e5"});
//   skipped.CountOf("illegal move");   // 1
//   skipped.Text();                    // "1 x illegal move (first: games.parquet, row 812: e2e5)"
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kibitz {

struct SkipPlace {
  std::string file = {};    // Or any other place: "games.pgn:812". Empty: not known.
  int64_t row = -1;         // In the file, from 0; -1: the file as a whole.
  std::string detail = {};  // What was found.

  // "games.parquet, row 812: e2e5"; parts that are not known are left out.
  std::string Text() const;
};

// Not synchronised: give each thread its own and merge them.
class SkipCounter {
 public:
  struct Entry {
    uint64_t count = 0;
    SkipPlace first;
  };

  // The first place of a reason is the lowest row where both have one, so that threads do not show;
  // else the one added first.
  void Add(const std::string& reason, const SkipPlace& place = {}, uint64_t count = 1);
  // The same, and logs a warning when the reason is new.
  void AddAndWarn(const std::string& reason, const SkipPlace& place = {}, uint64_t count = 1);
  void Merge(const SkipCounter& other);
  void MergeAndWarn(const SkipCounter& other);

  bool empty() const { return entries_.empty(); }
  uint64_t CountOf(const std::string& reason) const;
  // By reason; a copy, so that it can be walked while the counter goes on or is gone.
  std::map<std::string, Entry> entries() const { return entries_; }
  // {"illegal move": {"count": 3, "first": "games.parquet, row 812: e2e5"}}; "first" only where a
  // place is known.
  nlohmann::ordered_json ToJson() const;
  // "3 x illegal move (first: games.parquet, row 812: e2e5); 1 x ..."; empty without entries.
  std::string Text() const;

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace kibitz
