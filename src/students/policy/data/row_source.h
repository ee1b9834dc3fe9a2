// The rows of all input files, in pieces that threads take in turn: row groups of Parquet, ranges
// of zstd frames. Pieces depend on the files and the number of shards alone, so that a run can be
// cut into shards and resumed.
//
//   RowSource source(FindInputs({"evals/"}), {.threads = 2});
//   while (std::optional<RowPiece> piece = source.Next()) {      // One caller at a time ...
//     piece->ForEach([&](const RawRow& row) { ... });            // ... then on any thread.
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "students/policy/data/rows.h"

namespace kibitz::policy {

struct InputFile {
  std::string path;
  uint64_t bytes = 0;
  bool parquet = false;  // Else JSON lines, compressed or not.
};

// The files named; of a folder all *.parquet and *.jsonl (.zst, .gz) below it, sorted.
// Throws Error when there is none.
std::vector<InputFile> FindInputs(const std::vector<std::string>& paths);

struct RowSourceOptions {
  uint64_t rows = 0;  // Max rows of the input; 0: all.
  // This slice of the pieces: those whose number in their file, plus the file's, is `shard` modulo
  // `shards`.
  uint64_t shards = 1;
  uint64_t shard = 0;
  int threads = 1;                            // That take pieces at the same time.
  uint64_t memory_bytes = uint64_t{1} << 30;  // Max, for decoding Parquet.
  // Of a piece of packed lines, about.
  uint64_t piece_bytes = uint64_t{4} << 20;
  // Folder, the same for all shards, where a file that cannot be cut is unpacked for all of them
  // (line_chunks.h). "": each shard unpacks it for itself.
  std::string scratch = {};
};

class RowPiece {
 public:
  using Use = std::function<void(const RawRow&)>;

  explicit RowPiece(std::function<uint64_t(const Use&)> run) : run_(std::move(run)) {}
  // Calls `use` for each row; its texts live as long as the call. Returns how many. Throws Error.
  uint64_t ForEach(const Use& use) { return run_(use); }

 private:
  std::function<uint64_t(const Use&)> run_;
};

class RowSource {
 public:
  RowSource(std::vector<InputFile> files, const RowSourceOptions& options);
  ~RowSource();

  // Rows of all files and slices: from Parquet's footers, else estimated from the size.
  uint64_t EstimateRows();

  // Nothing at the end. Throws Error.
  std::optional<RowPiece> Next();
  // Pieces of this slice passed so far: where a later source can resume.
  uint64_t position() const { return position_; }
  // Passes pieces until `position`.
  void SkipTo(uint64_t position);
  // The pieces passed so far will not be asked for again: removes what was unpacked for them.
  void Release();

 private:
  struct Parquet;
  struct Lines;

  // The next piece of our slice; false at the end. Made only when `wanted`.
  bool Pass(bool wanted, std::optional<RowPiece>& piece);
  // The next piece of the file, whosever it is; false at its end.
  bool PassParquet(bool wanted, std::optional<RowPiece>& piece);
  bool PassLines(bool own, bool wanted, std::optional<RowPiece>& piece);
  bool PassStream(bool wanted, std::optional<RowPiece>& piece);
  void OpenLines();

  std::vector<InputFile> files_;
  RowSourceOptions options_;
  std::shared_ptr<Parquet> parquet_;  // All Parquet files; opened when needed.
  std::unique_ptr<Lines> lines_;      // The JSON lines file being read.
  size_t file_ = 0;
  size_t group_ = 0;    // Next row group of the file.
  uint64_t piece_ = 0;  // Next piece of the file.
  uint64_t position_ = 0;
  std::vector<std::string> passed_;  // Chunks to remove.
  uint64_t rows_left_;               // With a limit.
};

}  // namespace kibitz::policy
