#include "io/weights/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace kibitz::io {
namespace {

// What is left of `path` after the step `key`; nothing when the path does not start with it.
std::optional<std::string_view> AfterStep(std::string_view path, std::string_view key) {
  if (!path.starts_with(key)) return std::nullopt;
  path.remove_prefix(key.size());
  if (path.empty()) return path;
  if (path.front() != '.') return std::nullopt;
  return path.substr(1);
}

std::string KeyText(const Value& key) {
  if (key.Is(Value::Kind::kString)) return key.AsText();
  if (key.Is(Value::Kind::kInt)) return fmt::format("{}", key.AsInt());
  return "";
}

bool SameTensors(const StoredTensor& a, const StoredTensor& b) {
  if (a.type != b.type || a.shape != b.shape) return false;
  const Tensor left = a.ToTensor();
  const Tensor right = b.ToTensor();
  return std::ranges::equal(left.bytes, right.bytes);
}

bool SameOpaques(const Opaque& a, const Opaque& b) {
  return a.module == b.module && a.name == b.name && a.called == b.called && a.args == b.args &&
         a.state == b.state && a.items == b.items && a.pairs == b.pairs;
}

}  // namespace

template <typename T>
const T& Value::Expect(bool fits, std::string_view expected) const {
  if (!fits) throw Error("found {}, expected {}", Describe(*this), expected);
  return std::get<T>(data_);
}

Value Value::Bool(bool value) {
  Value out;
  out.kind_ = Kind::kBool;
  out.data_ = value;
  return out;
}

Value Value::Int(int64_t value) {
  Value out;
  out.kind_ = Kind::kInt;
  out.data_ = value;
  return out;
}

Value Value::Float(double value) {
  Value out;
  out.kind_ = Kind::kFloat;
  out.data_ = value;
  return out;
}

Value Value::String(std::string text) {
  Value out;
  out.kind_ = Kind::kString;
  out.data_ = std::make_shared<const std::string>(std::move(text));
  return out;
}

Value Value::Bytes(std::string bytes) {
  Value out = String(std::move(bytes));
  out.kind_ = Kind::kBytes;
  return out;
}

Value Value::List(Items items) {
  Value out;
  out.kind_ = Kind::kList;
  out.data_ = std::make_shared<const Items>(std::move(items));
  return out;
}

Value Value::Tuple(Items items) {
  Value out = List(std::move(items));
  out.kind_ = Kind::kTuple;
  return out;
}

Value Value::Set(Items items) {
  Value out = List(std::move(items));
  out.kind_ = Kind::kSet;
  return out;
}

Value Value::Dict(Pairs pairs) {
  Value out;
  out.kind_ = Kind::kDict;
  out.data_ = std::make_shared<const Pairs>(std::move(pairs));
  return out;
}

Value Value::Of(Tensor tensor) { return Of(Stored(std::move(tensor))); }

Value Value::Of(StoredTensor tensor) {
  Value out;
  out.kind_ = Kind::kTensor;
  out.data_ = std::make_shared<const StoredTensor>(std::move(tensor));
  return out;
}

Value Value::Of(io::Opaque opaque) {
  Value out;
  out.kind_ = Kind::kOpaque;
  out.data_ = std::make_shared<const io::Opaque>(std::move(opaque));
  return out;
}

bool Value::AsBool() const { return Expect<bool>(Is(Kind::kBool), "a bool"); }

int64_t Value::AsInt() const { return Expect<int64_t>(Is(Kind::kInt), "a whole number"); }

double Value::AsDouble() const {
  if (Is(Kind::kInt)) return static_cast<double>(AsInt());
  return Expect<double>(Is(Kind::kFloat), "a number");
}

const std::string& Value::AsText() const {
  return *Expect<std::shared_ptr<const std::string>>(Is(Kind::kString), "a string");
}

const std::string& Value::AsBytes() const {
  return *Expect<std::shared_ptr<const std::string>>(Is(Kind::kBytes), "bytes");
}

const Value::Items& Value::items() const {
  const bool fits = Is(Kind::kList) || Is(Kind::kTuple) || Is(Kind::kSet);
  return *Expect<std::shared_ptr<const Items>>(fits, "a list, tuple or set");
}

const Value::Pairs& Value::pairs() const {
  return *Expect<std::shared_ptr<const Pairs>>(Is(Kind::kDict), "a dict");
}

