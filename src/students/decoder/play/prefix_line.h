// A sequence in the prefix stream: attention within a board is bidirectional, otherwise causal.
// Keeps track of what was read.
//
//   PrefixLine line(model, 68 + 2);
//   line.PushBoard(BoardTokensOf(board));
//   line.AddUnread(readings);               // What the board's moves need is wanted.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "nn/transformer/attention.h"
#include "students/decoder/data/tokens.h"
#include "students/decoder/play/model.h"

namespace kibitz::decoder {

class PrefixLine {
 public:
  // Room for this many tokens.
  PrefixLine(Model& model, int capacity);

  int size() const { return static_cast<int>(inputs_.size()); }
  void Push(Input input);
  void PushBoard(std::span<const TokenId> tokens);
  // Drops the tokens from `size` on.
  void Truncate(int size);
  // Tokens that were read or are being read; reads again those from `count` on.
  int read() const { return read_; }
  void ReadAgainFrom(int count) { read_ = std::min(read_, count); }

  // Adds what was not read yet. Wanted: BoardWanted where it ends with a board, else the hidden
  // state of the last token.
  void AddUnread(std::vector<Reading>& readings);

 private:
  std::vector<Input> inputs_;
  std::vector<int> block_ends_;  // For each token: one past the last that it attends to.
  int read_ = 0;
  const NetConfig& config_;
  std::vector<int> board_wanted_;
  CachePtr cache_;
};

}  // namespace kibitz::decoder
