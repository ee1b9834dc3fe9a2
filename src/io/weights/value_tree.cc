#include "io/weights/value_tree.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace kibitz::io {

using Json = nlohmann::ordered_json;

Json ToTree(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      return {};
    case Value::Kind::kBool:
      return value.AsBool();
    case Value::Kind::kInt:
      return value.AsInt();
    case Value::Kind::kFloat:
      return value.AsDouble();
    case Value::Kind::kString:
      return value.AsText();
    case Value::Kind::kList:
    case Value::Kind::kTuple: {
      Json list = Json::array();
      for (const Value& item : value.items()) list.push_back(ToTree(item));
      return list;
    }
    case Value::Kind::kDict: {
      Json object = Json::object();
      for (const auto& [key, item] : value.pairs()) object[key.AsText()] = ToTree(item);
      return object;
    }
    default:
      throw Error("found {}, expected plain values", Describe(value));
  }
}

Value FromTree(const Json& tree) {
  switch (tree.type()) {
    case Json::value_t::boolean:
      return Value::Bool(tree.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return Value::Int(tree.get<int64_t>());
    case Json::value_t::number_float:
      return Value::Float(tree.get<double>());
    case Json::value_t::string:
      return Value::String(tree.get<std::string>());
    case Json::value_t::array: {
      Value::Items items;
      for (const Json& item : tree) items.push_back(FromTree(item));
      return Value::List(std::move(items));
    }
    case Json::value_t::object: {
      Value::Pairs pairs;
      for (const auto& [key, item] : tree.items()) {
        pairs.emplace_back(Value::String(key), FromTree(item));
      }
      return Value::Dict(std::move(pairs));
    }
    default:
      return {};
  }
}

}  // namespace kibitz::io
