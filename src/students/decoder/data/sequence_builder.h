// Builds a Sequence token by token, with its targets: the target of the board head is the next
// token, except where a move follows.
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
  // Adds a move token. At the token before it (if any) the board head's target is `announced_as`
  // and the policy head's is `target`, which may differ from the move played.
  struct Move {
    TokenId played = 0;
    TokenId target = 0;
    bool thinking = false;
    TokenId announced_as = kGenericMove;
  };
  void AddMove(const Move& move);
  // Adds the two value tokens after a move.
  void AddValue(float wl, float d, bool valid);

  int32_t size() const { return sequence_.size(); }
  // Returns the sequence, cut to the limit. The cut may fall inside a board; a move whose values do
  // not fit is not a target.
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
