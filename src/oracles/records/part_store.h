// Long work in numbered parts, so that a kill loses no more than the parts in progress. Until OUT
// is complete, a folder OUT.parts holds settings.json and a file of JSON lines for each finished
// part. OUT.json says how a complete OUT was made.
//
//   PartStore store(out, options);
//   if (store.finished()) return;
//   for (int64_t part = 0; part < parts; ++part) {
//     if (store.Needs(part)) store.Write(part, Work(part));
//   }
//   store.ForEachUnit([&](const io::JsonLine& unit) { Use(unit.root()); });   // Into OUT.
//   store.Finish(summary);
//
// Existing parts must have been made with the same options. Several processes can fill one folder,
// a slice of the parts each; then one without a slice joins them.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/slice.h"
#include "base/write_lock.h"
#include "io/tables/jsonl.h"

namespace kibitz::oracles {

class PartStore {
 public:
  using Json = nlohmann::ordered_json;

  // Takes the lock of OUT first. Throws Error where OUT or its parts were made with other options
  // or by another program; `fresh` removes them instead.
  PartStore(std::string out, Json options, bool fresh = false, const Slice& slice = {});

  // OUT is complete and of these options.
  bool finished() const { return finished_; }
  // As given to Finish.
  const Json& summary() const { return summary_; }
  const std::string& out() const { return out_; }
  const Json& options() const { return options_; }

  // Whether the part is missing and of this slice.
  bool Needs(int64_t part) const;
  // May be called from several threads for different parts.
  void Write(int64_t part, std::span<const Json> units) const;
  // Number of parts found at the start.
  int64_t kept() const { return kept_; }

  // All units of all parts in order. Throws Error for a part that cannot be read.
  void ForEachUnit(const std::function<void(const io::JsonLine&)>& use) const;

  // Call when OUT is in place: writes OUT.json and removes the parts.
  void Finish(const Json& summary);

 private:
  std::string PathOf(int64_t part) const;
  bool Has(int64_t part) const;
  void CheckOptions(const Json& found, const std::string& place) const;
  bool LookAtOutput();
  void OpenFolder();

  std::string out_;
  Slice slice_;
  WriteLock lock_;
  std::string folder_;
  Json options_;
  Json summary_;
  bool finished_ = false;
  int64_t kept_ = 0;
};

}  // namespace kibitz::oracles
