// What of an input was left out and why: counted by reason, the first of each told with its place.
//
//   skipped.Add("Chess960 game", "games.pgn:812");
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace kibitz::oracles {

class Skipped {
 public:
  // Warns of a reason that is new, unless it is nothing to worry about.
  void Add(const std::string& reason, const std::string& place, bool warn = true);

  int64_t CountOf(const std::string& reason) const;
  // {"Chess960 game": {"count": 3, "first": "games.pgn:812"}}
  nlohmann::ordered_json ToJson() const;

 private:
  struct Tally {
    int64_t count = 0;
    std::string first;
  };
  std::map<std::string, Tally> tallies_;
};

}  // namespace kibitz::oracles
