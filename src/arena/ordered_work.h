// Numbered pieces of work on several threads, with results taken in the order of their numbers: the
// same results whatever the number of threads, and whichever piece finishes first. Results are kept
// in a journal, so that a killed command goes on where it was. A journal that is shared with other
// ranks brings theirs: each does its part, and all take all results.
//
//   DoInOrder(0, games, {.threads = 2, .journal = &journal, .progress = &progress},
//             [&](const Piece& piece) { return Play(piece); },
//             [&](int64_t number, const Json& result) { return Count(number, result); });
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>

#include "arena/run_journal.h"
#include "base/progress.h"

namespace kibitz::arena {

using Json = nlohmann::ordered_json;

struct Piece {
  int64_t number = 0;
  int worker = 0;             // 0 .. threads - 1: what belongs to one thread is found by it.
  std::stop_token stop = {};  // The result is not wanted any more.
};

struct WorkOptions {
  int threads = 1;
  RunJournal* journal = nullptr;  // May be null.
  // Counts results as they are taken; those of the journal not in the rate. May be null.
  Progress* progress = nullptr;
  std::stop_token stop = {};  // Abandons the pieces under way; nothing more is taken.
  // Whether TakeResult may end the work: then ranks exchange results more often.
  bool ends_early = false;
};

// Called on a worker's thread. Nothing: the piece was abandoned at `stop`.
using DoPiece = std::function<std::optional<Json>(const Piece& piece)>;
// Called on the caller's thread. False: enough, the rest is not wanted.
using TakeResult = std::function<bool(int64_t number, const Json& result)>;

// The pieces first .. first + count - 1. Results that the journal has are not made again. Throws
// Error of kind kInterrupted after Ctrl-C, and the first exception of a worker; ShardPlayed where
// the results of others do not come.
void DoInOrder(int64_t first, int64_t count, const WorkOptions& options, const DoPiece& work,
               const TakeResult& take);

}  // namespace kibitz::arena
