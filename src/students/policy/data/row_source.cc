#include "students/policy/data/row_source.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "base/interrupt.h"
#include "io/bytes/byte_ranges.h"
#include "io/bytes/fingerprint.h"
#include "io/tables/jsonl.h"
#include "io/tables/parquet.h"
#include "students/policy/data/line_chunks.h"

namespace kibitz::policy {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kChunkTextBytes = 8;    // As many times a piece's bytes, unpacked.
constexpr uint64_t kMinPieceRows = 65536;  // Of Parquet; smaller row groups are joined.

const std::vector<io::ColumnSpec> kColumns = {
    {"fen", io::ColumnType::kText},    {"line", io::ColumnType::kText},
    {"depth", io::ColumnType::kInt64}, {"knodes", io::ColumnType::kInt64},
    {"cp", io::ColumnType::kInt64},    {"mate", io::ColumnType::kInt64}};

// Fills every read but the last, so that batches of lines are cut at the same places however the
// inner source returns its bytes.
class WholeReads : public io::ByteSource {
 public:
  explicit WholeReads(std::unique_ptr<io::ByteSource> inner) : inner_(std::move(inner)) {}

  size_t Read(char* buffer, size_t size) override {
    size_t filled = 0;
    while (filled < size) {
      const size_t got = inner_->Read(buffer + filled, size - filled);
      if (got == 0) break;
      filled += got;
    }
    return filled;
  }
  uint64_t Position() const override { return inner_->Position(); }
  const std::string& name() const override { return inner_->name(); }

 private:
  std::unique_ptr<io::ByteSource> inner_;
};

bool StartsAsParquet(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> magic{};
  file.read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == "PAR1";
}

bool IsInputName(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const char* ending : {".parquet", ".jsonl", ".jsonl.zst", ".jsonl.gz"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

// {"fen", "evals": [{"pvs": [{"cp" | "mate", "line"}], "knodes", "depth"}]}: a row for each pv.
uint64_t UseLine(const io::JsonLine& line, uint64_t max_rows, const RowPiece::Use& use) {
  uint64_t rows = 0;
  const io::JsonValue root = line.root();
  RawRow row;
  row.fen = root["fen"].String();
  for (io::JsonValue eval : root["evals"].Items()) {
    row.depth = eval["depth"].OptionalInt();
    row.knodes = eval["knodes"].OptionalInt();
    for (io::JsonValue pv : eval["pvs"].Items()) {
      if (rows == max_rows) return rows;
      row.line = pv["line"].OptionalString().value_or("");
      row.cp = pv["cp"].OptionalInt();
      row.mate = pv["mate"].OptionalInt();
      use(row);
      ++rows;
    }
  }
  return rows;
}

uint64_t UseLines(io::JsonLines& lines, uint64_t max_rows, const RowPiece::Use& use) {
  uint64_t rows = 0;
  while (const io::JsonLine* line = lines.Next()) {
    if (rows == max_rows) break;
    if (!line->ok()) throw Error("{}; repair or remove the line", line->problem());
    rows += UseLine(*line, max_rows - rows, use);
  }
  return rows;
}

std::optional<int64_t> Cell(const io::Chunk& chunk, size_t column, size_t row) {
  if (chunk.IsNull(column, row)) return std::nullopt;
  return chunk.columns[column].ints[row];
}

uint64_t UseGroups(const io::ParquetReader& reader, const std::vector<io::RowGroupId>& groups,
                   uint64_t max_rows, const RowPiece::Use& use) {
  uint64_t rows = 0;
  reader.ForEachChunk(kColumns, groups, [&](const io::Chunk& chunk) {
    for (size_t i = 0; i < chunk.rows && rows < max_rows; ++i) {
      use({.fen = chunk.columns[0].texts[i],
           .line = chunk.columns[1].texts[i],
           .depth = Cell(chunk, 2, i),
           .knodes = Cell(chunk, 3, i),
           .cp = Cell(chunk, 4, i),
           .mate = Cell(chunk, 5, i)});
      ++rows;
    }
  });
  return rows;
}

}  // namespace

std::vector<InputFile> FindInputs(const std::vector<std::string>& paths) {
  std::vector<InputFile> files;
  const auto add = [&](const std::string& path) {
    files.push_back({path, fs::file_size(path), StartsAsParquet(path)});
  };
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::exists(path, error)) throw Error("{}: no such file or folder", path);
    if (!fs::is_directory(path, error)) {
      add(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file() && IsInputName(entry.path()))
        found.push_back(entry.path().string());
    }
    if (found.empty()) {
      throw Error("{}: the folder has no *.parquet, *.jsonl, *.jsonl.zst or *.jsonl.gz file", path);
    }
    std::sort(found.begin(), found.end());
    for (const std::string& file : found) add(file);
  }
  if (files.empty()) throw Error::Usage("no input; give files or folders");
  return files;
}

