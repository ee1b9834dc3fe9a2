#include "base/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/config.h"
#include "base/text.h"

namespace kibitz {
namespace {

using Json = nlohmann::ordered_json;

template <typename... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overload(Ts...) -> Overload<Ts...>;

// --max-seq-len and max_seq_len are one name.
std::string Normal(std::string_view name) {
  std::string normal(name);
  std::replace(normal.begin(), normal.end(), '-', '_');
  return normal;
}

bool InRange(double value, const FieldRules& rules) {
  return value >= rules.min && value <= rules.max;
}

// A node from text, typed as the target wants it; nothing when the text does not fit.
template <typename T>
std::optional<T> FromText(std::string_view text) {
  if constexpr (std::is_same_v<T, bool>) {
    for (auto word : {"true", "yes", "on", "1"}) {
      if (text == word) return true;
    }
    for (auto word : {"false", "no", "off", "0"}) {
      if (text == word) return false;
    }
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(text);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return ParseUnsigned(text);
  } else if constexpr (std::is_integral_v<T>) {
    const auto value = ParseInt(text);
    if (!value || *value < std::numeric_limits<T>::min() ||
        *value > std::numeric_limits<T>::max()) {
      return std::nullopt;
    }
    return static_cast<T>(*value);
  } else {
    const auto value = ParseDouble(text);
    if (!value || std::isnan(*value)) return std::nullopt;
    return value;
  }
}

template <typename T>
std::optional<T> FromNode(const Json& node) {
  if constexpr (std::is_same_v<T, bool>) {
    if (node.is_boolean()) return node.get<bool>();
    return std::nullopt;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (node.is_string()) return node.get<std::string>();
    if (node.is_primitive() && !node.is_null()) return node.dump();
    return std::nullopt;
  } else {
    // YAML has "1e-4" as text in some dialects: numbers in quotes are read too.
    if (node.is_string()) return FromText<T>(node.get_ref<const std::string&>());
    if (!node.is_number()) return std::nullopt;
    if constexpr (std::is_integral_v<T>) {
      if (node.is_number_float() && node.get<double>() != std::floor(node.get<double>())) {
        return std::nullopt;
      }
      if (node.is_number_float()) return FromText<T>(fmt::format("{:.0f}", node.get<double>()));
      return FromText<T>(node.dump());
    } else {
      return node.get<T>();
    }
  }
}

template <typename T>
bool Fits(const T& value, const FieldRules& rules) {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    return InRange(static_cast<double>(value), rules);
  } else {
    return true;
  }
}

template <typename T>
bool Assign(T* target, const std::optional<T>& value, const FieldRules& rules) {
  if (!value || !Fits(*value, rules)) return false;
  *target = *value;
  return true;
}

template <typename T>
constexpr std::string_view kTypeName = "text";
template <>
constexpr std::string_view kTypeName<bool> = "true or false";
template <>
constexpr std::string_view kTypeName<int> = "a whole number";
template <>
constexpr std::string_view kTypeName<int64_t> = "a whole number";
template <>
constexpr std::string_view kTypeName<uint64_t> = "a whole number, 0 or more";
template <>
constexpr std::string_view kTypeName<double> = "a number";

template <typename T>
std::string TypeName(T*) {
  return std::string(kTypeName<T>);
}
template <typename T>
std::string TypeName(std::optional<T>*) {
  return std::string(kTypeName<T>);
}
template <typename T>
std::string TypeName(std::vector<T>*) {
  return fmt::format("a list, each {}", kTypeName<T>);
}

std::string NumberText(double value) { return fmt::format("{}", value); }

// Default values as help shows them.
std::string DefaultText(const Json& node) {
  if (node.is_null()) return "";
  if (node.is_string()) return node.get<std::string>();
  if (node.is_array()) {
    std::string text;
    for (const Json& item : node) text += (text.empty() ? "" : ",") + DefaultText(item);
    return text;
  }
  return node.dump();
}

}  // namespace

void Fields::AddTarget(std::string name, Target target, std::string help, FieldRules rules) {
  Field field{std::move(name), target, std::move(help), std::move(rules), "", false};
  field.default_text = DefaultText(ValueOf(field));
  CHECK(Find(field.name) == nullptr);
  fields_.push_back(std::move(field));
}

