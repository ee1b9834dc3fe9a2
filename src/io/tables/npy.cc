#include "io/tables/npy.h"

#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/bytes/mapped_file.h"
#include "io/tables/python_literal.h"

namespace kibitz::io {
namespace {

using Kind = PythonLiteral::Kind;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 256 << 10;
constexpr size_t kMaxRowBytes = 1 << 30;
constexpr size_t kMaxAxes = 64;  // As numpy.
constexpr size_t kDataAlignment = 64;

struct TypeCode {
  DType type;
  std::string_view code;  // As numpy writes it.
};
constexpr std::array<TypeCode, 12> kTypeCodes = {{{DType::kBool, "|b1"},
                                                  {DType::kU8, "|u1"},
                                                  {DType::kI8, "|i1"},
                                                  {DType::kU16, "<u2"},
                                                  {DType::kI16, "<i2"},
                                                  {DType::kU32, "<u4"},
                                                  {DType::kI32, "<i4"},
                                                  {DType::kU64, "<u8"},
                                                  {DType::kI64, "<i8"},
                                                  {DType::kF16, "<f2"},
                                                  {DType::kF32, "<f4"},
                                                  {DType::kF64, "<f8"}}};

std::string_view CodeOf(DType type) {
  for (const TypeCode& known : kTypeCodes) {
    if (known.type == type) return known.code;
  }
  throw Error("numpy has no {}; convert it to float32 first", NameOf(type));
}

DType TypeOf(std::string_view code) {
  for (const TypeCode& known : kTypeCodes) {
    // One byte has no order, whatever mark it carries.
    const bool same_order = SizeOf(known.type) == 1 || code.starts_with('<');
    if (code.size() == 3 && code.substr(1) == known.code.substr(1) && same_order) return known.type;
  }
  if (code.starts_with('>')) {
    throw Error("big-endian numbers ({}); save a.astype(a.dtype.newbyteorder('<')) instead", code);
  }
  if (code.find('O') != std::string_view::npos) {
    throw Error("Python objects ({}), which are never loaded; save arrays of numbers", code);
  }
  throw Error("elements of type {}, expected bool, int, uint or float numbers", Quoted(code));
}

std::vector<int64_t> Joined(std::vector<int64_t> shape, const std::vector<int64_t>& inner) {
  shape.insert(shape.end(), inner.begin(), inner.end());
  return shape;
}

std::vector<int64_t> ParseShape(const PythonLiteral& literal) {
  if (literal.Is(Kind::kInt)) return {literal.number};
  if (!literal.Is(Kind::kTuple)) throw Error("a shape that is not a tuple");
  if (literal.items.size() > kMaxAxes) throw Error("a shape of more than {} axes", kMaxAxes);
  std::vector<int64_t> shape;
  for (const PythonLiteral& item : literal.items) {
    if (!item.Is(Kind::kInt) || item.number < 0) throw Error("a shape with something but sizes");
    shape.push_back(item.number);
  }
  return shape;
}

NpyField ParseField(std::string name, const PythonLiteral& format, std::vector<int64_t> shape) {
  if (!format.Is(Kind::kString)) {
    throw Error("the field {} with fields of its own; save it flat", Quoted(name));
  }
  if (name.empty()) throw Error("a field without a name");
  NpyField field = {std::move(name), TypeOf(format.text), std::move(shape)};
  const auto bytes = BytesOf(field.type, field.shape);
  if (!bytes || *bytes > kMaxRowBytes) {
    throw Error("the field {} of shape {}, which is too large", Quoted(field.name),
                ShapeText(field.shape));
  }
  return field;
}

// Bytes of '|V2', which pads; nothing for other codes.
std::optional<size_t> ParseGap(const PythonLiteral& format) {
  if (!format.Is(Kind::kString) || !format.text.starts_with("|V")) return std::nullopt;
  const auto bytes = ParseUnsigned(std::string_view(format.text).substr(2));
  if (!bytes || *bytes > kMaxRowBytes) throw Error("padding of {}", Quoted(format.text));
  return static_cast<size_t>(*bytes);
}

// [('run_id', '<u4'), ('', '|V2'), ('branch_evs', '<f4', (4,))]
NpyLayout ParseFieldList(const PythonLiteral& list) {
  NpyLayout layout;
  for (const PythonLiteral& item : list.items) {
    const size_t parts = item.items.size();
    if (!item.Is(Kind::kTuple) || parts < 2 || parts > 3) {
      throw Error("a field that is not a tuple");
    }
    const PythonLiteral& titled = item.items[0];  // 'name', or ('title', 'name').
    const bool with_title = titled.Is(Kind::kTuple) && titled.items.size() == 2;
    const PythonLiteral& name = with_title ? titled.items[1] : titled;
    if (!name.Is(Kind::kString)) throw Error("a field whose name is not a string");
    const auto gap = name.text.empty() ? ParseGap(item.items[1]) : std::nullopt;
    if (gap && parts == 2) {
      layout.row_bytes += *gap;
    } else {
      NpyField field = ParseField(name.text, item.items[1],
                                  parts == 3 ? ParseShape(item.items[2]) : std::vector<int64_t>());
      field.offset = layout.row_bytes;
      layout.row_bytes += field.Bytes();
      layout.fields.push_back(std::move(field));
    }
    if (layout.row_bytes > kMaxRowBytes) throw Error("rows of over {} bytes", kMaxRowBytes);
  }
  return layout;
}

const PythonLiteral& ListOf(const PythonLiteral& dict, std::string_view key, size_t size) {
  const PythonLiteral* list = dict.Find(key);
  if (list == nullptr || !(list->Is(Kind::kList) || list->Is(Kind::kTuple))) {
    throw Error("fields without a list of '{}'", key);
  }
  if (size > 0 && list->items.size() != size) throw Error("fields whose lists differ in length");
  return *list;
}

// {'names': [...], 'formats': [...], 'offsets': [...], 'itemsize': 48}
NpyLayout ParseFieldDict(const PythonLiteral& dict) {
  const PythonLiteral& names = ListOf(dict, "names", 0);
  const size_t count = names.items.size();
  const PythonLiteral& formats = ListOf(dict, "formats", count);
  std::vector<NpyField> fields;
  for (size_t i = 0; i < count; ++i) {
    if (!names.items[i].Is(Kind::kString)) throw Error("a field whose name is not a string");
    const PythonLiteral& format = formats.items[i];  // '<f4', or ('<f4', (4,)).
    const bool shaped = format.Is(Kind::kTuple) && format.items.size() == 2;
    fields.push_back(ParseField(names.items[i].text, shaped ? format.items[0] : format,
                                shaped ? ParseShape(format.items[1]) : std::vector<int64_t>()));
  }
  const PythonLiteral* aligned = dict.Find("aligned");
  const bool align = aligned != nullptr && aligned->Is(Kind::kBool) && aligned->number == 1;
  NpyLayout layout =
      align ? NpyLayout::Aligned(std::move(fields)) : NpyLayout::Packed(std::move(fields));
  if (dict.Find("offsets") != nullptr) {
    const PythonLiteral& offsets = ListOf(dict, "offsets", count);
    layout.row_bytes = 0;
    for (size_t i = 0; i < count; ++i) {
      const PythonLiteral& offset = offsets.items[i];
      if (!offset.Is(Kind::kInt) || offset.number < 0 ||
          offset.number > static_cast<int64_t>(kMaxRowBytes)) {
        throw Error("a field whose offset is outside the row");
      }
      NpyField& field = layout.fields[i];
      field.offset = static_cast<size_t>(offset.number);
      layout.row_bytes = std::max(layout.row_bytes, field.offset + field.Bytes());
    }
  }
  if (const PythonLiteral* size = dict.Find("itemsize")) {
    if (!size->Is(Kind::kInt) || size->number < static_cast<int64_t>(layout.row_bytes)) {
      throw Error("rows that are shorter than their fields");
    }
    layout.row_bytes = static_cast<size_t>(size->number);
  }
  return layout;
}

void CheckLayout(NpyLayout& layout) {
  std::sort(layout.fields.begin(), layout.fields.end(),
            [](const NpyField& a, const NpyField& b) { return a.offset < b.offset; });
  std::set<std::string_view> names;
  size_t end = 0;
  for (const NpyField& field : layout.fields) {
    if (!names.insert(field.name).second) throw Error("two fields named {}", Quoted(field.name));
    if (field.offset < end) throw Error("the field {} overlapping another", Quoted(field.name));
    end = field.offset + field.Bytes();
  }
  if (layout.fields.empty() || layout.row_bytes == 0) throw Error("elements without any bytes");
  if (layout.row_bytes > kMaxRowBytes) throw Error("rows of over {} bytes", kMaxRowBytes);
}

NpyLayout ParseLayout(const PythonLiteral& descr) {
  if (descr.Is(Kind::kString)) return NpyLayout::Of(TypeOf(descr.text));
  NpyLayout layout;
  if (descr.Is(Kind::kList)) {
    layout = ParseFieldList(descr);
  } else if (descr.Is(Kind::kDict)) {
    layout = ParseFieldDict(descr);
  } else {
    throw Error("a 'descr' that is neither a type nor fields");
  }
  CheckLayout(layout);
  return layout;
}

struct Header {
  std::string text;  // As UTF-8.
  size_t bytes = 0;  // With all that comes before the data.
};

// Version 3 is UTF-8; versions 1 and 2 are Latin-1.
std::string HeaderText(std::string_view raw, int version) {
  if (version == 3) {
    if (!simdjson::validate_utf8(raw.data(), raw.size())) throw Error("a header that is not UTF-8");
    return std::string(raw);
  }
  std::string text;
  for (char c : raw) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x80) text += static_cast<char>(0xc0 | (code >> 6));
    text += static_cast<char>(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
  }
  return text;
}

Header ReadHeader(std::string_view file) {
  if (!file.starts_with(kMagic)) {
    throw Error("{}, expected \\x93NUMPY; this is not an .npy file",
                Quoted(file.substr(0, kMagic.size())));
  }
  if (file.size() < 8)
    throw Error("{} bytes, expected a header; the file was cut short", file.size());
  const int version = static_cast<uint8_t>(file[6]);
  if (version < 1 || version > 3 || file[7] != 0) {
    throw Error("version {}.{}, expected 1.0, 2.0 or 3.0", static_cast<uint8_t>(file[6]),
                static_cast<uint8_t>(file[7]));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t start = 8 + length_bytes;
  if (file.size() < start) {
    throw Error("{} bytes, expected a header; the file was cut short", file.size());
  }
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<size_t>(static_cast<uint8_t>(file[8 + i])) << (8 * i);
  }
  if (length > kMaxHeaderBytes) {
    throw Error("a header of {} bytes, expected at most {}", length, kMaxHeaderBytes);
  }
  if (file.size() - start < length) {
    throw Error("{} bytes, expected a header of {}; the file was cut short", file.size(), length);
  }
  return {HeaderText(file.substr(start, length), version), start + length};
}

// Elements of the array; each field of them makes a tensor that can be counted as well.
uint64_t CheckedCount(const NpyLayout& layout, const std::vector<int64_t>& shape) {
  const auto count = CountOf(shape);
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  bool fits = count && *count <= kMax / layout.row_bytes;
  for (const NpyField& field : layout.fields) {
    fits = fits && BytesOf(field.type, Joined(shape, field.shape)).has_value();
  }
  if (!fits) throw Error("the shape {}, which is larger than any file", ShapeText(shape));
  return *count;
}

std::string TupleText(std::span<const int64_t> shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0])
                           : fmt::format("({})", fmt::join(shape, ", "));
}

