#include "arena/player_table.h"

#include <algorithm>

#include "base/error.h"

namespace kibitz::arena {
namespace {

std::unique_ptr<players::PlayerMaker> MakerOf(const Contender& contender, chess::Color color) {
  const std::string text = contender.NameAs(color);
  players::PlayerName name = players::ParsePlayerName(text).OrThrow("player");
  const auto given = [&](const char* key) {
    return std::ranges::any_of(name.options, [&](const auto& item) { return item.first == key; });
  };
  const bool threads_given = given("threads");
  const bool restart_given = given("restart");
  const bool one_ply_given = given("one_ply");
  auto maker = players::MakerFor(name);
  Fields fields = maker->fields();
  const std::vector<std::string> keys = fields.Names();
  const auto set = [&](const char* key, const char* value) {
    if (std::ranges::find(keys, key) != keys.end()) CHECK(fields.Set(key, value).empty());
  };
  if (!threads_given) set("threads", "1");
  if (!restart_given) set("restart", "false");
  if (!one_ply_given && !contender.one_ply) set("one_ply", "false");
  return maker;
}

}  // namespace

std::string Contender::NameAs(chess::Color color) const {
  const std::optional<double>& wanted = temperature[static_cast<size_t>(color)];
  if (!wanted) return name;
  players::PlayerName parsed = players::ParsePlayerName(name).OrThrow("player");
  std::erase_if(parsed.options, [](const auto& item) { return item.first == "temperature"; });
  parsed.options.emplace_back("temperature", fmt::format("{}", *wanted));
  return players::ToText(parsed);
}

std::optional<bool> OnePlyOf(const Contender& contender) {
  for (const FieldInfo& field : MakerOf(contender, chess::Color::kWhite)->fields().Describe()) {
    if (field.name == "one_ply") return field.value == "true";
  }
  return std::nullopt;
}

std::string OnePlyText(std::span<const std::string> names,
                       std::span<const std::optional<bool>> rules) {
  CHECK(names.size() == rules.size());
  std::string text = "One-ply rule:";
  for (size_t i = 0; i < names.size(); ++i) {
    const char* word = !rules[i] ? "has none" : *rules[i] ? "on" : "off";
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", names[i], word);
  }
  return text + "\n";
}

nlohmann::ordered_json OnePlyJson(std::optional<bool> rule) {
  return rule ? nlohmann::ordered_json(*rule) : nlohmann::ordered_json(nullptr);
}

PlayerTable::PlayerTable(const std::vector<Contender>& contenders)
    : contenders_(contenders), seats_(contenders.size()) {}

PlayerTable::Seat& PlayerTable::SeatOf(size_t contender, chess::Color color) {
  const Contender& who = contenders_.at(contender);
  const bool same = who.temperature[0] == who.temperature[1];
  const chess::Color seat_color = same ? chess::Color::kWhite : color;
  Seat& seat = seats_[contender][static_cast<size_t>(seat_color)];
  if (seat.maker == nullptr) seat.maker = MakerOf(who, seat_color);
  return seat;
}

players::Player& PlayerTable::At(size_t contender, chess::Color color) {
  Seat& seat = SeatOf(contender, color);
  if (seat.player == nullptr) seat.player = seat.maker->Make();
  return *seat.player;
}

bool PlayerTable::IsEngine(size_t contender, chess::Color color) {
  return SeatOf(contender, color).maker->kind() == "engine";
}

void PlayerTable::Drop(size_t contender, chess::Color color) {
  SeatOf(contender, color).player.reset();
}

void CheckContenders(const std::vector<Contender>& contenders) {
  for (const Contender& contender : contenders) {
    for (chess::Color color : {chess::Color::kWhite, chess::Color::kBlack}) {
      MakerOf(contender, color);
    }
  }
}

}  // namespace kibitz::arena