void Fields::AddChoiceTarget(std::string name, Choice choice, std::string help, FieldRules rules) {
  Field field{std::move(name), std::move(choice), std::move(help), std::move(rules), "", false};
  field.default_text = DefaultText(ValueOf(field));
  CHECK(Find(field.name) == nullptr);
  fields_.push_back(std::move(field));
}

void Fields::AddAll(Fields other, const std::string& section) {
  for (Field& field : other.fields_) {
    if (!section.empty()) field.name = section + "." + field.name;
    CHECK(Find(field.name) == nullptr);
    fields_.push_back(std::move(field));
  }
}

Fields::Field* Fields::Find(std::string_view name) {
  const std::string normal = Normal(name);
  for (Field& field : fields_) {
    if (field.name == normal) return &field;
  }
  return nullptr;
}

std::string Fields::Suggest(std::string_view name) const {
  const auto nearest = NearestName(Normal(name), Names());
  return nearest.value_or("");
}

std::vector<std::string> Fields::Names() const {
  std::vector<std::string> names;
  for (const Field& field : fields_) names.push_back(field.name);
  return names;
}

std::string Fields::Set(std::string_view name, std::string_view value) {
  Field* field = Find(name);
  if (field == nullptr) {
    const std::string nearest = Suggest(name);
    const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
    if (fields_.empty()) return fmt::format("{} is no option here: there are none", Quoted(name));
    return fmt::format("{} is no option here{}; there are {}", Quoted(name), hint,
                       fmt::join(Names(), ", "));
  }
  // An optional number may become nothing again, as Describe tells it.
  const auto unset = [&] {
    auto* target = std::get_if<Target>(&field->target);
    if (target == nullptr) return false;
    return std::visit(Overload{[](std::optional<std::string>*) { return false; },
                               []<typename T>(std::optional<T>* number) {
                                 number->reset();
                                 return true;
                               },
                               [](auto*) { return false; }},
                      *target);
  };
  if (!(value.empty() && unset()) && !SetText(*field, value, true)) {
    return fmt::format("{}: found {}, expected {}", field->name, Quoted(value), Expected(*field));
  }
  field->given = true;
  return "";
}

