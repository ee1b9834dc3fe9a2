// Which positions are for training and which are held out, decided by the position alone.
//
//   const Split split = SplitOf(HashOf(position), {.val = 0.01, .test = 0.01});
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace kibitz::policy {

enum class Split : uint8_t { kTrain, kVal, kTest };
inline constexpr std::array kSplits = {Split::kTrain, Split::kVal, Split::kTest};
std::string_view NameOf(Split split);  // "train", "val", "test"

// Shares of the positions that are held out; the rest is for training.
struct SplitShares {
  double val = 0.01;
  double test = 0.01;
};
// By the position alone: it keeps its split when other positions come or go.
Split SplitOf(uint64_t hash, const SplitShares& shares);

}  // namespace kibitz::policy
