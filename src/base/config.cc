#include "base/config.h"

#include <toml++/toml.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace kibitz {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 32;
constexpr uintmax_t kMaxBytes = 16 << 20;

std::string Join(const std::string& key, const std::string& name) {
  return key.empty() ? name : key + "." + name;
}

// YAML's plain words: null, booleans and numbers; anything in quotes is text.
Json YamlScalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;
  if (text == "~" || text == "null" || text == "Null" || text == "NULL" || text.empty()) return {};
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  std::string digits = text;
  if (digits.find_first_not_of("+-0123456789_") == std::string::npos) std::erase(digits, '_');
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (const auto value = ParseInt(digits)) return *value;
  if (const auto value = ParseUnsigned(digits)) return *value;
  if (digits.find_first_of("0123456789") != std::string::npos) {
    if (const auto value = ParseDouble(digits)) return *value;
  }
  return text;
}

void FromYaml(const YAML::Node& node, const std::string& key, int depth, Json& out,
              Config& config) {
  if (depth > kMaxDepth) throw Error("{}: nested deeper than {}", config.PlaceOf(key), kMaxDepth);
  if (node.IsScalar()) {
    out = YamlScalar(node);
  } else if (node.IsSequence()) {
    out = Json::array();
    for (const auto& item : node) {
      out.emplace_back();
      FromYaml(item, key, depth + 1, out.back(), config);
    }
  } else if (node.IsMap()) {
    out = Json::object();
    for (const auto& item : node) {
      if (!item.first.IsScalar()) throw Error("{}: a key is not plain text", config.PlaceOf(key));
      const std::string name = item.first.Scalar();
      const std::string full = Join(key, name);
      config.lines[full] = item.first.Mark().line + 1;
      if (out.contains(name)) throw Error("{}: key '{}' twice", config.PlaceOf(full), full);
      FromYaml(item.second, full, depth + 1, out[name], config);
    }
  }
}

void FromToml(const toml::node& node, const std::string& key, Json& out, Config& config) {
  node.visit([&](const auto& value) {
    if constexpr (toml::is_table<decltype(value)>) {
      out = Json::object();
      for (const auto& [name, child] : value) {
        const std::string full = Join(key, std::string(name.str()));
        config.lines[full] = static_cast<int>(child.source().begin.line);
        FromToml(child, full, out[std::string(name.str())], config);
      }
    } else if constexpr (toml::is_array<decltype(value)>) {
      out = Json::array();
      for (const auto& item : value) {
        out.emplace_back();
        FromToml(item, key, out.back(), config);
      }
    } else if constexpr (toml::is_string<decltype(value)>) {
      out = value.get();
    } else if constexpr (toml::is_integer<decltype(value)> ||
                         toml::is_floating_point<decltype(value)> ||
                         toml::is_boolean<decltype(value)>) {
      out = *value;
    } else {
      std::ostringstream text;  // Dates and times stay text.
      text << value;
      out = text.str();
    }
  });
}

std::string ReadText(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) throw Error("cannot read config {}: {}", path, error.message());
  if (size > kMaxBytes) throw Error("{}: {} bytes is no config file", path, size);
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!in) throw Error::System("cannot read config " + path);
  return text;
}

}  // namespace

std::string Config::PlaceOf(const std::string& key) const {
  const auto line = lines.find(key);
  return line == lines.end() ? path : fmt::format("{}:{}", path, line->second);
}

Config LoadConfig(const std::string& path) {
  Config config;
  config.path = path;
  const std::string ending = std::filesystem::path(path).extension();
  const std::string text = ReadText(path);
  if (ending == ".yaml" || ending == ".yml") {
    try {
      FromYaml(YAML::Load(text), "", 0, config.tree, config);
    } catch (const YAML::Exception& e) {
      throw Error("{}:{}: {}", path, e.mark.line + 1, e.msg);
    }
  } else if (ending == ".toml") {
    try {
      FromToml(toml::parse(text), "", config.tree, config);
    } catch (const toml::parse_error& e) {
      throw Error("{}:{}: {}", path, e.source().begin.line, e.description());
    }
  } else if (ending == ".json") {
    try {
      // The parser takes a zero byte for the end.
      if (text.find('\0') != std::string::npos) throw Error("{}: has a zero byte", path);
      config.tree = ParseJson(text);
      if (config.tree.is_discarded()) {
        const auto unused = nlohmann::json::parse(text);  // Says where the text is no JSON.
        throw Error("{}: nested over {} deep, or an object of over {} keys", path, kMaxJsonDepth,
                    kMaxJsonKeys);
      }
    } catch (const Json::exception& e) {
      throw Error("{}: {}", path, e.what());
    }
  } else {
    throw Error("{}: a config ends in .yaml, .toml or .json", path);
  }
  return config;
}

}  // namespace kibitz
