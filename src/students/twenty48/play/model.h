// The 2048 network as a player runs it: many boards in one product. Letters: B boards, S rows of a
// board, R = S B rows, D width, A answers (4, or 4 times the bins).
//
//   Model model(io::ReadModel("models/twenty48-small"), {.precision = nn::Precision::kInt8});
//   model.Answer(boards, logits);                      // (B, A)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "games/twenty48/board.h"
#include "io/weights/model_file.h"
#include "nn/kernels/linear.h"
#include "nn/kernels/network_options.h"
#include "nn/kernels/team.h"
#include "nn/kernels/workspaces.h"
#include "students/twenty48/data/net_config.h"
#include "students/twenty48/play/attention_free_model.h"
#include "students/twenty48/play/tuple_input.h"

namespace kibitz::twenty48 {

class Model {
 public:
  // Weights of attention_free_model.h run in f32 whatever the precision. Throws Error.
  Model(const io::ModelFile& file, const nn::NetworkOptions& options);

  const NetConfig& config() const { return config_; }
  int threads() const { return team_.size(); }
  int64_t answers() const;
  // Bytes of packed weights.
  size_t memory_bytes() const;

  // The heads' logits, (B, A): move by move, bins of a move side by side. One call at a time.
  void Answer(std::span<const Board> boards, float* logits);
  // After the final norm, (B, 16, D): for tests. CHECKs that the network is an encoder over tiles.
  void Hidden(std::span<const Board> boards, float* hidden);

 private:
  struct Layer {
    std::vector<float> attention_norm;
    std::vector<float> mlp_norm;
    nn::Linear qkv;  // Empty in the first layer over tiles (see first_), and without attention.
    nn::Linear output;
    nn::Linear gate_up;
    nn::Linear down;
  };

  void ReadLayer(const io::StateDict& weights, int index, nn::Precision precision);
  void ReadAttention(const io::StateDict& weights, int index, nn::Precision precision);
  // The input of the first layer is one of 17 * 16 rows, a rank in a cell: their queries, keys and
  // values are computed once, in f32.
  void TabulateFirst(std::span<const float> qkv_weight);
  void ReadHeads(const io::StateDict& weights);
  // Buffers for a few boards. Each thread takes its boards through all layers: threads synchronize
  // once per call, not once per product.
  struct Workspace {
    nn::Team alone{1};
    nn::PackedRows packed;
    nn::AlignedArray<float> x;       // (R, D)
    nn::AlignedArray<float> qkv;     // (R, D + 2 kv)
    nn::AlignedArray<float> mixed;   // (R, D)
    nn::AlignedArray<float> hidden;  // (R, F, padded)
  };

  // Leaves the rows of all cells in x, or of a tuple network the boards' rows alone.
  void RunLayers(std::span<const Board> boards, Workspace& space) const;
  void Begin(std::span<const Board> boards, Workspace& space) const;
  // Fills x with the embeddings and qkv of the first layer.
  void BeginTiles(std::span<const Board> boards, Workspace& space) const;
  void ProjectQkv(const Layer& layer, int64_t rows, Workspace& space) const;   // From x to qkv.
  void Attend(int64_t boards, Workspace& space) const;                         // From qkv to mixed.
  void AddAttended(const Layer& layer, int64_t rows, Workspace& space) const;  // mixed to x.
  // Moves the first of each board's rows in x and mixed to the front.
  void KeepBoardRows(int64_t boards, Workspace& space) const;
  // The vector of a board that the heads read.
  void Pool(const Workspace& space, int64_t board, float* out) const;
  void FeedForward(const Layer& layer, int64_t rows, Workspace& space) const;
  // Calls run(boards, first board, workspace) for all boards, a few at a time, on the team.
  void ForChunks(std::span<const Board> boards,
                 const std::function<void(std::span<const Board>, int64_t, Workspace&)>& run);

  NetConfig config_;
  nn::Team team_;
  std::unique_ptr<AttentionFreeModel>
      attention_free_;                  // Without attention; then nothing below is used.
  std::unique_ptr<TupleInput> tuples_;  // Of a tuple network, instead of the next three.
  std::vector<float> tokens_;           // (vocabulary, D)
  std::vector<float> positions_;        // (16, D)
  nn::AlignedArray<float> first_;       // (vocabulary, 16, D + 2 kv): the first layer's qkv.
  std::vector<Layer> layers_;
  std::vector<float> final_norm_;
  nn::Linear heads_;  // In f32: they are small.
  int64_t hidden_columns_ = 0;
  nn::Workspaces<Workspace> workspaces_;
};

}  // namespace kibitz::twenty48
