// Players from their names (player_name.h).
//
//   std::unique_ptr<Player> player = MakePlayer("policy-small?temperature=0.5");
//   const auto maker = MakerFor(*ParsePlayerName("stockfish?elo=1500"));
//   maker->fields().Set("elo", "1800");
//   std::unique_ptr<Player> stronger = maker->Make();
//
// A path is a file or folder, the name of a model that ships ("policy-small"), or for an engine a
// program on the PATH.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "players/player.h"
#include "players/player_name.h"

namespace kibitz::players {

class Networks;

struct EloRange {
  int min = 0;
  int max = 0;
  std::string how;  // "temperature by ratings against Stockfish 15.1"
};

// A player to be made: its path and its options, which may still be changed.
class PlayerMaker {
 public:
  virtual ~PlayerMaker() = default;

  // The options, bound to this object.
  virtual Fields fields() = 0;
  // Loads the network or starts the engine. Throws Error. Networks that were loaded for the player
  // made before are used again where path and network options are the same.
  virtual std::unique_ptr<Player> Make() = 0;

  // The ratings that the option `elo` can set; nothing where strength cannot be set.
  virtual std::optional<EloRange> elo_range() const { return std::nullopt; }

  const std::string& kind() const { return kind_; }
  const std::string& path() const { return path_; }
  // The full name: the kind, the path, and the options that are not at their default.
  std::string ToText();

 protected:
  PlayerMaker(std::string kind, std::string path);

 private:
  friend std::unique_ptr<PlayerMaker> MakerFor(const PlayerName& name);
  std::string kind_;
  std::string path_;
  std::vector<FieldInfo> defaults_;  // Of the fields.
};

// With the name's options set. Throws Error::Usage for a wrong name or key, saying what is
// possible, and Error for a file that is missing or of no known kind.
std::unique_ptr<PlayerMaker> MakerFor(const PlayerName& name);

std::unique_ptr<Player> MakePlayer(std::string_view name);

// The strongest player among the models that ship and are here. Throws Error when there is none.
std::string DefaultPlayer();

// For help: one line a kind, and one line an option.
std::string PlayersHelp();

}  // namespace kibitz::players
