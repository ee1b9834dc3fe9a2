// The network without attention (net/attention_free.h) at play: one row a board instead of the
// encoder's sixteen, so some fifty times as fast, with the encoder's logits to rounding. Letters:
// B boards, G numbers of a board, F hidden width, A answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "games/twenty48/board.h"
#include "io/weights/state_dict.h"
#include "nn/kernels/linear.h"
#include "nn/kernels/team.h"
#include "students/twenty48/data/net_config.h"

namespace kibitz::twenty48 {

class AttentionFreeModel {
 public:
  // Throws Error.
  AttentionFreeModel(const io::StateDict& weights, const NetConfig& config);

  int64_t answers() const { return head_.outputs(); }
  size_t memory_bytes() const;
  // (B, A), as Model::Answer.
  void Answer(nn::Team& team, std::span<const Board> boards, float* logits) const;

 private:
  struct Layer {
    nn::Linear gate;
    nn::Linear up;
    nn::Linear down;
  };

  void AnswerSome(std::span<const Board> boards, float* logits) const;
  // RMSNorm, with the sum of squares of the encoder's whole row.
  void Norm(const float* x, float* out) const;

  int64_t width_;             // G
  int64_t hidden_;            // F
  double places_;             // D of the encoder.
  double epsilon_;            // Of its norms.
  std::vector<float> begin_;  // (16, 17, G): each tile's term of the first sum, with `mix` applied.
  std::vector<Layer> layers_;
  nn::Linear head_;
};

}  // namespace kibitz::twenty48
