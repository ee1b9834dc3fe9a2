// The policy's network at inference, over batches of positions. Letters: B positions, C
// channels, I channels of the input, K window of a convolution, M moves.
//
//   Model model(io::ReadModel("models/policy-small"), {.threads = 2});
//   model.Answer(positions, logits.data());               // (B, M)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/weights/model_file.h"
#include "nn/conv/conv.h"
#include "nn/conv/norm_rows.h"
#include "nn/kernels/aligned.h"
#include "nn/kernels/linear.h"
#include "nn/kernels/network_options.h"
#include "nn/kernels/team.h"
#include "nn/kernels/workspaces.h"
#include "students/policy/data/net_config.h"
#include "students/policy/data/packed_position.h"

namespace kibitz::policy {

class Model {
 public:
  // In f32. Throws Error, also when another precision is asked for.
  Model(const io::ModelFile& file, const nn::NetworkOptions& options);
  ~Model();

  const NetConfig& config() const { return config_; }
  int threads() const { return team_.size(); }
  // Of packed weights.
  size_t memory_bytes() const;

  // (B, M), in the order of the vocabulary; of a network that flips, as the side to move sees it.
  // One call at a time. A position's logits do not depend on those beside it, nor on threads.
  void Answer(std::span<const PackedPosition> positions, float* logits);

 private:
  // A norm over a board, weights square by square with channels innermost; no bias of an RMSNorm.
  struct Norm {
    std::vector<float> weight;
    std::vector<float> bias;
  };
  // One of the two, by the network's window.
  struct Convolution {
    nn::Conv small;   // 3x3, by Winograd transforms.
    nn::Linear wide;  // Other sizes: a product over the window of each square (im2col).
  };
  struct Block {
    Norm ln1;
    Convolution conv1;
    Norm ln2;
    Convolution conv2;
  };
  struct Workspace;

  void ReadCnn(const io::StateDict& weights);
  void ReadMlp(const io::StateDict& weights);
  Convolution ReadConv(const io::StateDict& weights, const std::string& name, int64_t inputs);
  Norm ReadNorm(const io::StateDict& weights, const std::string& name,
                const std::vector<int64_t>& shape) const;

  void WriteInputs(std::span<const PackedPosition> positions, Workspace& space) const;
  // features: (B, 64 * C), square by square.
  void RunCnn(std::span<const PackedPosition> positions, Workspace& space, float* features) const;
  // Runs the convolutions into features_, a few positions at a time on each thread.
  void RunPasses(std::span<const PackedPosition> positions);
  void ReadOutput(const io::StateDict& weights);
  // A head of planes, over the features.
  void RunPlanes(int64_t total, float* logits);
  // The linear layers, all threads together.
  void RunLinears(std::span<const PackedPosition> positions, float* logits);
  bool small_windows() const { return config_.kernel_size == 3; }
  // Numbers from one square to the next: channels, padded with zeros where windows are small.
  int64_t RowOf(int64_t channels) const;
  // to = conv(from) square by square; `from` has `channels` numbers a square.
  void Convolve(const Convolution& conv, const float* from, int64_t channels, int64_t boards,
                Workspace& space, float* to) const;
  // The same as a product over the window of each square.
  void ConvolveWide(const nn::Linear& conv, const float* from, int64_t channels, int64_t boards,
                    Workspace& space, float* to) const;
  void Normalise(const Norm& norm, const float* from, int64_t boards, float* to) const;

  NetConfig config_;
  nn::Team team_;
  nn::FloatPool pool_;                // Weights of small windows.
  Convolution input_;                 // CNN.
  std::vector<Block> blocks_;         // CNN.
  Norm out_norm_;                     // CNN.
  std::vector<nn::Linear> linears_;   // MLP: all; CNN: the output alone.
  std::vector<float> move_bias_;      // Of a head of planes.
  nn::AlignedArray<float> planes_;    // (B * 64, 2 planes) of such a head.
  nn::AlignedArray<float> features_;  // CNN: what the output multiplies; MLP: a hidden layer.
  nn::PackedRows packed_;
  nn::Workspaces<Workspace> workspaces_;
};

}  // namespace kibitz::policy
