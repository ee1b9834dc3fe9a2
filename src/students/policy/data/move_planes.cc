#include "students/policy/data/move_planes.h"

#include <algorithm>
#include <cstdlib>

#include "students/policy/data/vocabulary.h"

namespace kibitz::policy {
namespace {

int Sign(int value) { return (value > 0) - (value < 0); }

int PlaneOf(const MoveWord& word) {
  const int files = word.to % 8 - word.from % 8;
  const int ranks = word.to / 8 - word.from / 8;
  if (word.promotion > 0) return 64 + (word.promotion - 1) * 3 + files + 1;
  if (std::abs(files * ranks) == 2) {
    return 56 + (files > 0 ? 4 : 0) + (ranks > 0 ? 2 : 0) + (std::abs(files) == 2 ? 1 : 0);
  }
  const int direction = (Sign(files) + 1) * 3 + Sign(ranks) + 1;  // 4 is none.
  const int distance = std::max(std::abs(files), std::abs(ranks));
  return (direction > 4 ? direction - 1 : direction) * 7 + distance - 1;
}

}  // namespace

const std::vector<MovePlane>& MovePlanes() {
  static const std::vector<MovePlane> planes = [] {
    std::vector<MovePlane> made;
    const Vocabulary& all = Vocabulary::Full();
    for (int i = 0; i < all.size(); ++i) {
      made.push_back(
          {.plane = static_cast<uint8_t>(PlaneOf(all[i])), .from = all[i].from, .to = all[i].to});
    }
    return made;
  }();
  return planes;
}

}  // namespace kibitz::policy
