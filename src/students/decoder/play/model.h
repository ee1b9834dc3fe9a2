// The decoder's network at inference: embeddings, layers, heads. Letters: D width, M move
// vocabulary, V board vocabulary.
//
//   const WeightsFile file = ReadWeightsFile("model.pt");
//   Model model(file.weights, file.config, {.precision = nn::Precision::kF32});
//   const CachePtr cache = model.TakeCache(68);
//   const Reading board = {.cache = cache.get(), .inputs = inputs, .block = true, .wanted = {67}};
//   const float* hidden = model.Read({&board, 1}, stop);       // (wanted rows, D)
//   model.PolicyLogits(hidden, 1, logits);
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "io/weights/state_dict.h"
#include "nn/kernels/linear.h"
#include "nn/kernels/network_options.h"
#include "nn/kernels/team.h"
#include "nn/transformer/attention.h"
#include "nn/transformer/transformer.h"
#include "students/decoder/data/net_config.h"
#include "students/decoder/data/tokens.h"
#include "students/decoder/data/vocabulary.h"
#include "students/decoder/data/votes.h"

namespace kibitz::decoder {

// The input at a position: a token or a value. An index into one table of embeddings.
class Input {
 public:
  static Input Of(TokenId token) { return Input(token); }
  static Input Wl(int bucket) { return Input(kVocabularySize + bucket); }
  static Input D(int bucket, int buckets) { return Input(kVocabularySize + buckets + bucket); }

  // A token of a board.
  static Input At(PlaceRows places, TokenId token) {
    Input input(token);
    input.places_ = places;
    return input;
  }

  int row() const { return row_; }
  PlaceRows places() const { return places_; }

 private:
  explicit Input(int row) : row_(row) {}
  int row_;
  PlaceRows places_;
};

// Which hidden states a board's moves need: its last token's, with square_policy also the squares',
// before it.
std::vector<int> BoardWanted(const NetConfig& config);

// A move whose value is asked.
struct PlayedMove {
  TokenId token = 0;
  std::span<const float> squares = {};  // Model::SquareStates of the board it was played on.
};

// Of the stream's inputs from `first` on; nothing without separate_lines.
std::vector<nn::RowView> ViewsFrom(const NetConfig& config, std::span<const Input> stream,
                                   size_t first, std::span<const Input> more = {});

// Consecutive inputs of one stream.
struct Reading {
  nn::KvCache* cache = nullptr;
  int first = 0;  // Position of the first.
  std::vector<Input> inputs = {};
  bool block = false;                   // Attention between them is bidirectional.
  std::vector<int> wanted = {};         // Whose hidden states are returned, ascending from 0.
  std::vector<nn::RowView> views = {};  // ViewsFrom of the stream.

  // A board that is read whole.
  bool is_board() const { return block && inputs.size() == kBoardTokens; }
};

class Model;

// A cache that goes back to its model, which must still be there.
struct ReturnCache {
  Model* model = nullptr;
  void operator()(nn::KvCache* cache) const;
};
using CachePtr = std::unique_ptr<nn::KvCache, ReturnCache>;

class Model {
 public:
  // Throws Error when a weight is missing or of another shape.
  Model(const io::StateDict& weights, const NetConfig& config, const nn::NetworkOptions& options);
  // The same network with threads and memory of its own, to run beside the other.
  Model(const Model& other, int threads);
  ~Model();

  const NetConfig& config() const;
  nn::Team& team() { return team_; }
  size_t memory_bytes() const;
  // Room for at least so many positions, with any content. Caches are used again: fresh memory for
  // each thought would cost as much time as its first pass.
  CachePtr TakeCache(int positions);
  const nn::Transformer& layers() const;

  // The hidden states of all wanted rows, in order; valid until the next call. nullptr when
  // stopped.
  const float* Read(std::span<const Reading> readings, const std::stop_token& stop = {});

  // The policy of so many boards, from what BoardWanted names of each: (boards, M).
  void BoardPolicy(const float* hidden, int64_t boards, std::vector<float>& logits);
  // What the squares of a board add to the policy's or thinking policy's logits, from the same of
  // one board: (M), or empty without square_policy.
  std::vector<float> PolicySquares(const float* hidden) const;
  std::vector<float> ThinkingSquares(const float* hidden) const;

  // VotingLine::end_vote of a variation, from the hidden state of its end_var; 0 without
  // line_votes.
  float LineVote(const float* hidden) const;
  const VoteWeights& vote_weights() const;

  // Heads on `rows` hidden states, (rows, D) -> (rows, M or V).
  void PolicyLogits(const float* hidden, int64_t rows, std::vector<float>& logits);
  void ThinkingLogits(const float* hidden, int64_t rows, std::vector<float>& logits);
  void BoardLogits(const float* hidden, int64_t rows, std::vector<float>& logits);
  // The buckets of the moves' values, from the hidden states of their tokens.
  std::vector<int> WlBuckets(const float* hidden, std::span<const PlayedMove> moves);
  std::vector<int> DBuckets(const float* hidden, int64_t rows);
  // A copy of what PlayedMove reads, from what BoardWanted names of a board; empty without
  // square_values.
  std::vector<float> SquareStates(const float* hidden) const;
  float WlOf(int bucket) const;
  float DOf(int bucket) const;

 private:
  friend ReturnCache;
  struct Network;  // The weights.
  void Apply(const nn::Linear& head, const float* hidden, int64_t rows, std::vector<float>& out);
  struct ValueHead;
  // middle: of the first layer, (rows, hidden size).
  std::vector<int> Buckets(const ValueHead& head, std::span<const float> centers,
                           std::vector<float>& middle);

  std::shared_ptr<const Network> network_;
  nn::Team team_;
  nn::PassMemory memory_;  // Of the last Read.
  nn::PackedRows packed_;  // Of the heads.

  std::mutex cache_mutex_;
  std::vector<std::unique_ptr<nn::KvCache>> free_caches_;  // Guarded by it.
};

// Weights initialised as PyTorch's constructors do: to measure and test without a checkpoint.
io::StateDict RandomWeights(const NetConfig& config, uint64_t seed);

}  // namespace kibitz::decoder