struct RowSource::Parquet {
  io::ParquetReader reader;
  std::vector<size_t> index;  // By number in files_.
};

// The JSON lines file being read, in one of three ways.
struct RowSource::Lines {
  std::vector<io::ByteRange> ranges;
  std::unique_ptr<LineChunks> chunks;
  std::optional<io::JsonLines> stream;
};

RowSource::RowSource(std::vector<InputFile> files, const RowSourceOptions& options)
    : files_(std::move(files)),
      options_(options),
      rows_left_(options.rows > 0 ? options.rows : std::numeric_limits<uint64_t>::max()) {
  std::vector<std::string> names;
  std::vector<size_t> index;
  for (const InputFile& file : files_) {
    index.push_back(names.size());
    if (file.parquet) names.push_back(file.path);
  }
  if (names.empty()) return;
  // Each piece is decoded by the thread that takes it: DuckDB's own threads would only make ours
  // wait, and they spin while they wait themselves.
  parquet_ = std::make_shared<Parquet>(Parquet{
      io::ParquetReader(
          names, {.threads = 1, .scans = options.threads, .memory_bytes = options.memory_bytes}),
      std::move(index)});
}

RowSource::~RowSource() = default;

uint64_t RowSource::EstimateRows() {
  uint64_t rows = 0;
  for (size_t i = 0; i < files_.size(); ++i) {
    const InputFile& file = files_[i];
    if (file.parquet) {
      rows += parquet_->reader.Info(parquet_->index[i]).rows;
    } else {
      // A row takes about 150 bytes of text, and 20 when packed as the Lichess file is.
      rows += file.bytes / (file.path.ends_with(".jsonl") ? 100 : 16) + 1;
    }
  }
  return options_.rows > 0 ? std::min(rows, options_.rows) : rows;
}

bool RowSource::PassParquet(bool wanted, std::optional<RowPiece>& piece) {
  const size_t file = parquet_->index[file_];
  const auto& groups = parquet_->reader.Info(file).row_groups;
  if (group_ == groups.size()) return false;
  std::vector<io::RowGroupId> order;
  uint64_t rows = 0;
  while (group_ < groups.size() && rows < kMinPieceRows) {
    order.push_back({file, group_});
    rows += groups[group_++].rows;
  }
  const uint64_t max_rows = std::min(rows, rows_left_);
  if (options_.rows > 0) rows_left_ -= max_rows;
  if (wanted) {
    piece.emplace(
        [parquet = parquet_, order = std::move(order), max_rows](const RowPiece::Use& use) {
          return UseGroups(parquet->reader, order, max_rows, use);
        });
  }
  return true;
}

void RowSource::OpenLines() {
  const std::string& path = files_[file_].path;
  lines_ = std::make_unique<Lines>();
  // A limit counts the rows from the start.
  std::vector<io::ByteRange> ranges;
  if (options_.rows == 0) ranges = io::CutBytes(path, options_.piece_bytes);
  uint64_t longest = 0;
  for (const io::ByteRange& range : ranges) longest = std::max(longest, range.bytes());
  // A long range would keep one shard, or one thread, busy while the others wait.
  const uint64_t fair =
      std::max(2 * options_.piece_bytes, files_[file_].bytes / (8 * options_.shards));
  const bool alone = ranges.size() == 1 && options_.shards == 1;
  if (!ranges.empty() && longest <= fair && !alone) {
    lines_->ranges = std::move(ranges);
  } else if (options_.rows == 0 && options_.shards > 1 && !options_.scratch.empty()) {
    const std::string hash = io::FingerprintOf(path).at("hash").get<std::string>();
    lines_->chunks =
        std::make_unique<LineChunks>(fmt::format("{}/lines-{}", options_.scratch, hash), path,
                                     kChunkTextBytes * options_.piece_bytes);
  } else {
    lines_->stream.emplace(std::make_unique<WholeReads>(io::OpenBytes(path)));
  }
}

