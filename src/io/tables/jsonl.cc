#include "io/tables/jsonl.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace kibitz::io {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;
using ArrayPlace = simdjson::dom::array::iterator;
using ObjectPlace = simdjson::dom::object::iterator;
using Place = std::array<uint64_t, 2>;

// simdjson's values are references into the parsed document: a pointer and an index. Kept as such
// in our header, they need no simdjson there.
template <typename T>
T FromPlace(Place place) {
  static_assert(sizeof(T) == sizeof(Place) && std::is_trivially_copyable_v<T>);
  return std::bit_cast<T>(place);
}
template <typename T>
Place ToPlace(T value) {
  return std::bit_cast<Place>(value);
}

bool IsMissing(Place place) { return place[0] == 0; }

#ifdef KIBITZ_SMALL_BUFFERS  // In fuzz targets, whose short inputs are to cross a buffer's end.
constexpr size_t kReadBytes = 256;
#else
constexpr size_t kReadBytes = 256 << 10;
#endif

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// Lines are long enough that leaping from end to end beats looking at every byte.
uint64_t CountLines(std::string_view text) {
  uint64_t count = 0;
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    ++count;
  }
  return count;
}

// Whole lines that lie together, padded as the parser needs it.
struct Batch {
  std::vector<char> bytes;
  size_t size = 0;
  uint64_t first_line = 1;
};

struct LineLimit {
  std::shared_ptr<const std::string> file;
  size_t max_line_bytes = 0;

  void CheckLine(uint64_t number, size_t bytes) const {
    if (bytes <= max_line_bytes) return;
    throw Error("{}, line {}: longer than {} bytes; is this JSON lines? {}", *file, number,
                max_line_bytes, AllowHint("line", 2 * max_line_bytes));
  }
};

// Cuts a source into batches.
class Batches {
 public:
  Batches(std::unique_ptr<ByteSource> source, LineLimit limits)
      : source_(std::move(source)), limits_(std::move(limits)) {}

  // False at the end. Takes one piece from the source if it completes a line, so that all lines
  // before a fault in the file come out before its Error.
  bool Fill(Batch& batch) {
    size_t size = carry_.size();
    Grow(batch, size + kReadBytes);
    carry_.copy(batch.bytes.data(), size);
    batch.first_line = next_line_;
    size_t whole = 0;  // Bytes up to the end of the last line.
    while (whole == 0) {
      limits_.CheckLine(next_line_, size);
      Grow(batch, size + kReadBytes);
      const size_t got = source_->Read(batch.bytes.data() + size, kReadBytes);
      const void* last = memrchr(batch.bytes.data() + size, '\n', got);
      size += got;
      if (last != nullptr) {
        whole = static_cast<size_t>(static_cast<const char*>(last) - batch.bytes.data()) + 1;
      } else if (got == 0) {
        whole = size;
        break;
      }
    }
    carry_.assign(batch.bytes.data() + whole, size - whole);
    batch.size = whole;
    next_line_ += CountLines({batch.bytes.data(), whole});
    return whole > 0;
  }
  uint64_t Position() const { return source_->Position(); }

 private:
  static void Grow(Batch& batch, size_t size) {
    const size_t needed = size + simdjson::SIMDJSON_PADDING;
    if (batch.bytes.size() < needed) batch.bytes.resize(std::max(needed, batch.bytes.size() * 2));
  }

  std::unique_ptr<ByteSource> source_;
  LineLimit limits_;
  std::string carry_;  // The beginning of a line whose end is not read yet.
  uint64_t next_line_ = 1;
};

std::string_view NameOf(JsonKind kind) {
  switch (kind) {
    case JsonKind::kMissing:
      return "nothing";
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "true or false";
    case JsonKind::kInt:
      return "a whole number";
    case JsonKind::kDouble:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  return "";
}

// Parses text that is padded; returns what is wrong, or nothing.
std::string ParsePadded(simdjson::dom::parser& parser, const JsonLine& line, Place& root) {
  const std::string_view text = line.text();
  auto code = simdjson::SUCCESS;
  if (parser.capacity() < text.size()) code = parser.allocate(std::bit_ceil(text.size()));
  element parsed;
  // The parser takes a zero byte for its padding after a number.
  if (std::memchr(text.data(), 0, text.size()) != nullptr) code = simdjson::UNESCAPED_CHARS;
  if (code == simdjson::SUCCESS) code = parser.parse(text.data(), text.size(), false).get(parsed);
  if (code != simdjson::SUCCESS) {
    return fmt::format("{}: found {}, expected one JSON document ({})", line.Place(), Quoted(text),
                       simdjson::error_message(code));
  }
  root = ToPlace(parsed);
  return {};
}

}  // namespace

