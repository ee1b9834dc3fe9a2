// Options are a plain struct with defaults. One list of Fields, declared once beside the struct,
// yields flags, config keys, help, ranges and the copy kept with results.
//
//   struct PerftOptions {
//     std::string fen;
//     int depth = 5;
//   };
//   Fields FieldsOf(PerftOptions& o) {
//     Fields fields;
//     fields.Add("fen", o.fen, "position to count from");
//     fields.Add("depth", o.depth, "plies to count", {.min = 1, .max = 20});
//     return fields;
//   }
//
// A name is a config key: "max_seq_len", or "model.embed_dim" for a key inside a section. Its flag
// is --max-seq-len, --model.embed-dim, or --embed-dim where no other section has one; underscores
// are accepted too.
// Fields borrow the struct: it must outlive them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace kibitz {

struct FieldRules {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool required = false;     // Must be given by flag or config.
  bool positional = false;   // Also taken from the words without a flag, in declared order.
  std::string metavar = {};  // What help shows as the value: FILE, N, ...
};

// A field as other faces than the command line show it, such as UCI options.
struct FieldInfo {
  enum class Type { kBool, kInteger, kNumber, kText, kChoice, kList };

  std::string name;
  Type type = Type::kText;
  std::string value = {};  // As it is now; "" for nothing.
  std::string help = {};
  double min = 0;  // Of numbers; may be infinite.
  double max = 0;
  std::vector<std::string> choices = {};
};

class Fields {
 public:
  using Target =
      std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::optional<int64_t>*,
                   std::optional<double>*, std::optional<std::string>*, std::vector<int>*,
                   std::vector<double>*, std::vector<std::string>*>;

  // `value` holds the default now and the given value later.
  template <typename T>
  void Add(std::string name, T& value, std::string help, FieldRules rules = {}) {
    AddTarget(std::move(name), Target(&value), std::move(help), std::move(rules));
  }
  // An enum by the names of its values.
  template <typename Enum>
  void AddChoice(std::string name, Enum& value, std::string help,
                 std::vector<std::pair<std::string, Enum>> choices, FieldRules rules = {}) {
    Choice choice;
    for (const auto& [text, item] : choices) choice.names.push_back(text);
    choice.get = [&value, choices] {
      for (const auto& [text, item] : choices) {
        if (item == value) return text;
      }
      return std::string();
    };
    choice.set = [&value, choices](size_t i) { value = choices[i].second; };
    AddChoiceTarget(std::move(name), std::move(choice), std::move(help), std::move(rules));
  }
  // All fields of another list; with a section, "section.name" each.
  void AddAll(Fields other, const std::string& section = "");

  // Reads command-line words; throws Error::Usage that names the nearest known flag.
  void ParseFlags(std::span<const std::string> words);
  // Reads a tree of keys from a YAML, TOML or JSON file; throws Error with file, line and the
  // nearest known key.
  void ReadConfig(const std::string& path);
  // The same from a tree already loaded, such as the copy in a checkpoint. `place` names it.
  void ReadTree(const nlohmann::ordered_json& tree, const std::string& place);
  // Sets one field from text; the reason when it is not taken, "" when it is.
  std::string Set(std::string_view name, std::string_view value);
  // Throws Error::Usage for required fields that were not given.
  void CheckRequired() const;

  // All values as a tree with sections: the saved copy. ReadTree takes it back.
  nlohmann::ordered_json ToTree() const;
  // Lines for --help, one a field, with defaults and ranges.
  std::string Help() const;
  // For "usage:" lines: "FILE [FILE ...]".
  std::string PositionalHelp() const;
  std::vector<std::string> Names() const;
  std::vector<FieldInfo> Describe() const;
  // Whether this field was set by a flag or a config.
  bool WasGiven(std::string_view name) const;

 private:
  struct Choice {
    std::vector<std::string> names;
    std::function<std::string()> get;
    std::function<void(size_t)> set;
  };
  struct Field {
    std::string name;
    std::variant<Target, Choice> target;
    std::string help;
    FieldRules rules;
    std::string default_text;
    bool given = false;
  };

  void AddTarget(std::string name, Target target, std::string help, FieldRules rules);
  void AddChoiceTarget(std::string name, Choice choice, std::string help, FieldRules rules);
  class FlagReader;
  Field* Find(std::string_view name);
  // The same, and a name without its section where only one section has it.
  Field* FindFlag(std::string_view name);
  std::string Suggest(std::string_view name) const;
  void ReadNode(const nlohmann::ordered_json& node, const std::string& key,
                const std::function<std::string(const std::string&)>& place_of);

  static nlohmann::ordered_json ValueOf(const Field& field);
  static bool IsList(const Field& field);
  static bool IsBool(const Field& field);
  static std::string Flag(const std::string& name);
  static std::string Metavar(const Field& field);
  // What a value must be, for messages: "a whole number from 1 to 20".
  static std::string Expected(const Field& field);
  // Sets the field from text or from a tree node; false when it does not fit.
  static bool SetText(Field& field, std::string_view text, bool first);
  static bool SetNode(Field& field, const nlohmann::ordered_json& node);

  std::vector<Field> fields_;
};

}  // namespace kibitz
