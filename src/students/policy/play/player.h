// Runs a policy: the legal moves of a position with their probabilities.
//
//   Player player({.path = "models/policy-small"});
//   const Prediction prediction = player.Predict(board);
//   prediction.moves.front();                              // The most likely.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "games/chess/board.h"
#include "students/policy/data/vocabulary.h"
#include "students/policy/play/model.h"

namespace kibitz::policy {

struct LikelyMove {
  chess::Move move;
  double probability = 0;  // Over the legal moves.
};

struct Prediction {
  std::vector<LikelyMove>
      moves;  // All legal ones, the most likely first; none when the game is over.
  // The probability of all legal moves together, in the softmax over the whole vocabulary.
  double legal_mass = 0;
};

class Player {
 public:
  // The vocabulary is vocab.npy beside the weights, else the full one. Throws Error.
  explicit Player(const nn::NetworkOptions& options);

  const Model& model() const { return model_; }
  Model& model() { return model_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  Prediction Predict(const chess::Board& board);
  std::vector<Prediction> PredictAll(std::span<const chess::Board> boards);

 private:
  Player(const io::ModelFile& file, const nn::NetworkOptions& options);
  Prediction Read(const chess::Board& board, const float* logits) const;

  Model model_;
  Vocabulary vocabulary_;
};

}  // namespace kibitz::policy
