// Lines as a mad chess program would send them to an engine: real commands, damaged ones, words out
// of place, binary noise, NULs, and now and then a megabyte. No newline is among them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace kibitz::testing {

class MadUciLines {
 public:
  explicit MadUciLines(uint64_t seed)
      : rng_({.seed = seed, .epoch = 0, .sample = 0, .purpose = Purpose("uci lines")}) {}

  std::string Next();

 private:
  using List = std::vector<std::string>;

  const std::string& Pick(const List& list) { return list[rng_.Below(list.size())]; }
  std::string Line();
  std::string Words(uint64_t count);
  std::string Bytes(uint64_t count);
  std::string Damaged(std::string line);
  std::string Game();

  Rng rng_;
};

}  // namespace kibitz::testing
