#include "io/inspect.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "io/bytes/byte_source.h"
#include "io/bytes/gunzip.h"
#include "io/bytes/mapped_file.h"
#include "io/bytes/tar_reader.h"
#include "io/bytes/tensor.h"
#include "io/runs/tensorboard.h"
#include "io/tables/json_tree.h"
#include "io/tables/jsonl.h"
#include "io/tables/lc0_row.h"
#include "io/tables/npy.h"
#include "io/tables/parquet.h"
#include "io/tables/sqlite.h"
#include "io/weights/safetensors.h"
#include "io/weights/torch_file.h"
#include "io/weights/value.h"

namespace kibitz::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kHeadBytes = 4096;
constexpr size_t kEndBytes = 4096;
constexpr const char* kRightSum = "crc32c, right";
constexpr const char* kNoSum = "none";
constexpr uint64_t kMaxEntryBytes = 64 << 20;

// At most `limit` bytes, whole characters, and a mark; 0 cuts nothing.
std::string CutText(std::string text, size_t limit) {
  if (limit == 0 || text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return text.substr(0, limit) + "...";
}

// A number that JSON can hold; NaN and infinities as text.
Json NumberTree(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

template <typename T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The shortest text that gives the float back, instead of its long double.
Json FloatTree(float value) {
  if (!std::isfinite(value)) return NumberTree(static_cast<double>(value));
  return ParseDouble(fmt::format("{}", value)).value_or(static_cast<double>(value));
}

Json ElementTree(DType type, const std::byte* bytes) {
  switch (type) {
    case DType::kBool:
      return Load<uint8_t>(bytes) != 0;
    case DType::kU8:
      return Load<uint8_t>(bytes);
    case DType::kI8:
      return Load<int8_t>(bytes);
    case DType::kU16:
      return Load<uint16_t>(bytes);
    case DType::kI16:
      return Load<int16_t>(bytes);
    case DType::kU32:
      return Load<uint32_t>(bytes);
    case DType::kI32:
      return Load<int32_t>(bytes);
    case DType::kU64:
      return Load<uint64_t>(bytes);
    case DType::kI64:
      return Load<int64_t>(bytes);
    case DType::kF16:
      return FloatTree(HalfToFloat(Load<uint16_t>(bytes)));
    case DType::kBF16:
      return FloatTree(BFloat16ToFloat(Load<uint16_t>(bytes)));
    case DType::kF32:
      return FloatTree(Load<float>(bytes));
    case DType::kF64:
      return NumberTree(Load<double>(bytes));
  }
  return {};
}

// Up to `cut` elements (0: all) as a flat list, or one as itself.
Json ElementsTree(DType type, const std::byte* bytes, uint64_t count, bool scalar, size_t cut) {
  if (scalar) return ElementTree(type, bytes);
  Json list = Json::array();
  const uint64_t shown = cut == 0 ? count : std::min<uint64_t>(count, cut);
  for (uint64_t i = 0; i < shown; ++i) {
    list.push_back(ElementTree(type, bytes + i * SizeOf(type)));
  }
  if (count > shown) list.push_back("...");
  return list;
}

Json TensorPart(const std::string& name, DType type, const std::vector<int64_t>& shape) {
  return {{"name", name}, {"dtype", NameOf(type)}, {"shape", shape}};
}

FileReport InspectParquet(const std::string& path, const InspectOptions& options) {
  const ParquetReader reader({path});
  const ParquetInfo& info = reader.Info(0);
  FileReport report;
  report.format = "parquet";
  if (reader.files().size() > 1) report.facts["files"] = reader.files().size();
  report.facts["rows"] = reader.CountRows();
  report.facts["row_groups"] = reader.RowGroups().size();
  report.facts["created_by"] = info.created_by;
  for (const auto& [key, value] : info.metadata) {
    report.facts["metadata"][key] = CutText(value, 10 * options.cut);
  }
  report.parts_name = "columns";
  std::vector<ColumnSpec> columns;
  for (const FileColumn& column : info.columns) {
    report.parts.push_back(
        {{"name", column.name}, {"type", column.file_type}, {"read_as", NameOf(column.type)}});
    columns.push_back({column.name, column.type});
  }
  ParquetScan scan = reader.Scan(columns);
  while (report.rows.size() < options.rows) {
    const Chunk* chunk = scan.Next();
    if (chunk == nullptr) break;
    for (size_t row = 0; row < chunk->rows && report.rows.size() < options.rows; ++row) {
      Json object = Json::object();
      for (size_t i = 0; i < columns.size(); ++i) {
        Json& cell = object[columns[i].name];
        if (chunk->IsNull(i, row)) continue;
        const Column& column = chunk->columns[i];
        if (column.type == ColumnType::kBool) cell = column.bools[row] != 0;
        if (column.type == ColumnType::kInt64) cell = column.ints[row];
        if (column.type == ColumnType::kDouble) cell = NumberTree(column.doubles[row]);
        if (column.type == ColumnType::kText) {
          cell = CutText(std::string(column.texts[row]), 10 * options.cut);
        }
      }
      report.rows.push_back(std::move(object));
    }
  }
  return report;
}

FileReport InspectNpy(const std::string& path, const InspectOptions& options) {
  const NpyFile file = NpyFile::Open(path);
  const NpyLayout& layout = file.layout();
  FileReport report;
  report.format = "npy";
  report.facts["shape"] = file.shape();
  report.facts["dtype"] = layout.IsNumber() ? std::string(NameOf(layout.fields[0].type)) : "rows";
  report.facts["row_bytes"] = layout.row_bytes;
  if (!layout.IsNumber()) {
    report.parts_name = "fields";
    for (const NpyField& field : layout.fields) {
      Json part = TensorPart(field.name, field.type, field.shape);
      part["offset"] = field.offset;
      report.parts.push_back(std::move(part));
    }
  }
  const uint64_t rows = file.rows();
  const uint64_t row_bytes = rows > 0 ? file.bytes().size() / rows : 0;
  for (uint64_t row = 0; row < std::min<uint64_t>(rows, options.rows); ++row) {
    const std::byte* at = file.bytes().data() + row * row_bytes;
    if (layout.IsNumber()) {
      const DType type = layout.fields[0].type;
      report.rows.push_back(
          ElementsTree(type, at, row_bytes / SizeOf(type), file.shape().size() <= 1, options.cut));
      continue;
    }
    Json object = Json::object();
    for (const NpyField& field : layout.fields) {
      object[field.name] =
          ElementsTree(field.type, at + field.offset, CountOf(field.shape).value_or(0),
                       field.shape.empty(), options.cut);
    }
    report.rows.push_back(std::move(object));
  }
  return report;
}

FileReport InspectSafetensors(const std::string& path, const InspectOptions& options) {
  const Safetensors content = ReadSafetensors(path);
  FileReport report;
  report.format = "safetensors";
  uint64_t parameters = 0;
  report.parts_name = "tensors";
  for (const NamedTensor& named : content.tensors) {
    parameters += CountOf(named.tensor.shape).value_or(0);
    report.parts.push_back(TensorPart(named.name, named.tensor.type, named.tensor.shape));
  }
  report.facts["tensor_count"] = content.tensors.size();
  report.facts["parameters"] = parameters;
  report.facts["checksum"] = content.has_checksum ? kRightSum : kNoSum;
  for (const auto& [key, value] : content.metadata) {
    report.facts["metadata"][key] = CutText(value, 10 * options.cut);
  }
  return report;
}

std::string KeyText(const Value& key) {
  if (key.Is(Value::Kind::kString)) return key.AsText();
  return Describe(key);
}

// A leaf that is not a tensor: JSON's own kinds as they are, others as a description.
Json LeafTree(const Value& value, size_t limit) {
  switch (value.kind()) {
    case Value::Kind::kBool:
      return value.AsBool();
    case Value::Kind::kInt:
      return value.AsInt();
    case Value::Kind::kFloat:
      return NumberTree(value.AsDouble());
    case Value::Kind::kString:
      return CutText(value.AsText(), limit);
    default:
      return CutText(Describe(value), limit);
  }
}

// Every leaf of the tree with its path; a container only where it is empty.
void AddValues(const Value& value, const std::string& path, const InspectOptions& options,
               FileReport& report, uint64_t& parameters) {
  auto below = [&](const std::string& step) { return path.empty() ? step : path + "." + step; };
  if (value.Is(Value::Kind::kDict) && !value.pairs().empty()) {
    for (const auto& [key, item] : value.pairs()) {
      AddValues(item, below(KeyText(key)), options, report, parameters);
    }
    return;
  }
  const bool list = value.Is(Value::Kind::kList) || value.Is(Value::Kind::kTuple);
  if (list && !value.items().empty()) {
    for (size_t i = 0; i < value.items().size(); ++i) {
      AddValues(value.items()[i], below(std::to_string(i)), options, report, parameters);
    }
    return;
  }
  Json part = {{"name", path}};
  if (value.Is(Value::Kind::kTensor)) {
    part["dtype"] = NameOf(value.stored().type);
    part["shape"] = value.stored().shape;
    part["value"] = nullptr;
    parameters += CountOf(value.stored().shape).value_or(0);
  } else {
    part["dtype"] = nullptr;
    part["shape"] = nullptr;
    part["value"] = LeafTree(value, 10 * options.cut);
  }
  report.parts.push_back(std::move(part));
}

FileReport InspectPt(const std::string& path, const InspectOptions& options) {
  const Value root = ReadPt(path);
  FileReport report;
  report.format = "pt";
  report.parts_name = "values";
  uint64_t elements = 0;
  AddValues(root, "", options, report, elements);
  const auto tensors = std::count_if(report.parts.begin(), report.parts.end(),
                                     [](const Json& part) { return !part["dtype"].is_null(); });
  report.facts["root"] = Describe(root);
  report.facts["tensor_count"] = tensors;
  report.facts["elements"] = elements;
  report.facts["checksum"] =
      HasChecksum(MappedFile::Open(path)->bytes(), path) ? kRightSum : kNoSum;
  return report;
}

FileReport InspectSqlite(const std::string& path, const InspectOptions& options) {
  SqliteDb db(path, SqliteDb::Mode::kRead);
  FileReport report;
  report.format = "sqlite";
  report.parts_name = "tables";
  for (const SqliteTable& table : db.Tables()) {
    Json columns = Json::array();
    for (const SqliteColumn& column : table.columns) {
      columns.push_back(column.type.empty() ? column.name : column.name + " " + column.type);
    }
    report.parts.push_back({{"name", table.name}, {"rows", table.rows}, {"columns", columns}});
    SqliteStatement rows =
        db.Prepare(fmt::format("SELECT * FROM {} LIMIT {}", SqliteName(table.name), options.rows));
    while (rows.Step()) {
      Json object = {{"table", table.name}};
      for (int i = 0; i < rows.columns(); ++i) {
        Json& cell = object[rows.ColumnName(i)];
        if (!rows.IsNull(i)) cell = CutText(std::string(rows.Text(i)), 10 * options.cut);
      }
      report.rows.push_back(std::move(object));
    }
  }
  return report;
}

FileReport InspectEvents(const std::string& path) {
  FileReport report;
  report.format = "tensorboard events";
  report.parts_name = "tags";
  std::map<std::string, size_t> index;
  ScalarReader reader(path);
  while (const auto scalar = reader.Next()) {
    const auto [at, added] = index.emplace(scalar->tag, report.parts.size());
    if (added) {
      report.parts.push_back({{"name", scalar->tag},
                              {"count", 0},
                              {"first_step", scalar->step},
                              {"last_step", 0},
                              {"last_value", 0}});
    }
    Json& part = report.parts[at->second];
    part["count"] = part["count"].get<uint64_t>() + 1;
    part["last_step"] = scalar->step;
    part["last_value"] = FloatTree(scalar->value);
  }
  report.facts["torn_end"] = reader.torn();
  return report;
}

// Kinds of a key's values, as a type: "int", "int or null", "text".
struct KeyStatistics {
  uint64_t count = 0;
  std::map<std::string, uint64_t> kinds;
};

std::string KindName(JsonKind kind) {
  switch (kind) {
    case JsonKind::kMissing:
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "bool";
    case JsonKind::kInt:
      return "int";
    case JsonKind::kDouble:
      return "double";
    case JsonKind::kString:
      return "text";
    case JsonKind::kArray:
      return "list";
    case JsonKind::kObject:
      return "object";
  }
  return "";
}

FileReport InspectJsonl(const std::string& path, const InspectOptions& options) {
  FileReport report;
  report.format = "jsonl";
  JsonLines lines(path);
  std::vector<std::pair<std::string, KeyStatistics>> keys;
  std::map<std::string, size_t, std::less<>> index;
  uint64_t count = 0;
  uint64_t broken = 0;
  std::string problem;
  while (const JsonLine* line = lines.Next()) {
    if (++count % 4096 == 0 && options.on_bytes) options.on_bytes(lines.Position());
    if (!line->ok()) {
      if (broken++ == 0) problem = line->problem();
      continue;
    }
    const JsonValue root = line->root();
    if (report.rows.size() < options.rows) report.rows.push_back(ToTree(root, 10 * options.cut));
    if (root.kind() != JsonKind::kObject) continue;
    for (const JsonValue field : root.Fields()) {
      auto at = index.find(field.key());
      if (at == index.end()) {
        if (keys.size() == Limits().columns) {
          throw Error("{}: more than {} different keys; {}", line->Place(), keys.size(),
                      AllowHint("columns", 2 * keys.size()));
        }
        at = index.emplace(std::string(field.key()), keys.size()).first;
        keys.emplace_back(at->first, KeyStatistics());
      }
      KeyStatistics& statistics = keys[at->second].second;
      ++statistics.count;
      ++statistics.kinds[KindName(field.kind())];
    }
  }
  report.facts["lines"] = count;
  report.facts["broken_lines"] = broken;
  if (broken > 0) report.facts["first_problem"] = problem;
  report.parts_name = "keys";
  for (const auto& [name, statistics] : keys) {
    std::string kinds;
    for (const auto& [kind, unused] : statistics.kinds)
      kinds += (kinds.empty() ? "" : " or ") + kind;
    report.parts.push_back({{"name", name}, {"type", kinds}, {"count", statistics.count}});
  }
  return report;
}

// A JSON document as a whole: what is at its top.
FileReport InspectJson(const std::string& path, const InspectOptions& options) {
  const uint64_t size = std::filesystem::file_size(path);
  if (size > Limits().line) {
    throw Error("{}: a JSON document of {} bytes; {}", path, size, AllowHint("line", size));
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  JsonCell cell(path);
  const JsonLine& document = cell.Parse(text, 0);
  if (!document.ok()) throw Error("{}: no JSON document: {}", path, document.problem());
  FileReport report;
  report.format = "json";
  report.facts["top"] = KindName(document.root().kind());
  report.parts_name = "items";
  uint64_t count = 0;
  const auto add = [&](const std::string& name, const JsonValue& value) {
    if (++count > Limits().columns) return;
    const Json tree = ToTree(value, 10 * options.cut);
    report.parts.push_back(
        {{"name", name},
         {"type", KindName(value.kind())},
         {"value", options.cut == 0 ? tree : Json(CutText(tree.dump(), 10 * options.cut))}});
  };
  const JsonValue root = document.root();
  if (root.kind() == JsonKind::kObject) {
    for (const JsonValue field : root.Fields()) add(std::string(field.key()), field);
  } else if (root.kind() == JsonKind::kArray) {
    for (const JsonValue item : root.Items()) add(std::to_string(count), item);
  } else {
    add("", root);
  }
  report.facts["item_count"] = count;
  return report;
}

// Rows of lc0's training data, packed or not.
FileReport InspectLc0Rows(const std::string& path, const InspectOptions& options) {
  FileReport report;
  report.format = "lc0 training data";
  const auto source = OpenBytes(path);
  std::string buffer(64 * sizeof(Lc0Row), '\0');
  size_t have = 0;
  uint64_t rows = 0;
  std::map<std::string, uint64_t> formats;
  for (size_t got = 1; got > 0;) {
    got = source->Read(buffer.data() + have, buffer.size() - have);
    have += got;
    if (options.on_bytes) options.on_bytes(source->Position());
    size_t at = 0;
    for (; have - at >= sizeof(Lc0Row); at += sizeof(Lc0Row)) {
      Lc0Row row;
      std::memcpy(&row, buffer.data() + at, sizeof(row));
      if (rows == 0) report.facts["version"] = uint32_t{row.version};
      if (row.version != kLc0RowVersion && rows == 0) return report;
      ++rows;
      ++formats[fmt::format("{} ({})", uint32_t{row.input_format},
                            InputFormatName(row.input_format))];
      if (report.rows.size() < options.rows) report.rows.push_back(ToTree(row));
    }
    buffer.erase(0, at);
    buffer.resize(64 * sizeof(Lc0Row));
    have -= at;
  }
  report.facts["rows"] = rows;
  report.facts["row_bytes"] = sizeof(Lc0Row);
  report.facts["input_formats"] = formats;
  if (have > 0) report.facts["cut_row_bytes"] = have;
  return report;
}

// The files of an archive, and what the first one is.
FileReport InspectTar(const std::string& path, const InspectOptions& options) {
  FileReport report;
  report.format = "tar";
  report.parts_name = "files";
  TarReader tar(OpenBytes(path));
  uint64_t bytes = 0;
  while (const auto entry = tar.Next()) {
    if (report.parts.empty() && entry->size <= kMaxEntryBytes) {
      std::string content = tar.ReadAll();
      std::string unpacked;
      if (Gunzip(content, kMaxEntryBytes, unpacked)) content = std::move(unpacked);
      if (LooksLikeLc0Rows(content)) {
        report.facts["first_file"] = fmt::format("lc0 training data, version {}, {} rows",
                                                 int{content[0]}, content.size() / sizeof(Lc0Row));
      }
    }
    bytes += entry->size;
    report.parts.push_back({{"name", entry->name}, {"bytes", entry->size}});
    if (options.on_bytes) options.on_bytes(tar.Position());
  }
  report.facts["file_count"] = report.parts.size();
  report.facts["file_bytes"] = bytes;
  return report;
}

// Anything else: text by lines, or bytes.
FileReport InspectBytes(const std::string& path, const InspectOptions& options) {
  FileReport report;
  const auto source = OpenBytes(path);
  std::vector<char> buffer(1 << 16);
  uint64_t bytes = 0;
  uint64_t lines = 0;
  bool text = true;
  std::string head;
  size_t head_lines = 0;
  for (size_t count = source->Read(buffer.data(), buffer.size()); count > 0;
       count = source->Read(buffer.data(), buffer.size())) {
    bytes += count;
    const std::string_view some(buffer.data(), count);
    lines += static_cast<uint64_t>(std::count(some.begin(), some.end(), '\n'));
    text = text && some.find('\0') == std::string_view::npos;
    if (text && head_lines < options.rows && (options.cut == 0 || head.size() < kHeadBytes)) {
      head += some;
      head_lines = static_cast<size_t>(std::count(head.begin(), head.end(), '\n'));
    }
    report.end += some.substr(count - std::min(count, kEndBytes));
    if (report.end.size() > kEndBytes) report.end.erase(0, report.end.size() - kEndBytes);
    if (options.on_bytes) options.on_bytes(source->Position());
  }
  report.format = text ? "text" : "bytes";
  report.facts["unpacked_bytes"] = bytes;
  if (text) report.facts["lines"] = lines;
  for (std::string_view line : Split(head, '\n')) {
    if (!text || report.rows.size() == options.rows) break;
    report.rows.push_back(CutText(std::string(line), 10 * options.cut));
  }
  return report;
}

// The first bytes, unpacked.
std::string HeadOf(const std::string& path) {
  const auto source = OpenBytes(path, {.read_ahead = false});
  std::string head(kHeadBytes, '\0');
  size_t size = 0;
  for (size_t count = 1; count > 0 && size < head.size(); size += count) {
    count = source->Read(head.data() + size, head.size() - size);
  }
  head.resize(size);
  return head;
}

std::string RawHeadOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error::System("cannot read " + path);
  std::string head(16, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(in.gcount()));
  return head;
}

// JSON lines have a whole value on their first line; a document spread over lines has not.
bool FirstLineIsJson(std::string_view head) {
  const std::string_view line = Trim(head.substr(0, head.find('\n')));
  const bool cut = head.size() == kHeadBytes && head.find('\n') == std::string_view::npos;
  return cut || Json::accept(line);
}

FileReport Dispatch(const std::string& path, const InspectOptions& options) {
  if (std::filesystem::is_directory(path)) return InspectParquet(path, options);
  const std::string raw = RawHeadOf(path);
  const std::string name = std::filesystem::path(path).filename();
  if (raw.starts_with("PAR1")) return InspectParquet(path, options);
  if (raw.starts_with("\x93NUMPY")) return InspectNpy(path, options);
  if (raw.starts_with("PK")) return InspectPt(path, options);
  if (raw.starts_with("SQLite format 3")) return InspectSqlite(path, options);
  if (name.find("tfevents") != std::string::npos) return InspectEvents(path);
  if (name.ends_with(".safetensors") || (raw.size() > 8 && raw[8] == '{' && raw[7] == '\0')) {
    return InspectSafetensors(path, options);
  }
  // Names decide where the bytes do not: a damaged file is told as what it should be.
  if (name.ends_with(".parquet")) return InspectParquet(path, options);
  if (name.ends_with(".npy")) return InspectNpy(path, options);
  if (name.ends_with(".pt") || name.ends_with(".pth")) return InspectPt(path, options);
  if (name.ends_with(".json")) return InspectJson(path, options);
  const std::string head = HeadOf(path);
  if (LooksLikeTar(head)) return InspectTar(path, options);
  if (LooksLikeLc0Rows(head)) return InspectLc0Rows(path, options);
  const std::string_view text = Trim(std::string_view(head).substr(0, 256));
  const bool json = name.find(".jsonl") != std::string::npos ||
                    (!text.empty() && (text[0] == '{' || text[0] == '[') && FirstLineIsJson(head));
  return json ? InspectJsonl(path, options) : InspectBytes(path, options);
}

std::string CompressionOf(const std::string& path) {
  const std::string head = RawHeadOf(path);
  if (head.starts_with("\x1f\x8b")) return "gzip";
  if (head.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  // A skippable frame, as pzstd puts before each of its own.
  if (head.size() >= 4 && (head[0] & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18") {
    return "zstd";
  }
  return "";
}

}  // namespace

Json FileReport::ToTree() const {
  Json tree = {{"path", path}, {"format", format}};
  for (const auto& [key, value] : facts.items()) tree[key] = value;
  if (!parts_name.empty()) tree[parts_name] = parts;
  tree["first_rows"] = rows;
  return tree;
}

FileReport InspectFile(const std::string& path, const InspectOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) throw Error("cannot read {}: no such file", path);
  FileReport report = Dispatch(path, options);
  report.path = path;
  Json facts = Json::object();
  if (!std::filesystem::is_directory(path)) {
    facts["bytes"] = std::filesystem::file_size(path);
    const std::string compression = CompressionOf(path);
    if (!compression.empty()) facts["compression"] = compression;
  }
  facts.update(report.facts);
  report.facts = std::move(facts);
  return report;
}

}  // namespace kibitz::io