std::vector<FieldInfo> Fields::Describe() const {
  using Type = FieldInfo::Type;
  std::vector<FieldInfo> infos;
  for (const Field& field : fields_) {
    FieldInfo info{.name = field.name,
                   .value = DefaultText(ValueOf(field)),
                   .help = field.help,
                   .min = field.rules.min,
                   .max = field.rules.max};
    if (const auto* choice = std::get_if<Choice>(&field.target)) {
      info.type = Type::kChoice;
      info.choices = choice->names;
    } else {
      info.type = std::visit(
          Overload{[](bool*) { return Type::kBool; }, [](int*) { return Type::kInteger; },
                   [](int64_t*) { return Type::kInteger; },
                   [](uint64_t*) { return Type::kInteger; },
                   [](std::optional<int64_t>*) { return Type::kInteger; },
                   [](double*) { return Type::kNumber; },
                   [](std::optional<double>*) { return Type::kNumber; },
                   [](std::string*) { return Type::kText; },
                   [](std::optional<std::string>*) { return Type::kText; },
                   [](auto*) { return Type::kList; }},
          std::get<Target>(field.target));
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

bool Fields::WasGiven(std::string_view name) const {
  const std::string normal = Normal(name);
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const Field& field) { return field.name == normal && field.given; });
}

std::string Fields::Flag(const std::string& name) {
  std::string flag = "--" + name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

bool Fields::IsList(const Field& field) {
  const auto* target = std::get_if<Target>(&field.target);
  return target != nullptr && (std::holds_alternative<std::vector<int>*>(*target) ||
                               std::holds_alternative<std::vector<double>*>(*target) ||
                               std::holds_alternative<std::vector<std::string>*>(*target));
}

bool Fields::IsBool(const Field& field) {
  const auto* target = std::get_if<Target>(&field.target);
  return target != nullptr && std::holds_alternative<bool*>(*target);
}

Json Fields::ValueOf(const Field& field) {
  if (const auto* choice = std::get_if<Choice>(&field.target)) return choice->get();
  return std::visit(Overload{[]<typename T>(std::optional<T>* target) {
                               return *target ? Json(**target) : Json();
                             },
                             [](auto* target) { return Json(*target); }},
                    std::get<Target>(field.target));
}

bool Fields::SetText(Field& field, std::string_view text, bool first) {
  if (auto* choice = std::get_if<Choice>(&field.target)) {
    const auto at = std::find(choice->names.begin(), choice->names.end(), text);
    if (at == choice->names.end()) return false;
    choice->set(static_cast<size_t>(at - choice->names.begin()));
    return true;
  }
  return std::visit(Overload{[&]<typename T>(std::vector<T>* target) {
                               if (first) target->clear();
                               // Numbers may be joined by commas; texts may hold commas of their
                               // own.
                               const auto pieces = std::is_same_v<T, std::string>
                                                       ? std::vector{text}
                                                       : Split(text, ',');
                               for (std::string_view piece : pieces) {
                                 const auto value = FromText<T>(piece);
                                 if (!value || !Fits(*value, field.rules)) return false;
                                 target->push_back(*value);
                               }
                               return true;
                             },
                             [&]<typename T>(std::optional<T>* target) {
                               T value{};
                               if (!Assign(&value, FromText<T>(text), field.rules)) return false;
                               *target = value;
                               return true;
                             },
                             [&]<typename T>(T* target) {
                               return Assign(target, FromText<T>(text), field.rules);
                             }},
                    std::get<Target>(field.target));
}

bool Fields::SetNode(Field& field, const Json& node) {
  if (std::holds_alternative<Choice>(field.target)) {
    return node.is_string() && SetText(field, node.get_ref<const std::string&>(), true);
  }
  return std::visit(
      Overload{
          [&]<typename T>(std::vector<T>* target) {
            std::vector<T> values;
            for (const Json& item : node.is_array() ? node : Json::array({node})) {
              const auto value = FromNode<T>(item);
              if (!value || !Fits(*value, field.rules)) return false;
              values.push_back(*value);
            }
            *target = std::move(values);
            return true;
          },
          [&]<typename T>(std::optional<T>* target) {
            if (node.is_null()) {
              target->reset();
              return true;
            }
            T value{};
            if (!Assign(&value, FromNode<T>(node), field.rules)) return false;
            *target = value;
            return true;
          },
          [&]<typename T>(T* target) { return Assign(target, FromNode<T>(node), field.rules); }},
      std::get<Target>(field.target));
}

std::string Fields::Expected(const Field& field) {
  if (const auto* choice = std::get_if<Choice>(&field.target)) {
    return fmt::format("one of {}", fmt::join(choice->names, ", "));
  }
  std::string text =
      std::visit([](auto* target) { return TypeName(target); }, std::get<Target>(field.target));
  const bool low = std::isfinite(field.rules.min);
  const bool high = std::isfinite(field.rules.max);
  if (low && high) {
    text += fmt::format(" from {} to {}", NumberText(field.rules.min), NumberText(field.rules.max));
  } else if (low) {
    text += fmt::format(", at least {}", NumberText(field.rules.min));
  } else if (high) {
    text += fmt::format(", at most {}", NumberText(field.rules.max));
  }
  return text;
}

// Reads the words of one command line into the fields.
class Fields::FlagReader {
 public:
  explicit FlagReader(Fields& fields) : fields_(fields) {
    for (Field& field : fields.fields_) {
      if (field.rules.positional) positional_.push_back(&field);
    }
  }

  void Read(std::span<const std::string> words) {
    bool only_positional = false;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--" && !only_positional) {
        only_positional = true;
      } else if (only_positional || words[i].size() < 2 || words[i][0] != '-') {
        ReadPositional(words[i]);
      } else if (ReadFlag(words[i], i + 1 < words.size() ? &words[i + 1] : nullptr)) {
        ++i;
      }
    }
  }

 private:
  void Set(Field& field, const std::string& text) {
    const bool first = std::find(seen_.begin(), seen_.end(), &field) == seen_.end();
    if (!first && !IsList(field)) throw Error::Usage("{} is given twice", Flag(field.name));
    if (!SetText(field, text, first)) {
      throw Error::Usage("{}: found {}, expected {}", Flag(field.name), Quoted(text),
                         Expected(field));
    }
    seen_.push_back(&field);
    field.given = true;
  }

  void ReadPositional(const std::string& word) {
    if (next_positional_ == positional_.size()) {
      const Field* out = fields_.Find("out");
      throw Error::Usage("unexpected word {}{}", Quoted(word),
                         out != nullptr && !out->given
                             ? "; the output follows a flag: --out " + Metavar(*out)
                         : positional_.empty() ? "; values follow a flag such as --name value"
                                               : "");
    }
    Set(*positional_[next_positional_], word);
    if (!IsList(*positional_[next_positional_])) ++next_positional_;
  }

  // True when the word after the flag was its value.
  bool ReadFlag(const std::string& word, const std::string* next) {
    const size_t equals = word.find('=');
    const size_t dashes = word.starts_with("--") ? 2 : 1;
    const std::string name =
        word.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
    Field* field = dashes == 2 ? fields_.FindFlag(name) : nullptr;
    if (field == nullptr && dashes == 2 && name.starts_with("no-")) {
      field = fields_.FindFlag(name.substr(3));
      if (field != nullptr && IsBool(*field)) {
        if (equals != std::string::npos) throw Error::Usage("{} takes no value", Quoted(word));
        Set(*field, "false");
        return false;
      }
      field = nullptr;
    }
    if (field == nullptr) {
      if (const Field* bare = dashes == 2 ? fields_.Find(name) : nullptr) {
        throw Error::Usage("{} is not a flag; give {} as a word of its own", Flag(bare->name),
                           Metavar(*bare));
      }
      const std::string near = fields_.Suggest(name);
      const bool flag = !near.empty() && !fields_.Find(near)->rules.positional;
      throw Error::Usage(
          "unknown flag {}{}", Quoted(word.substr(0, equals)),
          flag ? fmt::format("; did you mean {}?", Flag(near)) : "; --help lists the flags");
    }
    if (equals != std::string::npos) {
      Set(*field, word.substr(equals + 1));
      return false;
    }
    if (IsBool(*field)) {
      Set(*field, "true");
      return false;
    }
    if (next == nullptr) {
      throw Error::Usage("{} wants a value: {}", Flag(field->name), Expected(*field));
    }
    Set(*field, *next);
    return true;
  }

  Fields& fields_;
  std::vector<Field*> positional_;
  size_t next_positional_ = 0;
  std::vector<const Field*> seen_;  // Given here: lists may be repeated, others not.
};

