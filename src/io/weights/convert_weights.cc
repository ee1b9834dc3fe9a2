#include "io/weights/convert_weights.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/weights/torch_file.h"

namespace kibitz::io {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Value::Kind;

constexpr std::string_view kValues = "kibitz.values";
constexpr std::string_view kForeign = "__metadata__";
constexpr std::string_view kFormat = "format";  // What other readers look for, ...
constexpr std::string_view kPt = "pt";          // ... and what they expect.
constexpr int kMaxDepth = 500;                  // As in .pt files.

std::string ToHex(std::string_view bytes) {
  std::string out;
  for (char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::optional<std::string> FromHex(std::string_view hex) {
  std::string out;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (hex.size() % 2 != 0) return std::nullopt;
  for (size_t i = 0; i < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) return std::nullopt;
    out += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return out;
}

bool IsMetadata(const Value& value) {
  return value.Is(Kind::kDict) && std::ranges::all_of(value.pairs(), [](const auto& pair) {
           return pair.first.Is(Kind::kString) && pair.second.Is(Kind::kString);
         });
}

// --- There: values to JSON, tensors to a list.

class Flattener {
 public:
  explicit Flattener(const std::string& place) : place_(place) {}

  FlatWeights Run(const Value& root) {
    if (!root.Is(Kind::kDict)) {
      throw Error("{}: found {}, expected a dict of tensors and values", place_, Describe(root));
    }
    for (const auto& [key, value] : root.pairs()) {
      if (!key.Is(Kind::kString)) {
        throw Error("{}: found key {} at the top, expected texts only", place_, Describe(key));
      }
      if (value.Is(Kind::kTensor)) AddTensor(key.AsText(), value);
    }
    Json keys = Json::array();
    for (const auto& [key, value] : root.pairs()) {
      if (value.Is(Kind::kTensor)) continue;
      if (key.AsText() == kForeign && IsMetadata(value)) {
        for (const auto& [name, text] : value.pairs()) {
          out_.metadata.emplace_back(name.AsText(), text.AsText());
        }
        continue;
      }
      out_.metadata.emplace_back(key.AsText(), ToJson(value, key.AsText()).dump());
      keys.push_back(key.AsText());
    }
    if (!keys.empty()) out_.metadata.emplace_back(kValues, keys.dump());
    const auto format = [](const auto& pair) { return pair.first == kFormat; };
    if (std::ranges::none_of(out_.metadata, format)) out_.metadata.emplace_back(kFormat, kPt);
    return std::move(out_);
  }

 private:
  // The name the tensor got: the path, or with a number when that is taken.
  std::string AddTensor(const std::string& path, const Value& tensor) {
    std::string name = path;
    for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}~{}", path, i);
    out_.tensors.push_back({name, tensor.stored()});
    return name;
  }

  Json ToJson(const Value& value, const std::string& path) {
    switch (value.kind()) {
      case Kind::kNone:
        return nullptr;
      case Kind::kBool:
        return value.AsBool();
      case Kind::kInt:
        return value.AsInt();
      case Kind::kFloat:
        if (std::isfinite(value.AsDouble())) return value.AsDouble();
        return {{"$float", fmt::format("{}", value.AsDouble())}};
      case Kind::kString:
        return Text(value.AsText());
      case Kind::kBytes:
        return {{"$bytes", ToHex(value.AsBytes())}};
      case Kind::kList:
        return Array(value.items(), path);
      case Kind::kTuple:
        return {{"$tuple", Array(value.items(), path)}};
      case Kind::kSet:
        return {{"$set", Array(value.items(), path)}};
      case Kind::kDict:
        return Dict(value.pairs(), path);
      case Kind::kTensor:
        return {{"$tensor", AddTensor(path, value)}};
      case Kind::kOpaque:
        return {{"$opaque", OpaqueJson(value.opaque(), path)}};
    }
    return nullptr;
  }

  std::string Text(const std::string& text) const {
    if (!IsUtf8(text)) throw Error("{}: the text {} is not UTF-8", place_, Quoted(text));
    return text;
  }

  Json Array(const Value::Items& items, const std::string& path) {
    Json out = Json::array();
    for (size_t i = 0; i < items.size(); ++i) {
      out.push_back(ToJson(items[i], fmt::format("{}.{}", path, i)));
    }
    return out;
  }

  Json Dict(const Value::Pairs& pairs, const std::string& path) {
    const bool plain = std::ranges::all_of(pairs, [](const auto& pair) {
      return pair.first.Is(Kind::kString) && !pair.first.AsText().starts_with('$');
    });
    if (!plain) return {{"$dict", PairArray(pairs, path)}};
    Json out = Json::object();
    for (const auto& [key, value] : pairs) {
      // Not operator[]: it would search all earlier keys each time.
      out.get_ref<Json::object_t&>().emplace_back(Text(key.AsText()),
                                                  ToJson(value, path + "." + key.AsText()));
    }
    return out;
  }

  Json PairArray(const Value::Pairs& pairs, const std::string& path) {
    Json out = Json::array();
    for (const auto& [key, value] : pairs) {
      const std::string step = key.Is(Kind::kString) ? key.AsText()
                               : key.Is(Kind::kInt)  ? fmt::format("{}", key.AsInt())
                                                     : "key";
      Json pair = Json::array();
      pair.push_back(ToJson(key, path + ".key"));
      pair.push_back(ToJson(value, path + "." + step));
      out.push_back(std::move(pair));
    }
    return out;
  }

  Json OpaqueJson(const Opaque& opaque, const std::string& path) {
    return {{"module", Text(opaque.module)},
            {"name", Text(opaque.name)},
            {"called", opaque.called},
            {"args", Array(opaque.args, path)},
            {"state", ToJson(opaque.state, path + ".state")},
            {"items", Array(opaque.items, path)},
            {"pairs", PairArray(opaque.pairs, path)}};
  }

  const std::string& place_;
  FlatWeights out_;
  std::unordered_set<std::string> names_;
};

// --- Back.

class Unflattener {
 public:
  Unflattener(const Safetensors& content, const std::string& place)
      : content_(content), place_(place) {
    for (const NamedTensor& tensor : content.tensors) tensors_[tensor.name] = &tensor.tensor;
  }

  Value Run() {
    Value::Pairs pairs;
    std::unordered_set<std::string> keys;
    if (const std::string* list = content_.FindMetadata(kValues)) {
      for (const Json& key : Parsed(*list, std::string(kValues))) {
        if (!key.is_string()) Fail("found {} in {}, expected names", key.dump(), kValues);
        const auto name = key.get<std::string>();
        const std::string* text = content_.FindMetadata(name);
        if (text == nullptr || !keys.insert(name).second) {
          Fail("metadata {}, which {} lists, is not there or listed twice", Quoted(name), kValues);
        }
        pairs.emplace_back(Value::String(name), FromJson(Parsed(*text, name)));
      }
    }
    for (const auto& [name, tensor] : content_.tensors) {
      if (used_.contains(name)) continue;
      if (!keys.insert(name).second) Fail("a tensor and a value are called {}", Quoted(name));
      pairs.emplace_back(Value::String(name), Value::Of(tensor));
    }
    AddForeign(keys, pairs);
    return Value::Dict(std::move(pairs));
  }

 private:
  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error("{}: {}", place_, fmt::format(format, std::forward<Args>(args)...));
  }

  void AddForeign(const std::unordered_set<std::string>& keys, Value::Pairs& pairs) const {
    Value::Pairs foreign;
    for (const auto& [key, text] : content_.metadata) {
      if (key == kValues || keys.contains(key) || (key == kFormat && text == kPt)) continue;
      foreign.emplace_back(Value::String(key), Value::String(text));
    }
    if (foreign.empty()) return;
    if (keys.contains(std::string(kForeign))) {
      Fail("a value and the metadata are called {}", kForeign);
    }
    pairs.emplace_back(Value::String(std::string(kForeign)), Value::Dict(std::move(foreign)));
  }

  Json Parsed(const std::string& text, const std::string& key) const {
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) Fail("metadata {} is not JSON", Quoted(key));
    return json;
  }

