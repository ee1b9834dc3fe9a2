#include "uci/options.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/thread_pool.h"

namespace kibitz::uci {
namespace {

using players::PlayerName;

constexpr int64_t kMaxSeed = 1'000'000'000;

// "max_variations" -> "MaxVariations".
std::string UciName(const std::string& key) {
  std::string name;
  bool capital = true;
  for (char c : key) {
    if (c == '_') {
      capital = true;
    } else {
      name += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      capital = false;
    }
  }
  return name;
}

// Behind the name: "type spin default 1 min 1 max 500".
std::string Declaration(const FieldInfo& field) {
  const std::string value = field.value.empty() ? "<empty>" : field.value;
  switch (field.type) {
    case FieldInfo::Type::kBool:
      return "type check default " + value;
    case FieldInfo::Type::kInteger: {
      constexpr double kLimit = 2147483647;
      if (field.value.empty()) return "type string default <empty>";
      return fmt::format("type spin default {} min {:.0f} max {:.0f}", value,
                         std::max(field.min, -kLimit), std::min(field.max, kLimit));
    }
    case FieldInfo::Type::kChoice: {
      std::string text = "type combo default " + value;
      for (const std::string& choice : field.choices) text += " var " + choice;
      return text;
    }
    default:
      return "type string default " + value;
  }
}

}  // namespace

// One option as UCI sees it. `set` says why a text is not taken, or "".
struct OptionTable::Entry {
  std::string name;
  std::string declaration;
  std::function<std::string(const std::string&)> set;
};

namespace {

template <typename Integer>
std::string SetInteger(Integer& value, const std::string& text, int64_t min, int64_t max) {
  const auto number = ParseInt(text);
  if (!number || *number < min || *number > max) {
    return fmt::format("expected a whole number from {} to {}", min, max);
  }
  value = static_cast<Integer>(*number);
  return "";
}

std::string SetBool(bool& value, const std::string& text) {
  const std::string lower = LowerCase(text);
  if (lower != "true" && lower != "false") return "expected true or false";
  value = lower == "true";
  return "";
}

std::string SpinText(int64_t value, int64_t min, int64_t max) {
  return fmt::format("type spin default {} min {} max {}", value, min, max);
}

}  // namespace

OptionTable::OptionTable(EngineOptions& options) : options_(options) {
  if (options.player != PlayerName{}) maker_ = players::MakerFor(options.player);
}

OptionTable::~OptionTable() = default;

std::string OptionTable::SetPlayer(const std::string& text) {
  if (text.empty() || text == "<empty>") {
    options_.player = {};
    maker_.reset();
    return "";
  }
  auto name = players::ParsePlayerName(text);
  if (!name) return name.reason();
  // A name that cannot be used is kept all the same: every "go" says so, instead of playing on with
  // the player before.
  options_.player = *std::move(name);
  maker_.reset();
  try {
    maker_ = players::MakerFor(options_.player);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

std::string OptionTable::SetPlayerOption(const std::string& key, const std::string& value) {
  const std::string text = value == "<empty>" ? "" : value;
  std::string reason = maker_->fields().Set(key, text);
  if (!reason.empty()) return reason;
  auto& options = options_.player.options;
  std::erase_if(options, [&](const auto& item) { return item.first == key; });
  options.emplace_back(key, text);
  return "";
}

// UCI sets strength by two options, players by one.
void OptionTable::AddStrength(const players::EloRange& range, std::vector<Entry>& entries) const {
  auto* self = const_cast<OptionTable*>(this);
  EngineOptions& options = options_;
  const auto apply = [self, &options] {
    return self->SetPlayerOption("elo", options.limit_strength ? std::to_string(options.elo) : "");
  };
  if (options.elo == 0) options.elo = range.max;
  entries.push_back({"UCI_LimitStrength",
                     fmt::format("type check default {}", options.limit_strength),
                     [&options, apply](const std::string& text) {
                       const std::string reason = SetBool(options.limit_strength, text);
                       return reason.empty() ? apply() : reason;
                     }});
  entries.push_back(
      {"UCI_Elo", SpinText(std::clamp(options.elo, range.min, range.max), range.min, range.max),
       [&options, apply, range](const std::string& text) {
         const std::string reason = SetInteger(options.elo, text, range.min, range.max);
         return reason.empty() ? apply() : reason;
       }});
}

std::vector<OptionTable::Entry> OptionTable::Entries() const {
  auto* self = const_cast<OptionTable*>(this);  // The entries' setters change it.
  EngineOptions& options = options_;
  std::vector<Entry> entries;
  const std::string player = maker_ != nullptr ? maker_->ToText() : players::ToText(options.player);
  for (const char* name : {"Model", "WeightsFile", "Player"}) {
    entries.push_back({name, "type string default " + (player.empty() ? "<empty>" : player),
                       [self](const std::string& text) { return self->SetPlayer(text); }});
  }
  entries.push_back({"MultiPV", SpinText(options.multipv, 1, 500), [&](const std::string& text) {
                       return SetInteger(options.multipv, text, 1, 500);
                     }});
  const std::pair<const char*, bool EngineOptions::*> checks[] = {
      {"UCI_ShowWDL", &EngineOptions::show_wdl},
      {"VerboseMoveStats", &EngineOptions::verbose_move_stats},
      {"Ponder", &EngineOptions::ponder}};
  for (const auto& [name, member] : checks) {
    bool& value = options.*member;
    entries.push_back({name, fmt::format("type check default {}", value),
                       [&value](const std::string& text) { return SetBool(value, text); }});
  }
  entries.push_back(
      {"Move Overhead", SpinText(options.move_overhead, 0, 10000),
       [&](const std::string& text) { return SetInteger(options.move_overhead, text, 0, 10000); }});
  entries.push_back(
      {"Seed", SpinText(options.seed.value_or(-1), -1, kMaxSeed), [&](const std::string& text) {
         int64_t seed = -1;
         std::string reason = SetInteger(seed, text, -1, kMaxSeed);
         if (!reason.empty()) return reason;
         options.seed.reset();
         if (seed >= 0) options.seed = seed;
         return reason;
       }});
  entries.push_back({"Hash", SpinText(options.hash, 1, 1 << 25), [&](const std::string& text) {
                       return SetInteger(options.hash, text, 1, 1 << 25);
                     }});
  if (maker_ == nullptr) return entries;
  if (const auto range = maker_->elo_range()) AddStrength(*range, entries);
  for (const FieldInfo& field : maker_->fields().Describe()) {
    if (field.type == FieldInfo::Type::kList || field.name == "elo") continue;
    if (field.name == "think") {  // Under the name that players of the decoder know.
      const bool think = field.value == "true";
      entries.push_back({"Mode",
                         fmt::format("type combo default {} var think var instinct",
                                     think ? "think" : "instinct"),
                         [self](const std::string& text) -> std::string {
                           const std::string mode = LowerCase(text);
                           if (mode != "think" && mode != "instinct") {
                             return "expected think or instinct";
                           }
                           return self->SetPlayerOption("think", mode == "think" ? "1" : "0");
                         }});
      continue;
    }
    FieldInfo shown = field;
    if (field.name == "threads") {  // Programs expect a number of threads, not "all".
      shown.min = 1;
      if (shown.value == "0") shown.value = std::to_string(HardwareThreads());
    }
    entries.push_back({UciName(field.name), Declaration(shown),
                       [self, key = field.name](const std::string& text) {
                         return self->SetPlayerOption(key, text);
                       }});
  }
  return entries;
}

std::vector<std::string> OptionTable::Lines() const {
  std::vector<std::string> lines;
  for (const Entry& entry : Entries()) {
    lines.push_back(fmt::format("option name {} {}", entry.name, entry.declaration));
  }
  return lines;
}

std::string OptionTable::Strength() const {
  if (!options_.limit_strength || maker_ == nullptr) return "";
  const auto range = maker_->elo_range();
  return range ? fmt::format("strength {}: {}", options_.elo, range->how) : "";
}

std::string OptionTable::Set(std::string_view name, const std::string& value) {
  std::vector<std::string> names;
  for (const Entry& entry : Entries()) {
    if (LowerCase(entry.name) == LowerCase(name)) {
      const std::string reason = entry.set(value);
      return reason.empty() ? "" : fmt::format("setoption {}: {}", entry.name, reason);
    }
    names.push_back(entry.name);
  }
  const auto nearest = NearestName(name, names);
  return fmt::format("setoption: there is no option {}{}", Quoted(name, 40),
                     nearest ? fmt::format("; did you mean {}?", *nearest) : "");
}

}  // namespace kibitz::uci
