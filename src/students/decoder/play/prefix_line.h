// A sequence as the prefix stream reads it: boards see themselves both ways, other tokens what is
// before them. Remembers what it has read.
//
//   PrefixLine line(model, 68 + 2);
//   line.PushBoard(BoardTokensOf(board));
//   line.AddUnread(readings);               // The last token is wanted.
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
  PrefixLine(const Model& model, int capacity);

  int size() const { return static_cast<int>(inputs_.size()); }
  void Push(Input input);
  void PushBoard(std::span<const TokenId> tokens);
  // Forgets what is behind.
  void Truncate(int size);
  // Tokens that were read, or are being read; and to read again what is behind the first `count`.
  int read() const { return read_; }
  void ReadAgainFrom(int count) { read_ = std::min(read_, count); }

  // What has not been read yet, to be read now; its last token is wanted.
  void AddUnread(std::vector<Reading>& readings);

 private:
  std::vector<Input> inputs_;
  std::vector<int> block_ends_;  // Of each token: behind the last that it sees.
  int read_ = 0;
  nn::KvCache cache_;
};

}  // namespace kibitz::decoder