  Value FromJson(const Json& json) {
    if (++depth_ > kMaxDepth) Fail("found metadata nested over {} deep", kMaxDepth);
    Value out;
    if (json.is_boolean()) {
      out = Value::Bool(json.get<bool>());
    } else if (json.is_number_integer()) {
      const bool big = json.is_number_unsigned() &&
                       json.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
      if (big) Fail("found the number {} in the metadata, expected 63 bits", json.dump());
      out = Value::Int(json.get<int64_t>());
    } else if (json.is_number_float()) {
      out = Value::Float(json.get<double>());
    } else if (json.is_string()) {
      out = Value::String(json.get<std::string>());
    } else if (json.is_array()) {
      out = Value::List(Items(json));
    } else if (json.is_object()) {
      const bool marked = json.size() == 1 && json.begin().key().starts_with('$');
      out = marked ? Marked(json.begin().key(), json.begin().value()) : Object(json);
    }
    --depth_;
    return out;
  }

  Value::Items Items(const Json& json) {
    Value::Items items;
    if (!json.is_array()) Fail("found {} in the metadata, expected an array", json.type_name());
    for (const Json& item : json) items.push_back(FromJson(item));
    return items;
  }

  Value Object(const Json& json) {
    Value::Pairs pairs;
    for (const auto& [key, value] : json.items()) {
      pairs.emplace_back(Value::String(key), FromJson(value));
    }
    return Value::Dict(std::move(pairs));
  }

