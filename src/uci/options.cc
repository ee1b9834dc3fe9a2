#include "uci/options.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.h"
#include "base/thread_pool.h"

namespace kibitz::uci {
namespace {

constexpr int kMaxVariations = 100;
constexpr int kMaxDepth = 100;
constexpr int kMaxThreads = 1024;
constexpr int kMaxHeads = 1024;
constexpr double kHighestTemperature = 10;

std::vector<std::pair<std::string, Mode>> Modes() {
  return {{"think", Mode::kThink}, {"instinct", Mode::kInstinct}};
}

std::vector<std::pair<std::string, nn::Precision>> Precisions() {
  std::vector<std::pair<std::string, nn::Precision>> choices;
  for (const auto& [name, value] : nn::kPrecisions) choices.emplace_back(name, value);
  return choices;
}

// One option as UCI sees it. `set` says why a text is not taken, or "".
struct Entry {
  std::string name;
  std::string declaration;  // Behind the name: "type spin default 1 min 1 max 500".
  std::function<std::string(const std::string&)> set;
};

template <typename Integer>
Entry Spin(std::string name, Integer& value, int64_t min, int64_t max) {
  return {std::move(name), fmt::format("type spin default {} min {} max {}", value, min, max),
          [&value, min, max](const std::string& text) -> std::string {
            const auto number = ParseInt(text);
            if (!number || *number < min || *number > max) {
              return fmt::format("expected a whole number from {} to {}", min, max);
            }
            value = static_cast<Integer>(*number);
            return "";
          }};
}

Entry Check(std::string name, bool& value) {
  return {std::move(name), fmt::format("type check default {}", value),
          [&value](const std::string& text) -> std::string {
            const std::string lower = LowerCase(text);
            if (lower != "true" && lower != "false") return "expected true or false";
            value = lower == "true";
            return "";
          }};
}

template <typename Enum>
Entry Combo(std::string name, Enum& value,
            const std::vector<std::pair<std::string, Enum>>& choices) {
  std::string names;
  std::string present;
  for (const auto& [text, item] : choices) {
    names += " var " + text;
    if (item == value) present = text;
  }
  return {std::move(name), fmt::format("type combo default {}{}", present, names),
          [&value, choices](const std::string& text) -> std::string {
            std::string expected;
            for (const auto& [known, item] : choices) {
              if (LowerCase(text) == known) {
                value = item;
                return "";
              }
              expected += (expected.empty() ? "" : " or ") + known;
            }
            return "expected " + expected;
          }};
}

// Every option, bound to `options`.
std::vector<Entry> Entries(EngineOptions& options) {
  std::vector<Entry> entries;
  entries.push_back({"Model",
                     fmt::format("type string default {}",
                                 options.network.path.empty() ? "<empty>" : options.network.path),
                     [&options](const std::string& text) -> std::string {
                       options.network.path = text == "<empty>" ? "" : text;
                       return "";
                     }});
  entries.push_back(Combo("Mode", options.mode, Modes()));
  // UCI has no type for fractions.
  entries.push_back({"Temperature", fmt::format("type string default {}", options.temperature),
                     [&options](const std::string& text) -> std::string {
                       const auto number = ParseDouble(text);
                       // Written so that NaN fails too.
                       if (!number || !(*number >= 0 && *number <= kHighestTemperature)) {
                         return fmt::format("expected a number from 0 to {}", kHighestTemperature);
                       }
                       options.temperature = *number;
                       return "";
                     }});
  entries.push_back(Spin("MaxVariations", options.max_variations, 0, kMaxVariations));
  entries.push_back(Spin("MaxDepth", options.max_depth, 0, kMaxDepth));
  entries.push_back(Combo("Precision", options.network.precision, Precisions()));
  entries.push_back(Spin("Threads", options.network.threads, 1, kMaxThreads));
  entries.push_back(Spin("MultiPV", options.multipv, 1, 500));
  entries.push_back(Check("UCI_ShowWDL", options.show_wdl));
  entries.push_back(Check("Ponder", options.ponder));
  entries.push_back(Spin("Move Overhead", options.move_overhead, 0, 10000));
  entries.push_back(Spin("Seed", options.seed, 0, 1'000'000'000));
  entries.push_back(Spin("NumHeads", options.network.num_heads, 0, kMaxHeads));
  entries.push_back(Spin("Hash", options.hash, 1, 1 << 25));
  return entries;
}

}  // namespace

Fields FieldsOf(EngineOptions& options) {
  Fields fields;
  fields.AddChoice("mode", options.mode, "write variations first, or play the policy head's move",
                   Modes());
  fields.Add("temperature", options.temperature, "of the move played; 0: the most likely one",
             {.min = 0, .max = kHighestTemperature});
  fields.Add("max_variations", options.max_variations, "at most so many; 0: as the network likes",
             {.min = 0, .max = kMaxVariations});
  fields.Add("max_depth", options.max_depth, "moves of a variation; 0: as the network likes",
             {.min = 0, .max = kMaxDepth});
  fields.Add("seed", options.seed, "of the draws at a temperature",
             {.min = 0, .max = 1'000'000'000});
  return fields;
}

std::vector<std::string> OptionLines(const EngineOptions& options) {
  EngineOptions shown = options;
  if (shown.network.threads == 0) shown.network.threads = HardwareThreads();
  std::vector<std::string> lines;
  for (const Entry& entry : Entries(shown)) {
    lines.push_back(fmt::format("option name {} {}", entry.name, entry.declaration));
  }
  return lines;
}

std::string SetOption(EngineOptions& options, std::string_view name, const std::string& value) {
  const std::string wanted = LowerCase(name);
  if (wanted == "uci_chess960") {
    if (LowerCase(value) == "false") return "";
    return "UCI_Chess960 stays false: the network has learned usual chess only";
  }
  std::vector<std::string> names;
  for (const Entry& entry : Entries(options)) {
    names.push_back(entry.name);
    if (LowerCase(entry.name) != wanted) continue;
    const std::string reason = entry.set(value);
    if (reason.empty()) return "";
    return fmt::format("{} {} is not taken: {}", entry.name, Quoted(value, 40), reason);
  }
  const auto nearest = NearestName(name.substr(0, 40), names);
  return fmt::format("there is no option {}{}", Quoted(name, 40),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : std::string());
}

}  // namespace kibitz::uci
