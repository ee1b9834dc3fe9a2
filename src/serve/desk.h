// Players, networks and data sets, each opened once and used by one job at a time.
//
//   Desk desk(catalog, {.engines = {"stockfish"}});
//   const auto seat = desk.Player(desk.Allow("policy-small?temperature=0.5"));
//   const players::Answer answer = seat->Play(request);
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "players/make_player.h"
#include "serve/catalog.h"
#include "students/decoder/play/player.h"
#include "students/policy/data/dataset.h"
#include "students/twenty48/data/pack.h"
#include "students/twenty48/play/player.h"

namespace kibitz::serve {

// Things by key, the last used first; at most so many that nobody uses.
template <typename Thing>
class Shelf {
 public:
  // Exclusive use of the thing while it lives.
  class Seat {
   public:
    explicit Seat(std::shared_ptr<std::pair<std::mutex, std::unique_ptr<Thing>>> slot)
        : slot_(std::move(slot)), lock_(slot_->first) {}
    Thing* operator->() const { return slot_->second.get(); }
    Thing& operator*() const { return *slot_->second; }

   private:
    friend class Shelf;
    std::shared_ptr<std::pair<std::mutex, std::unique_ptr<Thing>>> slot_;
    std::unique_lock<std::mutex> lock_;
  };

  explicit Shelf(size_t kept) : kept_(kept) {}

  // Waits while another job uses it; loads it where it is not there.
  Seat Take(const std::string& key, const std::function<std::unique_ptr<Thing>()>& load) {
    Seat seat(SlotOf(key));
    if (!seat.slot_->second) seat.slot_->second = load();
    return seat;
  }

 private:
  using Slot = std::shared_ptr<std::pair<std::mutex, std::unique_ptr<Thing>>>;

  Slot SlotOf(const std::string& key) {
    const std::lock_guard lock(mutex_);
    for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
      if (slot->first != key) continue;
      slots_.splice(slots_.begin(), slots_, slot);
      return slots_.front().second;
    }
    slots_.emplace_front(key, std::make_shared<std::pair<std::mutex, std::unique_ptr<Thing>>>());
    while (slots_.size() > kept_) slots_.pop_back();  // Who still uses it keeps it alive.
    return slots_.front().second;
  }

  const size_t kept_;
  std::mutex mutex_;
  std::list<std::pair<std::string, Slot>> slots_;  // Guarded by mutex_.
};

struct DeskOptions {
  // Programs that may be started as engines; a request names one of these, letter by letter.
  std::vector<std::string> engines = {};
};

// What may be asked of a player by name: the path is a model's id or an engine of the list, and
// options are those that cannot harm the server. Throws Error::Usage.
struct AllowedPlayer {
  players::PlayerName name;  // With the real path.
  std::string shown = {};    // As asked for.
  std::string key = {};      // Another one once the model's file has changed.
};

// A 2048 pack, and where the rows of each of its games are.
struct OpenPack {
  explicit OpenPack(const std::string& folder);

  twenty48::Pack pack;
  struct Rows {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  std::map<uint32_t, std::vector<Rows>> rows;  // By run id.
};

class Desk {
 public:
  Desk(Catalog& catalog, DeskOptions options);

  AllowedPlayer Allow(const std::string& name);
  Shelf<players::Player>::Seat Player(const AllowedPlayer& player);
  // Throws Error::Usage when the model is not a decoder.
  ModelEntry DecoderEntry(const std::string& id);
  // `precision`: "f32" or "int8". Throws Error::Usage when the model is not a decoder.
  Shelf<decoder::Player>::Seat Decoder(const std::string& id, const std::string& precision);
  Shelf<twenty48::Player>::Seat Twenty48(const std::string& id);
  // Data sets; opened again when their folder has changed.
  Shelf<policy::Dataset>::Seat Policy(const DataEntry& entry);
  Shelf<OpenPack>::Seat Pack(const DataEntry& entry);

  Catalog& catalog() { return catalog_; }
  const DeskOptions& options() const { return options_; }

 private:
  Catalog& catalog_;
  const DeskOptions options_;
  Shelf<players::Player> players_{6};
  Shelf<decoder::Player> decoders_{3};
  Shelf<twenty48::Player> twenty48_{3};
  Shelf<policy::Dataset> policies_{4};
  Shelf<OpenPack> packs_{4};
};

// The option keys of players that requests may set.
const std::vector<std::string>& AllowedKeys();

}  // namespace kibitz::serve
