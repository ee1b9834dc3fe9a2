#include "learn/means.h"

#include <algorithm>

#include "base/error.h"

namespace kibitz::learn {

using io::Value;

void Means::Add(const std::string& name, double sum, double count) {
  const auto found = std::find_if(sums_.begin(), sums_.end(),
                                  [&](const Sum& entry) { return entry.name == name; });
  if (found == sums_.end()) {
    sums_.push_back({name, sum, count});
    return;
  }
  found->sum += sum;
  found->count += count;
}

Means& Means::operator+=(const Means& other) {
  for (const Sum& entry : other.sums_) Add(entry.name, entry.sum, entry.count);
  return *this;
}

NamedValues Means::Values() const {
  NamedValues values;
  for (const Sum& entry : sums_) {
    if (entry.count > 0) values.emplace_back(entry.name, entry.sum / entry.count);
  }
  return values;
}

Value Means::ToValue() const {
  Value::Pairs pairs;
  for (const Sum& entry : sums_) {
    pairs.emplace_back(Value::String(entry.name),
                       Value::List({Value::Float(entry.sum), Value::Float(entry.count)}));
  }
  return Value::Dict(std::move(pairs));
}

Means Means::From(const Value& value) {
  Means means;
  for (const auto& [name, numbers] : value.pairs()) {
    const auto& items = numbers.items();
    if (items.size() != 2)
      throw Error("mean with {} numbers, expected sum and count", items.size());
    means.Add(name.AsText(), items[0].AsDouble(), items[1].AsDouble());
  }
  return means;
}

nlohmann::ordered_json Means::ToJson() const {
  auto json = nlohmann::ordered_json::object();
  for (const Sum& entry : sums_) json[entry.name] = {entry.sum, entry.count};
  return json;
}

Means Means::From(const nlohmann::ordered_json& json) {
  Means means;
  for (const auto& [name, numbers] : json.items()) {
    means.Add(name, numbers.at(0).get<double>(), numbers.at(1).get<double>());
  }
  return means;
}

}  // namespace kibitz::learn
