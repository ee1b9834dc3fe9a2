// Writes a Sequence token by token and keeps its targets true: the natural target of a position is
// the next token, and the places where a move follows are told what to say instead.
//
//   SequenceBuilder builder;
//   builder.AddBoard(board);
//   builder.AddMove({.played = token, .target = best});
//   builder.AddValue(wl, d, valid);
//   Sequence sample = std::move(builder).Finish(max_seq_len);
#pragma once

#include <cstdint>

#include "games/chess/board.h"
#include "students/decoder/data/sequence.h"

namespace kibitz::decoder {

class SequenceBuilder {
 public:
  void Reserve(size_t tokens);

  void AddMark(TokenId token) { sequence_.ids.push_back(token); }
  void AddBoard(const chess::Board& board);
  // A move token. The token before it (if any) is taught to announce it as `announced_as` and to
  // say `target`, which may differ from the move played.
  struct Move {
    TokenId played = 0;
    TokenId target = 0;
    bool thinking = false;
    TokenId announced_as = kGenericMove;
  };
  void AddMove(const Move& move);
  // The two value tokens behind a move.
  void AddValue(float wl, float d, bool valid);

  int32_t size() const { return sequence_.size(); }
  // The sequence, cut to the limit: a board may be cut in the middle, but a move whose values do
  // not fit is not taught.
  Sequence Finish(int32_t max_seq_len) &&;

 private:
  struct Announcement {
    int32_t position;
    int8_t board_target;
  };
  void Cut(int32_t max_seq_len);

  Sequence sequence_;
  std::vector<Announcement> announcements_;  // One for each move target.
};

}  // namespace kibitz::decoder