std::string DescrText(const NpyLayout& layout) {
  if (layout.IsNumber()) return fmt::format("'{}'", CodeOf(layout.fields[0].type));
  std::vector<std::string> parts;
  size_t end = 0;
  const auto fill_gap = [&](size_t next) {
    if (next > end) parts.push_back(fmt::format("('', '|V{}')", next - end));
  };
  for (const NpyField& field : layout.fields) {
    fill_gap(field.offset);
    const std::string shape = field.shape.empty() ? "" : ", " + TupleText(field.shape);
    parts.push_back(
        fmt::format("({}, '{}'{})", PythonString(field.name), CodeOf(field.type), shape));
    end = field.offset + field.Bytes();
  }
  fill_gap(layout.row_bytes);
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

}  // namespace

size_t NpyField::Bytes() const {
  const auto bytes = BytesOf(type, shape);
  CHECK(bytes.has_value());
  return static_cast<size_t>(*bytes);
}

NpyLayout NpyLayout::Of(DType type) { return {{{"", type}}, SizeOf(type)}; }

NpyLayout NpyLayout::Packed(std::vector<NpyField> fields) {
  NpyLayout layout = {std::move(fields), 0};
  for (NpyField& field : layout.fields) {
    field.offset = layout.row_bytes;
    layout.row_bytes += field.Bytes();
  }
  return layout;
}