void Fields::ParseFlags(std::span<const std::string> words) { FlagReader(*this).Read(words); }

Fields::Field* Fields::FindFlag(std::string_view name) {
  if (Field* field = Find(name)) return field->rules.positional ? nullptr : field;
  const std::string ending = "." + Normal(name);
  std::vector<Field*> matches;
  for (Field& field : fields_) {
    if (field.name.ends_with(ending) && !field.rules.positional) matches.push_back(&field);
  }
  if (matches.size() > 1) {
    throw Error::Usage("--{} may be {} or {}; say which", name, Flag(matches[0]->name),
                       Flag(matches[1]->name));
  }
  return matches.empty() ? nullptr : matches[0];
}

void Fields::ReadConfig(const std::string& path) {
  const Config config = LoadConfig(path);
  ReadNode(config.tree, "", [&](const std::string& key) { return config.PlaceOf(key); });
}

void Fields::ReadTree(const Json& tree, const std::string& place) {
  ReadNode(tree, "", [&](const std::string&) { return place; });
}

void Fields::ReadNode(const Json& node, const std::string& key,
                      const std::function<std::string(const std::string&)>& place_of) {
  if (!key.empty()) {
    if (Field* field = Find(key)) {
      if (!SetNode(*field, node)) {
        throw Error("{}: key '{}': found {}, expected {}", place_of(key), key, Quoted(node.dump()),
                    Expected(*field));
      }
      field->given = true;
      return;
    }
    const bool section = std::any_of(fields_.begin(), fields_.end(), [&](const Field& field) {
      return field.name.starts_with(key + ".");
    });
    if (section && node.is_null()) return;  // An empty section.
    if (!section || !node.is_object()) {
      const std::string near = Suggest(key);
      throw Error("{}: unknown key '{}'{}", place_of(key), key,
                  near.empty() ? fmt::format("; known keys: {}", fmt::join(Names(), ", "))
                               : fmt::format("; did you mean '{}'?", near));
    }
  } else if (!node.is_object()) {
    if (node.is_null()) return;
    throw Error("{}: expected keys and values at the top, found {}", place_of(""),
                Quoted(node.dump()));
  }
  for (const auto& [name, child] : node.items()) {
    ReadNode(child, key.empty() ? name : key + "." + name, place_of);
  }
}

