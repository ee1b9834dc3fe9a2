// Batches without end, made on background threads: games and thoughts mixed.
//
//   BatchStream stream(games.get(), searches.get(), {.seed = 7, .batch_size = 16});
//   while (std::optional<StreamBatch> next = stream.Next()) Train(next->batch);
//
// Sample n is a pure function of (seed, n): whether it thinks, which record it takes, and how that
// is ordered and cut. So the batches are the same for any number of threads, a stream goes on from
// the position of any batch, and rank r of R takes every R-th sample.
//
// A source is passed through in a new order every epoch: units (row groups) are shuffled, some of
// them make a window, and the candidates of a window are shuffled. The source that ends first
// starts again; an epoch of the stream is over when both have been used up.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/options.h"
#include "base/thread_pool.h"
#include "students/decoder/data/batch.h"
#include "students/decoder/data/source.h"

namespace kibitz::decoder {

struct StreamOptions {
  uint64_t seed = 42;
  int batch_size = 16;  // Sequences in a batch.
  double variation_ratio = 0.2;
  int num_workers = 1;      // Threads that make batches; another one reads ahead.
  int prefetch = 4;         // Batches made ahead.
  int window = 16384;       // Candidates shuffled together, at least; whole units.
  int64_t cache_mb = 1024;  // Memory for decoded units that are kept for the next epoch, a source.
  int64_t epochs = 0;       // The stream ends after so many; 0: never.
  int rank = 0;
  int ranks = 1;
};
// What every config sets: batch_size, num_workers, prefetch, window, cache_mb.
Fields FieldsOf(StreamOptions& options);

struct StreamBatch {
  Batch batch;
  uint64_t position = 0;  // Of the first sample behind this batch: resume there.
  uint64_t epoch = 0;     // Of the stream, at that position.
};

// The order of a source's candidates, from any place on.
class SourceCursor {
 public:
  // `position` counts candidates over all epochs.
  SourceCursor(const Source& source, const StreamOptions& options, ThreadPool& pool,
               uint64_t position);
  ~SourceCursor();

  struct Item {
    std::shared_ptr<const Unit> unit;
    size_t candidate = 0;  // Within the unit.
    uint64_t epoch = 0;
    uint64_t number = 0;  // Within the source; the key of its chance.
  };
  // The candidate at the position; reads its unit when that was not done ahead.
  Item Get();
  void Advance() { ++position_; }
  uint64_t position() const { return position_; }
  uint64_t epoch() const { return position_ / source_.size(); }
  const Source& source() const { return source_; }

 private:
  using Loading = std::shared_future<std::shared_ptr<const Unit>>;
  struct Place {
    uint32_t unit = 0;
    uint32_t candidate = 0;
  };
  // Units shuffled together, and where their candidates begin in the epoch.
  struct Window {
    uint64_t first = 0;
    uint64_t size = 0;
    std::vector<uint32_t> units;
  };

  std::vector<Window> PlanEpoch(uint64_t epoch) const;
  void Enter(uint64_t epoch, uint64_t within);
  void Request(const std::vector<uint32_t>& units);
  void Keep(uint32_t unit, const std::shared_ptr<const Unit>& loaded);

  const Source& source_;
  StreamOptions options_;
  ThreadPool& pool_;
  uint64_t position_;
  std::vector<uint64_t> unit_first_;  // Number of each unit's first candidate.

  uint64_t planned_epoch_ = ~uint64_t{0};
  std::vector<Window> windows_;
  size_t window_ = 0;
  std::vector<Place> order_;             // Of the window entered.
  std::map<uint32_t, Loading> loading_;  // Units of this window and the next.
  std::map<uint32_t, std::shared_ptr<const Unit>> kept_;
  size_t kept_bytes_ = 0;
};

class BatchStream {
 public:
  // Either source may be null when the ratio never asks for it. Sources outlive the stream.
  BatchStream(const Source* games, const Source* searches, const StreamOptions& options,
              uint64_t position = 0);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // Nothing only after the last epoch. The last batch may be smaller.
  std::optional<StreamBatch> Next();

 private:
  struct Chosen {
    SourceCursor::Item item;
    bool thinking = false;
  };

  bool IsThinking(uint64_t sample) const;
  uint64_t Epoch() const;
  bool Ended() const;
  // Plans one batch and starts to make it; false when there is no sample left.
  bool Start();

  StreamOptions options_;
  uint64_t position_ = 0;  // The next sample.
  ThreadPool loaders_;     // Read ahead without holding up the batches.
  ThreadPool makers_;
  std::optional<SourceCursor> games_;
  std::optional<SourceCursor> searches_;
  std::deque<std::future<StreamBatch>> making_;
};

}  // namespace kibitz::decoder