  Value::Pairs PairsOf(const Json& json) {
    Value::Pairs pairs;
    for (const Value& item : Items(json)) {
      if (!item.Is(Kind::kList) || item.items().size() != 2) {
        Fail("found {} in the metadata, expected [key, value]", Describe(item));
      }
      pairs.emplace_back(item.items()[0], item.items()[1]);
    }
    return pairs;
  }

  Value Marked(const std::string& mark, const Json& json) {
    const std::string text = json.is_string() ? json.get<std::string>() : "";
    if (mark == "$tuple") return Value::Tuple(Items(json));
    if (mark == "$set") return Value::Set(Items(json));
    if (mark == "$dict") return Value::Dict(PairsOf(json));
    if (mark == "$opaque") return OpaqueOf(json);
    if (mark == "$tensor" && tensors_.contains(text)) {
      used_.insert(text);
      return Value::Of(*tensors_.at(text));
    }
    if (mark == "$bytes") {
      if (auto bytes = FromHex(text)) return Value::Bytes(*std::move(bytes));
    }
    if (mark == "$float") {
      if (text == "nan" || text == "-nan") return Value::Float(std::nan(""));
      if (text == "inf") return Value::Float(INFINITY);
      if (text == "-inf") return Value::Float(-INFINITY);
    }
    Fail("found {{{}: {}}} in the metadata, which stands for nothing we know", Quoted(mark),
         Quoted(json.dump()));
  }

  Value OpaqueOf(const Json& json) {
    const auto field = [&](const char* name) -> const Json& {
      if (!json.is_object() || !json.contains(name)) {
        Fail("found an $opaque without {} in the metadata", name);
      }
      return json.at(name);
    };
    if (!field("module").is_string() || !field("name").is_string() ||
        !field("called").is_boolean()) {
      Fail("found an $opaque without names in the metadata");
    }
    return Value::Of(Opaque{.module = field("module").get<std::string>(),
                            .name = field("name").get<std::string>(),
                            .called = field("called").get<bool>(),
                            .args = Items(field("args")),
                            .state = FromJson(field("state")),
                            .items = Items(field("items")),
                            .pairs = PairsOf(field("pairs"))});
  }

  const Safetensors& content_;
  const std::string& place_;
  std::unordered_map<std::string, const Tensor*> tensors_;
  std::unordered_set<std::string> used_;  // Tensors that metadata refers to.
  int depth_ = 0;
};

}  // namespace

FlatWeights Flatten(const Value& root, const std::string& place) {
  return Flattener(place).Run(root);
}

Value Unflatten(const Safetensors& content, const std::string& place) {
  return Unflattener(content, place).Run();
}

void ConvertPtToSafetensors(const std::string& from, const std::string& to) {
  const FlatWeights flat = Flatten(ReadPt(from), from);
  WriteSafetensors(to, flat.tensors, flat.metadata);
}

void ConvertSafetensorsToPt(const std::string& from, const std::string& to) {
  WritePt(to, Unflatten(ReadSafetensors(from), from));
}

}  // namespace kibitz::io
