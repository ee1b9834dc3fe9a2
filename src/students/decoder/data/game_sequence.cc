#include "students/decoder/data/game_sequence.h"

#include "base/check.h"
#include "students/decoder/data/sequence_builder.h"

namespace kibitz::decoder {

GameChoices DrawGameChoices(std::span<const Ply> game, const GameOptions& options, Rng& rng) {
  CHECK(!game.empty());
  GameChoices choices;
  choices.start = rng.Below(game.size());
  choices.board_skipped.assign(game.size(), false);
  if (options.skip_board_prob <= 0) return choices;
  // Draws only for plies that can fit: each takes at least three tokens.
  for (size_t ply = choices.start + 1; ply < game.size(); ++ply) {
    if (3 * (ply - choices.start) > static_cast<size_t>(options.max_seq_len)) break;
    choices.board_skipped[ply] = rng.Uniform() < options.skip_board_prob;
  }
  return choices;
}

Sequence GameSequence(std::span<const Ply> game, const GameOptions& options,
                      const GameChoices& choices) {
  CHECK(choices.start < game.size() && choices.board_skipped.size() == game.size());
  const auto limit = static_cast<int32_t>(options.max_seq_len);
  SequenceBuilder builder;
  builder.Reserve(static_cast<size_t>(limit) + kBoardTokens);
  for (size_t i = choices.start; i < game.size() && builder.size() < limit; ++i) {
    const Ply& ply = game[i];
    if (i > choices.start && ply.starts_run) break;
    if (i == choices.start || !choices.board_skipped[i]) builder.AddBoard(ply.board);
    builder.AddMove({.played = ply.played, .target = ply.best});
    builder.AddValue(ply.wl, ply.d, ply.valid);
  }
  return std::move(builder).Finish(limit);
}

Sequence GameSequence(std::span<const Ply> game, const GameOptions& options, Rng& rng) {
  return GameSequence(game, options, DrawGameChoices(game, options, rng));
}

}  // namespace kibitz::decoder
