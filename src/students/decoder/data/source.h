// Training samples in Parquet files, in pieces that are decoded one at a time: row groups. What a
// piece holds is known before it is read, so that any sample can be found by its number.
//
//   std::unique_ptr<Source> searches = OpenSearches({"variations/"}, thinking_options);
//   std::shared_ptr<const Unit> unit = searches->Load(0);
//   Sequence sample = unit->Make(3, rng);
//
// Opening looks at every file: one with nothing usable is an Error that says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/skip_counter.h"
#include "students/decoder/data/game_sequence.h"
#include "students/decoder/data/thinking_sequence.h"

namespace kibitz::decoder {

// The decoded candidates of a piece. A candidate is a row or a game of the file; one that is wrong
// keeps its number, but makes no sequence.
class Unit {
 public:
  virtual ~Unit() = default;
  virtual bool Usable(size_t candidate) const = 0;
  virtual Sequence Make(size_t candidate, Rng& rng) const = 0;
  virtual size_t Bytes() const = 0;  // Of memory, about.
};

class Source {
 public:
  virtual ~Source() = default;

  // Candidates in each unit, at least one.
  const std::vector<uint64_t>& unit_sizes() const { return unit_sizes_; }
  uint64_t size() const { return size_; }
  const std::string& name() const { return name_; }

  // Reads and decodes a unit. May be called from several threads. Rows that cannot be used are
  // added to skipped() the first time a unit is loaded. Throws Error for a broken file.
  std::shared_ptr<const Unit> Load(size_t unit) const;

  // So far; a copy.
  SkipCounter skipped() const;

 protected:
  explicit Source(std::string name) : name_(std::move(name)) {}
  void AddUnit(uint64_t size);
  // Throws Error when there is no unit.
  void CheckNotEmpty() const;
  // For constructors, before other threads can call Load.
  SkipCounter& skipped_at_open() { return skipped_; }

 private:
  virtual std::shared_ptr<const Unit> Decode(size_t unit, SkipCounter& skipped) const = 0;

  std::string name_;  // "games" or "variations"; for messages.
  std::vector<uint64_t> unit_sizes_;
  uint64_t size_ = 0;
  mutable std::mutex mutex_;
  mutable SkipCounter skipped_;       // Guarded by mutex_.
  mutable std::set<size_t> counted_;  // Units in skipped_. Guarded by mutex_.
};

// Games: columns game_id, ply, fen, played_move, best_move, win, draw, loss, and where a file has
// them played_q, played_d. A game's rows may lie anywhere in one file.
std::unique_ptr<Source> OpenGames(const std::vector<std::string>& paths,
                                  const GameOptions& options);
// Searches: columns fen, variations (JSON), mcts_action, win, draw, loss.
std::unique_ptr<Source> OpenSearches(const std::vector<std::string>& paths,
                                     const ThinkingOptions& options);

// The rows of files or folders of searches, one after another, until `use` returns false. Rows that
// cannot be used are counted.
void ForEachSearch(const std::vector<std::string>& paths, SkipCounter& skipped,
                   const std::function<bool(SearchRow)>& use);
// How many rows there are, usable or not.
uint64_t CountSearches(const std::vector<std::string>& paths);

// One row of a file of searches, by its number in the file. Throws Error when there is no such row
// or it cannot be used.
SearchRow ReadSearch(const std::string& path, uint64_t row);

}  // namespace kibitz::decoder