NpyLayout NpyLayout::Aligned(std::vector<NpyField> fields) {
  const auto round_up = [](size_t value, size_t unit) { return (value + unit - 1) / unit * unit; };
  NpyLayout layout = {std::move(fields), 0};
  size_t widest = 1;
  for (NpyField& field : layout.fields) {
    const size_t unit = SizeOf(field.type);
    field.offset = round_up(layout.row_bytes, unit);
    layout.row_bytes = field.offset + field.Bytes();
    widest = std::max(widest, unit);
  }
  layout.row_bytes = round_up(layout.row_bytes, widest);
  return layout;
}

std::string NpyLayout::Text() const {
  if (IsNumber()) return std::string(NameOf(fields[0].type));
  std::vector<std::string> parts;
  for (const NpyField& field : fields) {
    const std::string shape = field.shape.empty() ? "" : " " + ShapeText(field.shape);
    parts.push_back(
        fmt::format("{} {}{} @{}", field.name, NameOf(field.type), shape, field.offset));
  }
  return fmt::format("{{{}; {} bytes}}", fmt::join(parts, ", "), row_bytes);
}

NpyFile NpyFile::Open(const std::string& path) {
  auto file = MappedFile::Open(path);
  const auto bytes = file->bytes();
  return Parse(bytes, path, std::move(file));
}

