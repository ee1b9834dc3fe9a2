// Endless batches of games and thinking sequences, built on background threads.
//
//   BatchStream stream(games.get(), searches.get(), {.seed = 7, .batch_size = 16});
//   while (std::optional<StreamBatch> next = stream.Next()) Train(next->batch);
//
// Sample n is a pure function of (seed, n): its kind, its record, and how that is ordered and cut.
// So the batches are the same for any number of threads, a stream resumes at the position of any
// batch, and R ranks of batch_size B share the samples that one of batch_size R B has.
//
// Every epoch shuffles a source anew: it shuffles the units (row groups), groups them into windows,
// and shuffles the candidates of each window. The source that ends first starts over; an epoch of
// the stream ends when both sources have ended.
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
  int num_workers = 1;      // Threads that build batches; one more reads ahead.
  int prefetch = 4;         // Batches built ahead.
  int window = 16384;       // Min candidates shuffled together; whole units.
  int64_t cache_mb = 1024;  // Cache of decoded units for the next epoch, for each source.
  int64_t epochs = 0;       // The stream ends after this many; 0: never.
  int rank = 0;
  int ranks = 1;
};
// The config keys: batch_size, num_workers, prefetch, window, cache_mb.
Fields FieldsOf(StreamOptions& options);

struct StreamBatch {
  Batch batch;
  uint64_t position = 0;  // Of the first sample after this batch: resume there.
  uint64_t epoch = 0;     // Of the stream, at that position.
};

// Iterates over a source's candidates in shuffled order, from any position.
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
    uint64_t number = 0;  // Index within the source; seeds its random choices.
  };
  // The candidate at the position; loads its unit if it was not read ahead.
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
  // Units shuffled together, and the index of their first candidate in the epoch.
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
  std::vector<uint64_t> unit_first_;  // Index of each unit's first candidate.

  uint64_t planned_epoch_ = ~uint64_t{0};
  std::vector<Window> windows_;
  size_t window_ = 0;
  std::vector<Place> order_;             // Of the current window.
  std::map<uint32_t, Loading> loading_;  // Units of this window and the next.
  std::map<uint32_t, std::shared_ptr<const Unit>> kept_;
  size_t kept_bytes_ = 0;
};

class BatchStream {
 public:
  // A source that variation_ratio never uses may be null. Sources outlive the stream.
  BatchStream(const Source* games, const Source* searches, const StreamOptions& options,
              uint64_t position = 0);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // Nothing after the last epoch. The last batch may be smaller, and empty on some ranks.
  std::optional<StreamBatch> Next();

 private:
  struct Chosen {
    SourceCursor::Item item;
    bool thinking = false;
  };

  bool IsThinking(uint64_t sample) const;
  uint64_t Epoch() const;
  bool Ended() const;
  // Plans one batch and starts to build it; false when no sample is left.
  bool Start();

  StreamOptions options_;
  uint64_t position_ = 0;  // The next sample.
  ThreadPool loaders_;     // Read ahead without blocking the batches.
  ThreadPool makers_;
  std::optional<SourceCursor> games_;
  std::optional<SourceCursor> searches_;
  std::deque<std::future<StreamBatch>> making_;
};

}  // namespace kibitz::decoder
