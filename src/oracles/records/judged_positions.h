// Records of single positions: searches for the decoder, evaluations for the policy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/progress.h"
#include "oracles/records/part_store.h"
#include "oracles/records/teacher.h"

namespace kibitz::oracles {

// Both write the missing parts, `part_size` positions each, and return the number of positions
// searched. Progress counts positions.

// The teacher sees the game before each position.
int64_t JudgeSearches(Teacher& teacher, std::span<const GameSoFar> positions, int64_t part_size,
                      const PartStore& parts, Progress& progress);

// Every teacher is a session. Positions are searched without history and with counters reset, so
// that an evaluation depends on the first four fields of the FEN alone.
int64_t JudgeEvals(std::span<const std::unique_ptr<Teacher>> sessions,
                   std::span<const GameSoFar> positions, int64_t part_size, const PartStore& parts,
                   Progress& progress);

}  // namespace kibitz::oracles
