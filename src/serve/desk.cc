#include "serve/desk.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "players/player_name.h"

namespace kibitz::serve {
namespace {

// Work that one request may ask for, by option.
const std::map<std::string, double>& Limits() {
  static const std::map<std::string, double> limits = {{"nodes", 2'000'000},
                                                       {"depth", 40},
                                                       {"movetime", 30'000},
                                                       {"max_variations", 32},
                                                       {"max_depth", 32}};
  return limits;
}

void CheckLimit(const std::string& key, const std::string& value) {
  const auto limit = Limits().find(key);
  if (limit == Limits().end()) return;
  const auto number = ParseDouble(value);
  if (!number || *number > limit->second) {
    throw Error::Usage("{}={}: this server allows a number of at most {}", key, Quoted(value),
                       limit->second);
  }
}

}  // namespace

OpenPack::OpenPack(const std::string& folder) : pack(twenty48::Pack::Open(folder)) {
  for (uint64_t i = 0; i < pack.rows(); ++i) {
    std::vector<Rows>& parts = rows[pack.Row(i).run_id];
    if (parts.empty() || parts.back().end != i) parts.push_back({i, i});
    parts.back().end = i + 1;
  }
}

const std::vector<std::string>& AllowedKeys() {
  // Not "option", which reaches an engine's files, nor what allocates memory ("cache") or threads.
  static const std::vector<std::string> keys = {"think",
                                                "temperature",
                                                "temperature_moves",
                                                "elo",
                                                "thinking_temperature",
                                                "max_variations",
                                                "max_depth",
                                                "legal",
                                                "history",
                                                "one_ply",
                                                "precision",
                                                "nodes",
                                                "cpuct",
                                                "fpu_reduction",
                                                "policy_temperature",
                                                "depth",
                                                "movetime",
                                                "eval"};
  return keys;
}

Desk::Desk(Catalog& catalog, DeskOptions options)
    : catalog_(catalog), options_(std::move(options)) {}

AllowedPlayer Desk::Allow(const std::string& text) {
  const auto parsed = players::ParsePlayerName(text);
  if (!parsed) throw Error::Usage("player {}: {}", Quoted(text), parsed.reason());
  AllowedPlayer allowed{.name = *parsed, .shown = text};
  players::PlayerName& name = allowed.name;
  for (const auto& [key, value] : name.options) {
    const auto& keys = AllowedKeys();
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw Error::Usage("player option {}: not among those that a request may set: {}",
                         Quoted(key), fmt::join(keys, ", "));
    }
    CheckLimit(key, value);
  }
  const auto& engines = options_.engines;
  const bool engine = std::find(engines.begin(), engines.end(), name.path) != engines.end();
  int64_t changed = 0;
  if (name.kind == "engine" || (name.kind.empty() && engine)) {
    if (!engine) {
      throw Error::Usage(
          "engine {}: this server runs {}; start it with --engines to allow others",
          Quoted(name.path),
          engines.empty() ? "no engines" : fmt::format("{}", fmt::join(engines, ", ")));
    }
    name.kind = "engine";
  } else if (name.kind != "random" && name.kind != "negamax") {
    const ModelEntry entry = catalog_.Model(name.path);
    name.path = entry.path.string();
    if (name.kind.empty()) name.kind = entry.kind;
    if (name.kind == "2048") throw Error::Usage("{} plays 2048, not chess", entry.id);
    changed = entry.changed;
  }
  allowed.key = fmt::format("{} {}", players::ToText(name), changed);
  return allowed;
}

Shelf<players::Player>::Seat Desk::Player(const AllowedPlayer& player) {
  return players_.Take(player.key, [&] { return players::MakerFor(player.name)->Make(); });
}

ModelEntry Desk::DecoderEntry(const std::string& id) {
  ModelEntry entry = catalog_.Model(id);
  if (entry.kind != "decoder") {
    throw Error::Usage("{} is no decoder and writes no thoughts; ask it for a move", entry.id);
  }
  return entry;
}

Shelf<decoder::Player>::Seat Desk::Decoder(const std::string& id, const std::string& precision) {
  const ModelEntry entry = DecoderEntry(id);
  nn::NetworkOptions options{.path = entry.path.string()};
  const std::string reason = FieldsOf(options).Set("precision", precision);
  if (!reason.empty()) throw Error::Usage("precision: {}", reason);
  return decoders_.Take(fmt::format("{} {} {}", options.path, precision, entry.changed),
                        [&] { return decoder::Player::Load(options); });
}

Shelf<twenty48::Player>::Seat Desk::Twenty48(const std::string& id) {
  const ModelEntry entry = catalog_.Model(id);
  if (entry.kind != "2048") throw Error::Usage("{} does not play 2048", entry.id);
  return twenty48_.Take(fmt::format("{} {}", entry.path.string(), entry.changed), [&] {
    return std::make_unique<twenty48::Player>(
        twenty48::PlayerOptions{.network = {.path = entry.path.string()}});
  });
}

Shelf<policy::Dataset>::Seat Desk::Policy(const DataEntry& entry) {
  return policies_.Take(fmt::format("{} {}", entry.path.string(), entry.changed), [&] {
    return std::make_unique<policy::Dataset>(policy::Dataset::Open(entry.path.string()));
  });
}

Shelf<OpenPack>::Seat Desk::Pack(const DataEntry& entry) {
  return packs_.Take(fmt::format("{} {}", entry.path.string(), entry.changed),
                     [&] { return std::make_unique<OpenPack>(entry.path.string()); });
}

}  // namespace kibitz::serve
