// Any text as a player's name: a reason, or a name whose own text reads back, and options that are
// taken or refused with a usage error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "players/make_player.h"
#include "players/player_name.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto name = players::ParsePlayerName(text);
  CHECK(name ? name.reason().empty() : !name.reason().empty());
  if (!name) return 0;
  const auto again = players::ParsePlayerName(players::ToText(*name));
  CHECK(again && *again == *name);
  if (name->kind != "negamax" && name->kind != "random") return 0;  // Others open files.
  try {
    const auto maker = players::MakerFor(*name);
    CHECK(players::ParsePlayerName(maker->ToText()));
  } catch (const Error& error) {
    CHECK(!error.message().empty());
  }
  return 0;
}