bool RowSource::PassLines(bool own, bool wanted, std::optional<RowPiece>& piece) {
  if (!lines_) OpenLines();
  if (lines_->stream) return PassStream(wanted, piece);
  const auto use_lines = [](std::unique_ptr<io::ByteSource> source, const RowPiece::Use& use) {
    io::JsonLines lines(std::move(source));
    return UseLines(lines, std::numeric_limits<uint64_t>::max(), use);
  };
  const io::ByteSourceOptions here = {.read_ahead = false};
  if (lines_->chunks) {
    if (!own) return true;
    if (!lines_->chunks->Has(piece_)) return false;
    passed_.push_back(lines_->chunks->PathOf(piece_));
    if (wanted) {
      const std::optional<std::string> path = lines_->chunks->At(piece_);
      piece.emplace([use_lines, path = *path, here](const RowPiece::Use& use) {
        return use_lines(io::OpenBytes(path, here), use);
      });
    }
    return true;
  }
  if (piece_ == lines_->ranges.size()) return false;
  if (wanted) {
    piece.emplace([use_lines, path = files_[file_].path, range = lines_->ranges[piece_],
                   here](const RowPiece::Use& use) {
      return use_lines(io::LinesIn(path, range, here), use);
    });
  }
  return true;
}

bool RowSource::PassStream(bool wanted, std::optional<RowPiece>& piece) {
  std::optional<io::JsonLines> batch = lines_->stream->NextBatch();
  if (!batch) return false;
  auto shared = std::make_shared<io::JsonLines>(std::move(*batch));
  if (options_.rows > 0) {
    // Where the limit falls is known only once the rows before it are counted. A limit is for
    // trying things out, so the rows are read here, on one thread.
    struct Owned {
      std::string fen;
      std::string line;
      RawRow row;
    };
    auto rows = std::make_shared<std::vector<Owned>>();
    rows_left_ -= UseLines(*shared, rows_left_, [&](const RawRow& row) {
      if (wanted) rows->push_back({std::string(row.fen), std::string(row.line), row});
    });
    if (wanted) {
      piece.emplace([rows](const RowPiece::Use& use) {
        for (Owned& owned : *rows) {
          owned.row.fen = owned.fen;
          owned.row.line = owned.line;
          use(owned.row);
        }
        return uint64_t{rows->size()};
      });
    }
    return true;
  }
  if (wanted) {
    piece.emplace([shared](const RowPiece::Use& use) {
      return UseLines(*shared, std::numeric_limits<uint64_t>::max(), use);
    });
  }
  return true;
}

bool RowSource::Pass(bool wanted, std::optional<RowPiece>& piece) {
  while (file_ < files_.size() && rows_left_ > 0) {
    const bool own = (piece_ + file_) % options_.shards == options_.shard;
    const bool made = own && wanted;
    if (files_[file_].parquet ? PassParquet(made, piece) : PassLines(own, made, piece)) {
      ++piece_;
      if (!own) continue;
      ++position_;
      return true;
    }
    ++file_;
    group_ = 0;
    piece_ = 0;
    lines_.reset();
  }
  return false;
}

std::optional<RowPiece> RowSource::Next() {
  std::optional<RowPiece> piece;
  Pass(true, piece);
  return piece;
}

void RowSource::SkipTo(uint64_t position) {
  std::optional<RowPiece> none;
  while (position_ < position && Pass(false, none)) ThrowIfInterrupted();
}

void RowSource::Release() {
  std::error_code ignored;  // Kept files only take room.
  for (const std::string& path : passed_) fs::remove(path, ignored);
  passed_.clear();
}

}  // namespace kibitz::policy
