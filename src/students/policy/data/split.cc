#include "students/policy/data/split.h"

namespace kibitz::policy {

std::string_view NameOf(Split split) {
  constexpr std::array<std::string_view, 3> kNames = {"train", "val", "test"};
  return kNames[static_cast<size_t>(split)];
}

Split SplitOf(uint64_t hash, const SplitShares& shares) {
  // The order in the files is the hash's; splits must not be stretches of it.
  uint64_t mixed = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
  mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93;
  const double place = static_cast<double>((mixed ^ mixed >> 32) >> 11) * 0x1p-53;
  if (place < shares.test) return Split::kTest;
  return place < shares.test + shares.val ? Split::kVal : Split::kTrain;
}

}  // namespace kibitz::policy
