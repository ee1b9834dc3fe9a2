// Means of named values over any number of batches, kept as sums and counts.
//
//   Means means;
//   means.Add("total_loss", loss * rows, rows);
//   NamedValues values = means.Values();  // {{"total_loss", loss}}
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "io/weights/value.h"

namespace kibitz::learn {

using NamedValues = std::vector<std::pair<std::string, double>>;

class Means {
 public:
  // Adds `sum` over `count` items. A new name comes last.
  void Add(const std::string& name, double sum, double count);
  Means& operator+=(const Means& other);

  bool empty() const { return sums_.empty(); }
  // In the order of the first Add; a name whose count is 0 is left out.
  NamedValues Values() const;

  // For checkpoints: {name: [sum, count]}.
  io::Value ToValue() const;
  static Means From(const io::Value& value);
  // The same for other ranks.
  nlohmann::ordered_json ToJson() const;
  static Means From(const nlohmann::ordered_json& json);

 private:
  struct Sum {
    std::string name;
    double sum = 0;
    double count = 0;
  };
  std::vector<Sum> sums_;
};

}  // namespace kibitz::learn