const StoredTensor& Value::stored() const {
  return *Expect<std::shared_ptr<const StoredTensor>>(Is(Kind::kTensor), "a tensor");
}

Tensor Value::AsTensor() const { return stored().ToTensor(); }

const Opaque& Value::opaque() const {
  return *Expect<std::shared_ptr<const io::Opaque>>(Is(Kind::kOpaque), "an object");
}

const Value* Value::Find(std::string_view path) const {
  if (path.empty()) return this;
  if (Is(Kind::kDict)) {
    for (const auto& [key, value] : pairs()) {
      const std::string text = KeyText(key);
      const auto rest = text.empty() ? std::nullopt : AfterStep(path, text);
      if (!rest) continue;
      if (const Value* found = value.Find(*rest)) return found;
    }
  } else if (Is(Kind::kList) || Is(Kind::kTuple)) {
    const std::string_view step = path.substr(0, path.find('.'));
    const auto index = ParseUnsigned(step);
    if (!index || *index >= items().size()) return nullptr;
    return items()[*index].Find(*AfterStep(path, step));
  }
  return nullptr;
}

const Value& Value::Get(std::string_view path) const {
  if (const Value* found = Find(path)) return *found;
  std::string there = Describe(*this);
  if (Is(Kind::kDict)) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : pairs()) keys.push_back(KeyText(key));
    if (const auto nearest = NearestName(path, keys)) {
      there = "the nearest key is " + Quoted(*nearest);
    } else {
      keys.resize(std::min<size_t>(keys.size(), 8));
      there += fmt::format(" with {}", fmt::join(keys, ", "));
    }
  }
  throw Error("found no {} ({})", Quoted(path), there);
}

bool operator==(const Value& a, const Value& b) {
  if (a.kind_ != b.kind_) return false;
  switch (a.kind_) {
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kBool:
      return a.AsBool() == b.AsBool();
    case Value::Kind::kInt:
      return a.AsInt() == b.AsInt();
    case Value::Kind::kFloat:
      return a.AsDouble() == b.AsDouble() || (std::isnan(a.AsDouble()) && std::isnan(b.AsDouble()));
    case Value::Kind::kString:
      return a.AsText() == b.AsText();
    case Value::Kind::kBytes:
      return a.AsBytes() == b.AsBytes();
    case Value::Kind::kList:
    case Value::Kind::kTuple:
    case Value::Kind::kSet:
      return a.items() == b.items();
    case Value::Kind::kDict:
      return a.pairs() == b.pairs();
    case Value::Kind::kTensor:
      return SameTensors(a.stored(), b.stored());
    case Value::Kind::kOpaque:
      return SameOpaques(a.opaque(), b.opaque());
  }
  return false;
}

std::string Describe(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      return "None";
    case Value::Kind::kBool:
      return value.AsBool() ? "True" : "False";
    case Value::Kind::kInt:
      return fmt::format("{}", value.AsInt());
    case Value::Kind::kFloat:
      return fmt::format("{}", value.AsDouble());
    case Value::Kind::kString:
      return Quoted(value.AsText());
    case Value::Kind::kBytes:
      return fmt::format("{} bytes", value.AsBytes().size());
    case Value::Kind::kList:
      return fmt::format("list of {}", value.items().size());
    case Value::Kind::kTuple:
      return fmt::format("tuple of {}", value.items().size());
    case Value::Kind::kSet:
      return fmt::format("set of {}", value.items().size());
    case Value::Kind::kDict:
      return fmt::format("dict of {}", value.pairs().size());
    case Value::Kind::kTensor:
      return fmt::format("{} {}", NameOf(value.stored().type), ShapeText(value.stored().shape));
    case Value::Kind::kOpaque:
      return "object " + value.opaque().FullName();
  }
  return "";
}

bool IsUtf8(std::string_view text, bool surrogates) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    if (lead < 0xc2 || lead > 0xf4) return false;
    const int more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    uint32_t code = lead & (0x3fU >> more);
    for (int k = 0; k < more; ++k) {
      if (i == text.size()) return false;
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return false;
      code = (code << 6) | (next & 0x3fU);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || code > 0x10ffff) return false;
    if (code >= 0xd800 && code < 0xe000 && !surrogates) return false;
  }
  return true;
}

}  // namespace kibitz::io