void Fields::CheckRequired() const {
  for (const Field& field : fields_) {
    if (!field.rules.required || field.given) continue;
    throw Error::Usage("{} is required: {}",
                       field.rules.positional ? Metavar(field) : Flag(field.name), field.help);
  }
}

Json Fields::ToTree() const {
  Json tree = Json::object();
  for (const Field& field : fields_) {
    Json* at = &tree;
    std::string_view name = field.name;
    for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
      at = &(*at)[std::string(name.substr(0, dot))];
      name.remove_prefix(dot + 1);
    }
    (*at)[std::string(name)] = ValueOf(field);
  }
  return tree;
}

std::string Fields::Metavar(const Field& field) {
  if (!field.rules.metavar.empty()) return field.rules.metavar;
  if (const auto* choice = std::get_if<Choice>(&field.target)) {
    return fmt::format("{}", fmt::join(choice->names, "|"));
  }
  return std::visit(
      Overload{[](bool*) { return ""; }, [](std::string*) { return "TEXT"; },
               [](std::optional<std::string>*) { return "TEXT"; },
               [](std::vector<std::string>*) { return "TEXT"; }, [](double*) { return "X"; },
               [](std::optional<double>*) { return "X"; },
               [](std::vector<double>*) { return "X,..."; },
               [](std::vector<int>*) { return "N,..."; }, [](auto*) { return "N"; }},
      std::get<Target>(field.target));
}

std::string Fields::Help() const {
  std::string text;
  for (const Field& field : fields_) {
    const std::string metavar = Metavar(field);
    std::string left = field.rules.positional ? metavar : Flag(field.name);
    if (!field.rules.positional && !metavar.empty()) left += " " + metavar;
    std::string right = field.help;
    std::vector<std::string> notes;
    if (field.rules.required) notes.emplace_back("required");
    if (IsList(field)) notes.emplace_back("may be repeated");
    if (std::isfinite(field.rules.min) && std::isfinite(field.rules.max)) {
      notes.push_back(
          fmt::format("{} to {}", NumberText(field.rules.min), NumberText(field.rules.max)));
    } else if (std::isfinite(field.rules.min)) {
      notes.push_back(fmt::format("at least {}", NumberText(field.rules.min)));
    }
    if (IsBool(field) && field.default_text == "true") {
      notes.push_back("default; --no-" + Flag(field.name).substr(2) + " turns it off");
    } else if (!field.default_text.empty() && field.default_text != "false") {
      notes.push_back("default " + field.default_text);
    }
    if (!notes.empty()) right += fmt::format(" ({})", fmt::join(notes, "; "));
    if (left.size() > 26) {
      text += fmt::format("  {}\n  {:26}  {}\n", left, "", right);
    } else {
      text += fmt::format("  {:26}  {}\n", left, right);
    }
  }
  return text;
}

std::string Fields::PositionalHelp() const {
  std::string text;
  for (const Field& field : fields_) {
    if (!field.rules.positional) continue;
    const std::string word = Metavar(field) + (IsList(field) ? " ..." : "");
    text += field.rules.required ? " " + word : " [" + word + "]";
  }
  return text;
}

}  // namespace kibitz