NpyFile NpyFile::Parse(std::span<const std::byte> file, std::string name,
                       std::shared_ptr<const void> owner) {
  NpyFile npy;
  npy.name_ = std::move(name);
  npy.owner_ = std::move(owner);
  try {
    const Header header = ReadHeader({reinterpret_cast<const char*>(file.data()), file.size()});
    const Result<PythonLiteral> literal = ParsePythonLiteral(header.text);
    if (!literal) throw Error("a header with {}", literal.reason());
    const PythonLiteral* descr = literal->Find("descr");
    const PythonLiteral* fortran = literal->Find("fortran_order");
    const PythonLiteral* shape = literal->Find("shape");
    if (descr == nullptr || fortran == nullptr || shape == nullptr || literal->items.size() != 6) {
      throw Error("a header that is not a dict of 'descr', 'fortran_order' and 'shape'");
    }
    npy.layout_ = ParseLayout(*descr);
    if (!fortran->Is(Kind::kBool)) throw Error("a 'fortran_order' that is neither True nor False");
    if (fortran->number == 1) {
      throw Error("columns first (fortran_order); save np.ascontiguousarray(a) instead");
    }
    if (!shape->Is(Kind::kTuple)) throw Error("a shape that is not a tuple");
    npy.shape_ = ParseShape(*shape);
    const uint64_t needed = CheckedCount(npy.layout_, npy.shape_) * npy.layout_.row_bytes;
    npy.bytes_ = file.subspan(header.bytes);
    if (npy.bytes_.size() != needed) {
      throw Error("{} bytes of data, expected {} for the shape {}; the file is {}",
                  npy.bytes_.size(), needed, ShapeText(npy.shape_),
                  npy.bytes_.size() < needed ? "cut short" : "too long");
    }
  } catch (const Error& error) {
    throw Error("{}: found {}", npy.name_, error.message());
  }
  return npy;
}

