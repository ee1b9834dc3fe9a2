// The players of one thread of a match, by their numbers: each is made when it first plays, and
// made again after it broke.
//
//   PlayerTable table({{.name = "policy-small"}, {.name = "stockfish?elo=1500"}});
//   players::Player& player = table.At(0, chess::Color::kWhite);
//
// Networks run on one thread unless the name says otherwise: a match uses the cores by playing
// several games at a time. An engine that crashes is not asked again: the game is lost.
#pragma once

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "games/chess/types.h"
#include "players/make_player.h"

namespace kibitz::arena {

struct Contender {
  std::string name;  // As players/player_name.h has it.
  // By colour, where given: of the moves it plays. A usage error where it has no temperature.
  std::array<std::optional<double>, 2> temperature = {};
  // Whether a player that has the one-ply rule (players/one_ply.h) uses it, where its name does not
  // say. Play has it on; measurements of the bare network have it off.
  bool one_ply = true;

  std::string NameAs(chess::Color color) const;
};

// Whether this player plays by the one-ply rule; nothing: it has no such rule.
std::optional<bool> OnePlyOf(const Contender& contender);
// For reports: "One-ply rule: policy-small on, random has none". Both lists are of one length.
std::string OnePlyText(std::span<const std::string> names,
                       std::span<const std::optional<bool>> rules);
// Null: it has no such rule.
nlohmann::ordered_json OnePlyJson(std::optional<bool> rule);

class PlayerTable {
 public:
  explicit PlayerTable(const std::vector<Contender>& contenders);

  // Throws Error when it cannot be made.
  players::Player& At(size_t contender, chess::Color color = chess::Color::kWhite);
  // An engine watches its clock itself; the others are stopped.
  bool IsEngine(size_t contender, chess::Color color = chess::Color::kWhite);
  // Ends it; it is made again when it next plays.
  void Drop(size_t contender, chess::Color color = chess::Color::kWhite);

 private:
  struct Seat {
    std::unique_ptr<players::PlayerMaker> maker;
    std::unique_ptr<players::Player> player;
  };
  // The two colours share a seat where their options are the same.
  Seat& SeatOf(size_t contender, chess::Color color);

  std::vector<Contender> contenders_;
  std::vector<std::array<Seat, 2>> seats_;
};

// Throws Error::Usage for a name that is wrong, and Error for a missing file, before any game.
void CheckContenders(const std::vector<Contender>& contenders);

}  // namespace kibitz::arena
