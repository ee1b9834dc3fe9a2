#include "students/policy/play/player.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "games/chess/movegen.h"

namespace kibitz::policy {
namespace {

Vocabulary VocabularyBeside(const std::string& weights, int moves) {
  namespace fs = std::filesystem;
  const std::string file = (fs::path(weights).parent_path() / "vocab.npy").string();
  Vocabulary vocabulary = fs::exists(file) ? Vocabulary::Read(file) : Vocabulary::Full();
  if (vocabulary.size() != moves) {
    throw Error(
        "{}: the network has {} moves, the vocabulary {}; put the vocab.npy of its data set "
        "beside it",
        weights, moves, vocabulary.size());
  }
  return vocabulary;
}

}  // namespace

Player::Player(const nn::NetworkOptions& options) : Player(io::ReadModel(options.path), options) {}

Player::Player(const io::ModelFile& file, const nn::NetworkOptions& options)
    : model_(file, options), vocabulary_(VocabularyBeside(file.place, model_.config().num_moves)) {}

Prediction Player::Read(const chess::Board& board, const float* logits) const {
  const bool flipped = model_.config().flip_board && board.side_to_move() == chess::Color::kBlack;
  const int size = vocabulary_.size();
  const double largest = *std::max_element(logits, logits + size);
  double all = 0;
  for (int i = 0; i < size; ++i) all += std::exp(logits[i] - largest);
  Prediction prediction;
  double legal = 0;
  for (chess::Move move : LegalMoves(board)) {
    const MoveWord word = flipped ? WordOf(move).Flipped() : WordOf(move);
    const uint16_t index = vocabulary_.IndexOf(word);
    // A move that a small vocabulary lacks is never chosen before one that it has.
    const double weight = index == kNoMove ? 0 : std::exp(logits[index] - largest);
    prediction.moves.push_back({move, weight});
    legal += weight;
  }
  for (LikelyMove& move : prediction.moves) {
    move.probability =
        legal > 0 ? move.probability / legal : 1 / static_cast<double>(prediction.moves.size());
  }
  std::stable_sort(
      prediction.moves.begin(), prediction.moves.end(),
      [](const LikelyMove& a, const LikelyMove& b) { return a.probability > b.probability; });
  prediction.legal_mass = legal / all;
  return prediction;
}

Prediction Player::Predict(const chess::Board& board) {
  return PredictAll(std::span(&board, 1)).front();
}

std::vector<Prediction> Player::PredictAll(std::span<const chess::Board> boards) {
  std::vector<PackedPosition> positions;
  positions.reserve(boards.size());
  for (const chess::Board& board : boards) positions.push_back(Pack(board));
  std::vector<float> logits(boards.size() * static_cast<size_t>(model_.config().num_moves));
  model_.Answer(positions, logits.data());
  std::vector<Prediction> predictions;
  predictions.reserve(boards.size());
  for (size_t i = 0; i < boards.size(); ++i) {
    predictions.push_back(
        Read(boards[i], logits.data() + i * static_cast<size_t>(model_.config().num_moves)));
  }
  return predictions;
}

}  // namespace kibitz::policy
