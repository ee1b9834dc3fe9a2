// Reads JSON lines, one document per line, from plain, gzip or zstd files of any size.
//
//   JsonLines lines("lichess_db_eval.jsonl.zst");
//   while (const JsonLine* line = lines.Next()) {
//     if (!line->ok()) { LogWarn("{}; skipped", line->problem()); continue; }
//     std::string_view fen = line->root()["fen"].String();
//     for (JsonValue eval : line->root()["evals"].Items()) Use(fen, eval["depth"].Int());
//   }
//
// A document is validated whole (grammar, UTF-8, 64-bit numbers) before Next() returns it. Blank
// lines are skipped, but counted. A byte-order mark, "\r\n" and a last line without a newline are
// accepted. A line and its values are valid until the next call of Next().
//
// With several threads, still in the order of the file:
//
//   ForEachBatch(lines, pool, [](JsonLines& some) { return Convert(some); },   // On the pool.
//                             [&](Rows rows) { writer.Append(rows); });        // Here, in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/limits.h"
#include "base/thread_pool.h"
#include "io/bytes/byte_source.h"

namespace kibitz::io {

struct JsonLinesOptions {
  // A longer line is an Error: the file is not JSON lines, or hostile. Parsing takes up to 14 bytes
  // of memory per byte of a line.
  size_t max_line_bytes = Limits().line;
  ByteSourceOptions source = {};
};

class JsonItems;
class JsonLine;

enum class JsonKind { kMissing, kNull, kBool, kInt, kDouble, kString, kArray, kObject };

// A value in a parsed line; valid and copyable while the line is. A wrong type throws an Error that
// names file, line and field.
class JsonValue {
 public:
  JsonKind kind() const;  // An integer outside int64 is a kDouble.
  // The name of this field in its object; empty elsewhere.
  std::string_view key() const { return key_; }

  bool Bool() const;
  int64_t Int() const;    // Not 3.0.
  double Double() const;  // Integers too.
  std::string_view String() const;
  // Nothing when the field is missing or null.
  std::optional<int64_t> OptionalInt() const;
  std::optional<double> OptionalDouble() const;
  std::optional<std::string_view> OptionalString() const;

  // A field of an object; of kind kMissing when there is none, the first one when there are two.
  // A key of a missing value is missing too. `key` is borrowed: messages name it.
  JsonValue operator[](std::string_view key) const;
  JsonItems Items() const;   // Of an array.
  JsonItems Fields() const;  // Of an object; key() tells the name of each.

 private:
  friend class JsonLine;
  friend class JsonItems;
  using Place = std::array<uint64_t, 2>;  // The parser's own reference; 0, 0 is nowhere.

  JsonValue(const JsonLine* line, Place place, std::string_view key)
      : line_(line), place_(place), key_(key) {}
  [[noreturn]] void ThrowUnlike(std::string_view expected) const;

  const JsonLine* line_;
  Place place_;
  std::string_view key_;
};

class JsonItems {
 public:
  class Iterator {
   public:
    JsonValue operator*() const;
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return place_ == other.place_; }

   private:
    friend class JsonValue;
    Iterator(const JsonLine* line, JsonValue::Place place, bool keyed)
        : line_(line), place_(place), keyed_(keyed) {}

    const JsonLine* line_;
    JsonValue::Place place_;
    bool keyed_;  // Runs over the fields of an object.
  };

  Iterator begin() const { return begin_; }
  Iterator end() const { return end_; }
  bool empty() const { return begin_ == end_; }

 private:
  friend class JsonValue;
  JsonItems(Iterator begin, Iterator end) : begin_(begin), end_(end) {}

  Iterator begin_;
  Iterator end_;
};

class JsonLine {
 public:
  uint64_t number() const { return number_; }      // In the file, from 1.
  std::string_view text() const { return text_; }  // Without its end.
  bool ok() const { return problem_.empty(); }
  // What is wrong with a line that is not ok: "games.jsonl, line 812: ...".
  const std::string& problem() const { return problem_; }
  // Only of a line that is ok.
  JsonValue root() const;
  // "games.jsonl, line 812".
  std::string Place() const;

 private:
  friend class JsonLines;
  friend class JsonCell;

  std::shared_ptr<const std::string> file_;
  std::string_view unit_ = "line";
  uint64_t number_ = 0;
  std::string_view text_;
  std::string problem_;
  JsonValue::Place root_ = {};
};

class JsonLines {
 public:
  explicit JsonLines(const std::string& path, const JsonLinesOptions& options = {});
  explicit JsonLines(std::unique_ptr<ByteSource> source, const JsonLinesOptions& options = {});
  ~JsonLines();
  JsonLines(JsonLines&&) noexcept;
  JsonLines& operator=(JsonLines&&) noexcept;

  // Null at the end. A malformed line comes as one that is not ok(); a broken file and a line
  // beyond the limit throw Error.
  const JsonLine* Next();
  // A quarter of a megabyte of whole lines as a reader of its own, for another thread; nothing
  // at the end. Do not mix with Next().
  std::optional<JsonLines> NextBatch();

  // Compressed bytes of the file read so far.
  uint64_t Position() const;

 private:
  struct State;
  explicit JsonLines(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Documents that are cells of a table: "games.parquet, row 812".
class JsonCell {
 public:
  explicit JsonCell(std::string file);
  ~JsonCell();
  JsonCell(JsonCell&&) noexcept;
  JsonCell& operator=(JsonCell&&) noexcept;

  // Lives until the next call; the text need not.
  const JsonLine& Parse(std::string_view text, uint64_t row);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Calls map(JsonLines&) for batches of lines on the pool's threads, and take(result) on this
// thread in the order of the file. Memory stays with a few batches and results. The first
// exception of either, or of the file, is rethrown when the results before it were taken.
template <typename Map, typename Take>
void ForEachBatch(JsonLines& lines, ThreadPool& pool, const Map& map, const Take& take) {
  using Mapped = std::invoke_result_t<const Map&, JsonLines&>;
  std::deque<std::future<Mapped>> running;
  std::exception_ptr failure;  // Tasks borrow `map`: wait for them all before leaving.
  const auto guarded = [&failure](const auto& step) {
    try {
      if (!failure) step();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  const auto finish_first = [&] {
    running.front().wait();
    guarded([&] { take(running.front().get()); });
    running.pop_front();
  };
  std::exception_ptr file_failure;
  bool more = true;
  while (more && !failure) {
    std::optional<JsonLines> batch;
    try {
      batch = lines.NextBatch();
    } catch (...) {
      file_failure = std::current_exception();
    }
    more = batch.has_value();
    if (more) {
      auto shared = std::make_shared<JsonLines>(std::move(*batch));
      running.push_back(pool.Submit([&map, shared] { return map(*shared); }));
    }
    while (running.size() > 2 * static_cast<size_t>(pool.size())) finish_first();
  }
  while (!running.empty()) finish_first();
  if (!failure) failure = file_failure;
  if (failure) std::rethrow_exception(failure);
}

}  // namespace kibitz::io