struct JsonLines::State {
  LineLimit limits;
  std::optional<Batches> batches;  // None in a reader of one batch.
  Batch batch;
  size_t used = 0;           // Bytes of the batch.
  uint64_t next_number = 1;  // Of the line at `used`.
  simdjson::dom::parser parser;
  JsonLine line;

  // The next line of the batch; false when it has none.
  bool Cut() {
    if (used == batch.size) return false;
    const char* begin = batch.bytes.data() + used;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', batch.size - used));
    const size_t length = end != nullptr ? static_cast<size_t>(end - begin) : batch.size - used;
    line.text_ = {begin, length};
    line.number_ = next_number++;
    used += length + (end != nullptr ? 1 : 0);
    limits.CheckLine(line.number_, length);
    if (line.number_ == 1 && line.text_.starts_with("\xef\xbb\xbf")) line.text_.remove_prefix(3);
    return true;
  }

  void Parse() { line.problem_ = ParsePadded(parser, line, line.root_); }
};

JsonLines::JsonLines(const std::string& path, const JsonLinesOptions& options)
    : JsonLines(OpenBytes(path, options.source), options) {}

JsonLines::JsonLines(std::unique_ptr<ByteSource> source, const JsonLinesOptions& options)
    : state_(std::make_unique<State>()) {
  state_->limits = {std::make_shared<const std::string>(source->name()), options.max_line_bytes};
  state_->line.file_ = state_->limits.file;
  state_->batches.emplace(std::move(source), state_->limits);
}

JsonLines::JsonLines(std::unique_ptr<State> state) : state_(std::move(state)) {}
JsonLines::~JsonLines() = default;
JsonLines::JsonLines(JsonLines&&) noexcept = default;
JsonLines& JsonLines::operator=(JsonLines&&) noexcept = default;

const JsonLine* JsonLines::Next() {
  State& state = *state_;
  do {
    while (!state.Cut()) {
      state.used = state.batch.size = 0;
      if (!state.batches || !state.batches->Fill(state.batch)) return nullptr;
      state.next_number = state.batch.first_line;
    }
  } while (IsBlank(state.line.text_));
  state.Parse();
  return &state.line;
}

std::optional<JsonLines> JsonLines::NextBatch() {
  CHECK(state_->batches.has_value());
  auto part = std::make_unique<State>();
  if (!state_->batches->Fill(part->batch)) return std::nullopt;
  part->limits = state_->limits;
  part->line.file_ = state_->limits.file;
  part->next_number = part->batch.first_line;
  return JsonLines(std::move(part));
}

uint64_t JsonLines::Position() const { return state_->batches ? state_->batches->Position() : 0; }

struct JsonCell::State {
  simdjson::dom::parser parser;
  JsonLine line;
  std::vector<char> bytes;
};

JsonCell::JsonCell(std::string file) : state_(std::make_unique<State>()) {
  state_->line.file_ = std::make_shared<const std::string>(std::move(file));
  state_->line.unit_ = "row";
}
JsonCell::~JsonCell() = default;
JsonCell::JsonCell(JsonCell&&) noexcept = default;
JsonCell& JsonCell::operator=(JsonCell&&) noexcept = default;

const JsonLine& JsonCell::Parse(std::string_view text, uint64_t row) {
  const size_t needed = text.size() + simdjson::SIMDJSON_PADDING;
  if (state_->bytes.size() < needed) state_->bytes.resize(std::bit_ceil(needed));
  std::copy(text.begin(), text.end(), state_->bytes.begin());
  JsonLine& line = state_->line;
  line.text_ = {state_->bytes.data(), text.size()};
  line.number_ = row;
  line.problem_ = ParsePadded(state_->parser, line, line.root_);
  return line;
}

JsonValue JsonLine::root() const {
  CHECK(ok());
  return {this, root_, {}};
}