uint64_t NpyFile::rows() const { return shape_.empty() ? 1 : static_cast<uint64_t>(shape_[0]); }

Tensor NpyFile::AsTensor() const {
  if (!layout_.IsNumber()) {
    throw Error("{}: found rows {}, expected numbers", name_, layout_.Text());
  }
  return {layout_.fields[0].type, shape_, bytes_, owner_};
}

Tensor NpyFile::CopyField(std::string_view field) const {
  const auto found = std::find_if(layout_.fields.begin(), layout_.fields.end(),
                                  [&](const NpyField& known) { return known.name == field; });
  if (found == layout_.fields.end()) {
    throw Error("{}: found no field {} in {}", name_, Quoted(field), layout_.Text());
  }
  const size_t count = bytes_.size() / layout_.row_bytes;
  const size_t size = found->Bytes();
  std::vector<std::byte> out(count * size);
  for (size_t i = 0; i < count && size > 0; ++i) {
    std::memcpy(out.data() + i * size, bytes_.data() + i * layout_.row_bytes + found->offset, size);
  }
  return OwnedTensor(found->type, Joined(shape_, found->shape), std::move(out));
}

void NpyFile::CheckRows(const NpyLayout& expected, size_t alignment) const {
  if (layout_ != expected) {
    throw Error("{}: found {}, expected {}", name_, layout_.Text(), expected.Text());
  }
  if (shape_.size() != 1) {
    throw Error("{}: found the shape {}, expected one axis", name_, ShapeText(shape_));
  }
  if (reinterpret_cast<uintptr_t>(bytes_.data()) % alignment != 0) {
    throw Error("{}: the data does not start at a multiple of {} bytes; save it with numpy again",
                name_, alignment);
  }
}

NpyWriter::NpyWriter(const std::string& path, NpyLayout layout, std::vector<int64_t> row_shape)
    : path_(path), layout_(std::move(layout)), row_shape_(std::move(row_shape)), file_(path) {
  const auto elements = CountOf(row_shape_);
  CHECK(elements && *elements > 0 && layout_.row_bytes > 0);
  row_bytes_ = *elements * layout_.row_bytes;
  file_.Write(NpyHeader(layout_, Joined({0}, row_shape_)));
}

void NpyWriter::Append(std::span<const std::byte> rows) {
  CHECK(rows.size() % row_bytes_ == 0);
  file_.Write({reinterpret_cast<const char*>(rows.data()), rows.size()});
  rows_ += rows.size() / row_bytes_;
}

void NpyWriter::Commit() {
  file_.WriteAt(0, NpyHeader(layout_, Joined({static_cast<int64_t>(rows_)}, row_shape_)));
  file_.Commit();
}

void WriteNpy(const std::string& path, const Tensor& tensor) {
  CHECK(BytesOf(tensor.type, tensor.shape) == tensor.bytes.size());
  const std::string header = NpyHeader(NpyLayout::Of(tensor.type), tensor.shape);
  AtomicFile file(path);
  file.Write(header);
  file.Write({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  file.Commit();
}

std::string NpyHeader(const NpyLayout& layout, std::span<const int64_t> shape) {
  std::string text = fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}",
                                 DescrText(layout), TupleText(shape));
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
  // Room for the first axis to grow to any size.
  constexpr size_t kMaxDigits = 20;
  const size_t digits = shape.empty() ? kMaxDigits : fmt::formatted_size("{}", shape[0]);
  const size_t needed = text.size() + (kMaxDigits - digits) + 1;
  const size_t length_bytes = ascii && needed + kDataAlignment < 65536 ? 2 : 4;
  const size_t start = kMagic.size() + 2 + length_bytes;
  const size_t total = (start + needed + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  const size_t length = total - start;
  text.resize(length - 1, ' ');
  text += '\n';

  std::string header(kMagic);
  header += static_cast<char>(!ascii ? 3 : length_bytes == 2 ? 1 : 2);
  header += '\0';
  for (size_t i = 0; i < length_bytes; ++i) header += static_cast<char>(length >> (8 * i) & 0xff);
  return header + text;
}

}  // namespace kibitz::io
