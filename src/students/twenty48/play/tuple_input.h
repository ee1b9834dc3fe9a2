// The input of the tuple network (net/tuple_net.h) at play: a board's row and the rows of its
// patterns. Letters: P = 17 patterns, E numbers of a pattern, D width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "games/twenty48/board.h"
#include "io/weights/state_dict.h"
#include "students/twenty48/data/net_config.h"

namespace kibitz::twenty48 {

class TupleInput {
 public:
  // Throws Error.
  TupleInput(const io::StateDict& weights, const NetConfig& config);

  // Rows of a board: the patterns' follow its own with attention, and are missing without.
  int64_t rows() const { return rows_; }
  size_t memory_bytes() const;
  void Fill(const Board& board, float* x) const;  // (rows(), D)

 private:
  // A projection's (E, D) for each of P patterns.
  void AddProjected(const float* vector, const std::vector<float>& projection, int tuple,
                    float* row) const;

  int64_t width_;        // D
  int64_t tuple_width_;  // E
  int64_t ranks_;        // In `tiles_`.
  int64_t rows_ = 1;
  std::vector<float> tuples_;     // (P * 15^4, E)
  std::vector<float> tiles_;      // (16 * 17, D)
  std::vector<float> to_board_;   // (P, E, D)
  std::vector<float> to_rows_;    // (P, E, D); empty without attention, as positions_.
  std::vector<float> positions_;  // (15, D)
};

}  // namespace kibitz::twenty48
