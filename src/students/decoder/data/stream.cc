#include "students/decoder/data/stream.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"

namespace kibitz::decoder {

Fields FieldsOf(StreamOptions& options) {
  Fields fields;
  fields.Add("batch_size", options.batch_size, "sequences in a batch", {.min = 1, .max = 1 << 16});
  fields.Add("num_workers", options.num_workers, "threads that make batches",
             {.min = 0, .max = 256});
  fields.Add("prefetch", options.prefetch, "batches made ahead", {.min = 1, .max = 4096});
  fields.Add("window", options.window, "records shuffled together, at least", {.min = 1});
  fields.Add("cache_mb", options.cache_mb, "memory for decoded records kept between epochs, in MB",
             {.min = 0});
  return fields;
}

SourceCursor::SourceCursor(const Source& source, const StreamOptions& options, ThreadPool& pool,
                           uint64_t position)
    : source_(source), options_(options), pool_(pool), position_(position) {
  uint64_t first = 0;
  for (uint64_t size : source.unit_sizes()) {
    unit_first_.push_back(first);
    first += size;
  }
}

// Units being read borrow the source: wait for them.
SourceCursor::~SourceCursor() {
  for (const auto& [unit, loading] : loading_) loading.wait();
}

std::vector<SourceCursor::Window> SourceCursor::PlanEpoch(uint64_t epoch) const {
  const std::vector<uint64_t>& sizes = source_.unit_sizes();
  std::vector<uint32_t> units(sizes.size());
  std::iota(units.begin(), units.end(), 0);
  Rng rng({.seed = options_.seed, .epoch = epoch, .purpose = Purpose("order of units")});
  rng.Shuffle(units);
  std::vector<Window> windows;
  uint64_t first = 0;
  for (uint32_t unit : units) {
    if (windows.empty() || windows.back().size >= static_cast<uint64_t>(options_.window)) {
      windows.push_back({.first = first, .size = 0, .units = {}});
    }
    windows.back().units.push_back(unit);
    windows.back().size += sizes[unit];
    first += sizes[unit];
  }
  return windows;
}

void SourceCursor::Request(const std::vector<uint32_t>& units) {
  for (uint32_t unit : units) {
    if (kept_.contains(unit) || loading_.contains(unit)) continue;
    loading_[unit] = pool_.Submit([this, unit] { return source_.Load(unit); }).share();
  }
}

void SourceCursor::Keep(uint32_t unit, const std::shared_ptr<const Unit>& loaded) {
  const size_t limit = static_cast<size_t>(options_.cache_mb) << 20;
  if (kept_.contains(unit) || kept_bytes_ + loaded->Bytes() > limit) return;
  kept_bytes_ += loaded->Bytes();
  kept_[unit] = loaded;
}

// Makes the window current that holds this place of the epoch, and reads the one after it ahead.
void SourceCursor::Enter(uint64_t epoch, uint64_t within) {
  if (epoch != planned_epoch_) {
    windows_ = PlanEpoch(epoch);
    planned_epoch_ = epoch;
  }
  const auto after =
      std::upper_bound(windows_.begin(), windows_.end(), within,
                       [](uint64_t place, const Window& w) { return place < w.first; });
  window_ = static_cast<size_t>(after - windows_.begin()) - 1;
  const Window& window = windows_[window_];
  const std::vector<uint32_t> next = window_ + 1 < windows_.size()
                                         ? windows_[window_ + 1].units
                                         : PlanEpoch(epoch + 1).front().units;
  std::erase_if(loading_, [&](const auto& entry) {
    const auto has = [&](const std::vector<uint32_t>& units) {
      return std::find(units.begin(), units.end(), entry.first) != units.end();
    };
    if (has(window.units) || has(next)) return false;
    entry.second.wait();
    return true;
  });
  Request(window.units);
  Request(next);
  order_.clear();
  for (uint32_t unit : window.units) {
    for (uint32_t i = 0; i < source_.unit_sizes()[unit]; ++i) order_.push_back({unit, i});
  }
  Rng({.seed = options_.seed,
       .epoch = epoch,
       .sample = window.first,
       .purpose = Purpose("order in window")})
      .Shuffle(order_);
}

SourceCursor::Item SourceCursor::Get() {
  const uint64_t now = epoch();
  const uint64_t within = position_ % source_.size();
  const bool inside = now == planned_epoch_ && !order_.empty() &&
                      within >= windows_[window_].first &&
                      within < windows_[window_].first + windows_[window_].size;
  if (!inside) Enter(now, within);
  const Place place = order_[within - windows_[window_].first];
  std::shared_ptr<const Unit> unit;
  if (const auto kept = kept_.find(place.unit); kept != kept_.end()) {
    unit = kept->second;
  } else {
    unit = loading_.at(place.unit).get();
    Keep(place.unit, unit);
  }
  return {std::move(unit), place.candidate, now, unit_first_[place.unit] + place.candidate};
}

BatchStream::BatchStream(const Source* games, const Source* searches, const StreamOptions& options,
                         uint64_t position)
    : options_(options),
      position_(position),
      loaders_(1),
      makers_(std::max(1, options.num_workers)) {
  CHECK(options.rank >= 0 && options.rank < options.ranks && options.batch_size > 0);
  if (options.variation_ratio > 0 && searches == nullptr) {
    throw Error::Usage("variation_ratio is {}, but there are no variations to learn from",
                       options.variation_ratio);
  }
  if (options.variation_ratio < 1 && games == nullptr) {
    throw Error::Usage("variation_ratio is {}, but there are no games to learn from",
                       options.variation_ratio);
  }
  uint64_t thinking = 0;
  if (options.variation_ratio >= 1) {
    thinking = position;
  } else if (options.variation_ratio > 0) {
    for (uint64_t sample = 0; sample < position; ++sample) thinking += IsThinking(sample) ? 1 : 0;
  }
  if (options.variation_ratio < 1) games_.emplace(*games, options_, loaders_, position - thinking);
  if (options.variation_ratio > 0) searches_.emplace(*searches, options_, loaders_, thinking);
}

BatchStream::~BatchStream() {
  for (auto& making : making_) making.wait();
}

bool BatchStream::IsThinking(uint64_t sample) const {
  if (options_.variation_ratio >= 1) return true;
  if (options_.variation_ratio <= 0) return false;
  Rng rng({.seed = options_.seed, .sample = sample, .purpose = Purpose("mix")});
  return rng.Uniform() < options_.variation_ratio;
}

uint64_t BatchStream::Epoch() const {
  if (games_ && searches_) return std::min(games_->epoch(), searches_->epoch());
  return games_ ? games_->epoch() : searches_->epoch();
}

bool BatchStream::Ended() const {
  return options_.epochs > 0 && Epoch() >= static_cast<uint64_t>(options_.epochs);
}

bool BatchStream::Start() {
  std::vector<Chosen> chosen;
  uint64_t refused = 0;  // One after the other.
  int taken = 0;         // By all ranks.
  while (taken < options_.batch_size * options_.ranks && !Ended()) {
    const uint64_t sample = position_++;
    const bool thinking = IsThinking(sample);
    SourceCursor& cursor = thinking ? *searches_ : *games_;
    SourceCursor::Item item = cursor.Get();
    if (item.unit->Usable(item.candidate)) {
      if (taken++ % options_.ranks == options_.rank) chosen.push_back({std::move(item), thinking});
      refused = 0;
    } else if (++refused > 2 * (cursor.source().size() + 1000)) {
      throw Error("no {} can be used: {}", cursor.source().name(),
                  cursor.source().skipped().Text());
    }
    cursor.Advance();
  }
  if (taken == 0) return false;
  StreamBatch result;
  result.position = position_;
  result.epoch = Epoch();
  const uint64_t variation_epoch = searches_ ? searches_->epoch() : 0;
  making_.push_back(makers_.Submit([seed = options_.seed, chosen = std::move(chosen),
                                    result = std::move(result), variation_epoch]() mutable {
    std::vector<Sequence> sequences;
    sequences.reserve(chosen.size());
    for (const Chosen& sample : chosen) {
      Rng rng({.seed = seed,
               .epoch = sample.item.epoch,
               .sample = sample.item.number,
               .purpose = sample.thinking ? Purpose("thought") : Purpose("game")});
      sequences.push_back(sample.item.unit->Make(sample.item.candidate, rng));
    }
    result.batch = Pack(sequences);
    result.batch.variation_epoch = variation_epoch;
    return std::move(result);
  }));
  return true;
}

std::optional<StreamBatch> BatchStream::Next() {
  while (making_.size() < static_cast<size_t>(options_.prefetch) && Start()) {
  }
  if (making_.empty()) return std::nullopt;
  StreamBatch batch = making_.front().get();
  making_.pop_front();
  return batch;
}

}  // namespace kibitz::decoder
