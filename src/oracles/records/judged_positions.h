// Positions that a teacher judges: searches for the decoder, evaluations for the policy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/progress.h"
#include "oracles/records/part_store.h"
#include "oracles/records/teacher.h"

namespace kibitz::oracles {

// Both fill the parts that are missing, `part_size` positions each, and return how many positions
// were asked about. Progress counts positions.

// The teacher sees the game before each position.
int64_t JudgeSearches(Teacher& teacher, std::span<const GameSoFar> positions, int64_t part_size,
                      const PartStore& parts, Progress& progress);

// Every teacher is a session. Positions are asked about without their past and with a fresh count
// of moves, so that an evaluation belongs to the four fields of its FEN.
int64_t JudgeEvals(std::span<const std::unique_ptr<Teacher>> sessions,
                   std::span<const GameSoFar> positions, int64_t part_size, const PartStore& parts,
                   Progress& progress);

}  // namespace kibitz::oracles
