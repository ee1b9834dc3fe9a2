// Runs a decoder without torch: loads a checkpoint, predicts, thinks.
//
//   const auto player = Player::Load({.path = "model.pt", .precision = nn::Precision::kInt8});
//   const Prediction answer = player->Predict(board, {.value = true});
//   const Thought thought = player->Think(board, {.max_variations = 3});
//
// One call at a time; a stop token in the options ends it from another thread, within the time of
// one layer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/weights/model_file.h"
#include "nn/kernels/network_options.h"
#include "students/decoder/data/net_config.h"
#include "students/decoder/play/thought.h"

namespace kibitz::decoder {

class GameReader;
class Model;

class Player {
 public:
  // A checkpoint of ours or of the Python reference, migrated if needed: that of options.path, or
  // one that was read before. Throws Error.
  static std::unique_ptr<Player> Load(const nn::NetworkOptions& options);
  static std::unique_ptr<Player> Load(const io::ModelFile& file, const nn::NetworkOptions& options);
  // A network of these sizes with random weights: to measure speed without a checkpoint.
  static std::unique_ptr<Player> Random(const NetConfig& config, uint64_t seed,
                                        const nn::NetworkOptions& options = {});
  explicit Player(std::unique_ptr<Model> model);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  const NetConfig& config() const;
  int threads() const;
  // Of the weights and their packed copies.
  size_t memory_bytes() const;

  Prediction Predict(const chess::Board& board, const PredictOptions& options = {});
  // The same for a batch of positions: faster than one by one, the same answers. The n-th uses seed
  // + n.
  std::vector<Prediction> PredictAll(std::span<const chess::Board> boards,
                                     const PredictOptions& options = {});

  // A game from `start`, to which moves are added one by one. The player must outlive it.
  std::unique_ptr<GameReader> Read(const chess::Board& start);

  Thought Think(const chess::Board& root, const ThinkOptions& options = {},
                const ThoughtListener& listener = {});
  // Many thoughts that share passes, or in small networks threads: more tokens per second, the same
  // answers. Takes tasks from `next` until there are none, a few ahead of those that are finished,
  // and hands over each thought with the number of its task, in the order in which they end. Both
  // are called from any thread, one call at a time. A stop ends those under way as cancelled. The
  // tasks' own stop tokens are not looked at.
  using NextTask = std::function<std::optional<ThinkTask>()>;
  using Finished = std::function<void(size_t number, Thought thought)>;
  void ThinkEach(const NextTask& next, const Finished& finished, const std::stop_token& stop = {});
  // The same for given positions. The n-th uses seed + n. After a stop, thoughts that were not
  // begun are empty.
  std::vector<Thought> ThinkAll(std::span<const chess::Board> roots,
                                const ThinkOptions& options = {});

 private:
  std::span<const std::unique_ptr<Model>> Thinkers(bool small);

  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<Model>> thinkers_;  // The same network once for each thread.
};

// A game as the network reads it: boards, moves and their values. Each further move costs only its
// own tokens.
class GameReader {
 public:
  ~GameReader();

  // Moves that fit behind the first board.
  int max_moves() const;
  // `move` must be legal. Throws Error when the sequence has no room left.
  void Play(chess::Move move);
  const chess::Board& board() const;
  // The value of each move, for the side that moved.
  std::span<const NodeValue> values() const;
  Prediction Predict(const PredictOptions& options = {});

 private:
  struct Parts;
  explicit GameReader(std::unique_ptr<Parts> parts);
  friend class Player;

  std::unique_ptr<Parts> parts_;
};

}  // namespace kibitz::decoder