std::string JsonLine::Place() const { return fmt::format("{}, {} {}", *file_, unit_, number_); }

JsonKind JsonValue::kind() const {
  if (IsMissing(place_)) return JsonKind::kMissing;
  switch (FromPlace<element>(place_).type()) {
    case element_type::ARRAY:
      return JsonKind::kArray;
    case element_type::OBJECT:
      return JsonKind::kObject;
    case element_type::INT64:
      return JsonKind::kInt;
    case element_type::UINT64:  // Only what int64 cannot hold.
    case element_type::DOUBLE:
      return JsonKind::kDouble;
    case element_type::STRING:
      return JsonKind::kString;
    case element_type::BOOL:
      return JsonKind::kBool;
    case element_type::NULL_VALUE:
      return JsonKind::kNull;
  }
  return JsonKind::kMissing;
}

void JsonValue::ThrowUnlike(std::string_view expected) const {
  const std::string where = key_.empty() ? "" : fmt::format("\"{}\": ", key_);
  throw Error("{}: {}found {}, expected {}", line_->Place(), where, NameOf(kind()), expected);
}

bool JsonValue::Bool() const {
  bool value = false;
  if (IsMissing(place_) || FromPlace<element>(place_).get(value) != simdjson::SUCCESS) {
    ThrowUnlike("true or false");
  }
  return value;
}

int64_t JsonValue::Int() const {
  int64_t value = 0;
  if (IsMissing(place_) || FromPlace<element>(place_).get(value) != simdjson::SUCCESS) {
    ThrowUnlike("a whole number of 64 bits");
  }
  return value;
}

double JsonValue::Double() const {
  double value = 0;
  if (IsMissing(place_) || FromPlace<element>(place_).get(value) != simdjson::SUCCESS) {
    ThrowUnlike("a number");
  }
  return value;
}

std::string_view JsonValue::String() const {
  std::string_view value;
  if (IsMissing(place_) || FromPlace<element>(place_).get(value) != simdjson::SUCCESS) {
    ThrowUnlike("a string");
  }
  return value;
}

std::optional<int64_t> JsonValue::OptionalInt() const {
  if (IsMissing(place_) || FromPlace<element>(place_).is_null()) return std::nullopt;
  return Int();
}

std::optional<double> JsonValue::OptionalDouble() const {
  if (IsMissing(place_) || FromPlace<element>(place_).is_null()) return std::nullopt;
  return Double();
}

std::optional<std::string_view> JsonValue::OptionalString() const {
  if (IsMissing(place_) || FromPlace<element>(place_).is_null()) return std::nullopt;
  return String();
}

JsonValue JsonValue::operator[](std::string_view key) const {
  if (IsMissing(place_)) return {line_, Place{}, key};
  simdjson::dom::object object;
  if (FromPlace<element>(place_).get(object) != simdjson::SUCCESS) ThrowUnlike("an object");
  element value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS) return {line_, Place{}, key};
  return {line_, ToPlace(value), key};
}

JsonItems JsonValue::Items() const {
  simdjson::dom::array array;
  if (IsMissing(place_) || FromPlace<element>(place_).get(array) != simdjson::SUCCESS) {
    ThrowUnlike("an array");
  }
  return {{line_, ToPlace(array.begin()), false}, {line_, ToPlace(array.end()), false}};
}

JsonItems JsonValue::Fields() const {
  simdjson::dom::object object;
  if (IsMissing(place_) || FromPlace<element>(place_).get(object) != simdjson::SUCCESS) {
    ThrowUnlike("an object");
  }
  return {{line_, ToPlace(object.begin()), true}, {line_, ToPlace(object.end()), true}};
}

JsonValue JsonItems::Iterator::operator*() const {
  if (!keyed_) return {line_, ToPlace(*FromPlace<ArrayPlace>(place_)), {}};
  const auto place = FromPlace<ObjectPlace>(place_);
  return {line_, ToPlace(place.value()), place.key()};
}

JsonItems::Iterator& JsonItems::Iterator::operator++() {
  if (keyed_) {
    place_ = ToPlace(++FromPlace<ObjectPlace>(place_));
  } else {
    place_ = ToPlace(++FromPlace<ArrayPlace>(place_));
  }
  return *this;
}

}  // namespace kibitz::io
