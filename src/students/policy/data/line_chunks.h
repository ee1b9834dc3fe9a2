// A file that cannot be cut (one zstd frame, gzip), unpacked once for all shards: chunks of whole
// lines in a folder on shared storage. Whoever comes first unpacks, on a thread of its own; the
// others wait for their chunks. When it dies, another goes on.
//
//   LineChunks chunks(folder, "evals.jsonl.gz", 64 << 20);
//   for (uint64_t i = shard; auto path = chunks.At(i); i += shards) Use(*path);
//
// state.json in the folder has the number of finished chunks: those may be removed after use.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace kibitz::policy {

class LineChunks {
 public:
  // A chunk holds `chunk_bytes` of text and the rest of a line.
  LineChunks(std::string folder, std::string path, uint64_t chunk_bytes);
  // Stops unpacking.
  ~LineChunks() = default;
  LineChunks(const LineChunks&) = delete;
  LineChunks& operator=(const LineChunks&) = delete;

  // Waits until a chunk is made; false when the input has fewer. Throws Error.
  bool Has(uint64_t chunk);
  // Its file; nothing when the input has fewer. Throws Error, also when it was removed after use.
  std::optional<std::string> At(uint64_t chunk);
  std::string PathOf(uint64_t chunk) const;

 private:
  struct State {
    uint64_t chunks = 0;
    bool done = false;
  };
  State Read() const;
  void Write(const State& state) const;
  void Run(const std::stop_token& stop);
  void Unpack(const std::stop_token& stop);

  std::string folder_;
  std::string path_;
  uint64_t chunk_bytes_;
  std::mutex mutex_;
  std::exception_ptr failure_;  // Guarded by mutex_.
  std::jthread thread_;
};

}  // namespace kibitz::policy
