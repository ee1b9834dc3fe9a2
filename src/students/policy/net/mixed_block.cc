#include "students/policy/net/mixed_block.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "learn/parallel.h"
#include "students/policy/net/mixed_layer.h"
#include "students/policy/net/mixed_pieces.h"

namespace kibitz::policy {
namespace {

using nn::Bf16;
using nn::kPieceBoards;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct InputFunction : torch::autograd::Function<InputFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& weight,
                        const Tensor& bias) {
    const Tensor x = x_in.contiguous();
    const int64_t boards = x.size(0);
    const int64_t pieces = PiecesOf(boards);
    const MixedLayer layer({.weight = weight, .bias = bias}, nn::ConvPass::kForward);
    const int64_t channels = layer.weights().outputs();
    const Tensor rows = EmptyPieces(pieces, layer.weights().inputs(), torch::kBFloat16);
    const Tensor slopes = EmptyPieces(pieces, channels, torch::kBFloat16);
    const Tensor y = EmptyPieces(pieces, channels, torch::kFloat32);
    learn::ForEachTask(pieces, [&](int64_t piece) {
      const nn::AmxTiles tiles;
      const Tensor z = torch::empty({kPieceBoards, channels});
      const int64_t count = std::min(kPieceBoards, boards - piece * kPieceBoards);
      nn::RowsOfBoards(PieceAt<float>(x, piece * kPieceBoards), count, x.size(2),
                       PieceAt<Bf16>(rows, piece));
      for (int64_t square = 0; square < 64; ++square) {
        const int64_t offset = square * z.numel();
        nn::ConvolveSquare(layer.weights(), PieceAt<Bf16>(rows, piece), square,
                           z.data_ptr<float>());
        nn::AddGeluSquare(z.data_ptr<float>(), layer.bias(), channels, nullptr,
                          PieceAt<float>(y, piece) + offset, PieceAt<Bf16>(slopes, piece) + offset);
      }
    });
    ctx->save_for_backward({rows, slopes, weight, bias});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& rows = saved[0];
    const Tensor& slopes = saved[1];
    const LayerTensors tensors = {.weight = saved[2], .bias = saved[3]};
    const Tensor dy = gradients[0].contiguous();
    const int64_t pieces = dy.size(0);
    const int64_t inputs = rows.size(3);
    const int64_t outputs = dy.size(3);
    const MixedGradients sums(tensors, PieceSharesOf(pieces));
    ForEachShareOfPieces(pieces, [&](int64_t index, int64_t begin, int64_t end) {
      const MixedShare share = sums.Share(index);
      const MixedRoom room(inputs, outputs);
      for (int64_t piece = begin; piece < end; ++piece) {
        nn::SlopeBackward(PieceAt<float>(dy, piece), PieceAt<Bf16>(slopes, piece), outputs,
                          {room.rows(), room.pairs(), share.bias});
        nn::TransposePiece(PieceAt<Bf16>(rows, piece), inputs, room.columns());
        nn::AddWeightGradients({.x = room.columns(),
                                .dz = room.pairs(),
                                .inputs = inputs,
                                .outputs = outputs,
                                .add = piece > begin},
                               share.taps);
      }
    });
    const LayerTensors total = sums.Total(tensors);
    return {Tensor(), total.weight, total.bias};
  }
};

// Functions of torch take no undefined tensors: an empty one stands for a bias that is not there.
Tensor EmptyForNone(const Tensor& tensor) { return tensor.defined() ? tensor : torch::empty({0}); }

// Of each layer four tensors.
void Append(const LayerTensors& layer, variable_list& list) {
  list.insert(list.end(), {layer.norm_weight, layer.norm_bias, layer.weight, layer.bias});
}
std::vector<LayerTensors> LayersOf(at::ArrayRef<Tensor> parameters, double epsilon) {
  std::vector<LayerTensors> layers;
  for (size_t i = 0; i < parameters.size(); i += 4) {
    const Tensor& norm_bias = parameters[i + 1];
    layers.push_back({.norm_weight = parameters[i],
                      .norm_bias = norm_bias.numel() == 0 ? Tensor() : norm_bias,
                      .weight = parameters[i + 2],
                      .bias = parameters[i + 3],
                      .epsilon = epsilon});
  }
  return layers;
}

// What a block keeps for backward, of one piece.
struct KeptBlock {
  Bf16* x;      // Normalised by the first norm.
  Bf16* inner;  // gelu of the first layer.
  Bf16* slope1;
  Bf16* slope2;
  nn::PieceSums& sums1;  // Of x as it is kept.
  nn::PieceSums& sums2;
};

struct BlocksFunction : torch::autograd::Function<BlocksFunction> {
  // Tensors of backward, all of (blocks * N) pieces; then the parameters.
  enum Saved : size_t { kX, kInner, kSlope1, kSlope2, kSums1, kSums2, kParameters };

  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, at::TensorList parameters,
                        double epsilon) {
    const Tensor x = x_in.contiguous();
    const auto layers = PackLayers(LayersOf(parameters, epsilon), nn::ConvPass::kForward);
    const int64_t pieces = x.size(0);
    const int64_t kept = pieces * static_cast<int64_t>(layers.size()) / 2;
    variable_list saved;
    for (int i = 0; i < 4; ++i) saved.push_back(EmptyPieces(kept, x.size(3), torch::kBFloat16));
    for (int i = 0; i < 2; ++i) saved.push_back(EmptyPieceSums(kept));
    const Tensor y = torch::empty_like(x);
    learn::ForEachTask(pieces, [&](int64_t piece) {
      const nn::AmxTiles tiles;
      const Tensor rows = EmptyPieces(1, x.size(3), torch::kBFloat16);
      const float* from = PieceAt<float>(x, piece);
      float* to = PieceAt<float>(y, piece);
      for (size_t layer = 0; layer < layers.size(); layer += 2, from = to) {
        ForwardBlock(&layers[layer], from, to, Kept(saved, layer, piece, pieces),
                     PieceAt<Bf16>(rows, 0));
      }
    });
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["epsilon"] = epsilon;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const auto tensors = LayersOf(at::ArrayRef<Tensor>(saved).slice(kParameters),
                                  ctx->saved_data["epsilon"].toDouble());
    const auto layers = PackLayers(tensors, nn::ConvPass::kBackward);
    const Tensor dy = gradients[0].contiguous();
    const int64_t pieces = dy.size(0);
    std::vector<MixedGradients> sums;
    for (const LayerTensors& layer : tensors) sums.emplace_back(layer, PieceSharesOf(pieces));
    const Tensor dx = torch::empty_like(dy);
    ForEachShareOfPieces(pieces, [&](int64_t index, int64_t begin, int64_t end) {
      const MixedRoom room(dy.size(3), dy.size(3));
      std::vector<MixedShare> shares;
      for (const MixedGradients& layer : sums) shares.push_back(layer.Share(index));
      for (int64_t piece = begin; piece < end; ++piece) {
        const float* from = PieceAt<float>(dy, piece);
        float* to = PieceAt<float>(dx, piece);
        for (size_t layer = layers.size(); layer > 0; from = to) {
          layer -= 2;
          BackwardBlock(&layers[layer], Kept(saved, layer, piece, pieces),
                        Kept(saved, layer < 2 ? 0 : layer - 2, piece, pieces), from, to,
                        &shares[layer], room);
        }
      }
    });
    return Results(dx, tensors, sums);
  }

 private:
  static KeptBlock Kept(const variable_list& saved, size_t layer, int64_t piece, int64_t pieces) {
    const int64_t at = static_cast<int64_t>(layer) / 2 * pieces + piece;
    return {PieceAt<Bf16>(saved[kX], at),      PieceAt<Bf16>(saved[kInner], at),
            PieceAt<Bf16>(saved[kSlope1], at), PieceAt<Bf16>(saved[kSlope2], at),
            PieceSumsAt(saved[kSums1], at),    PieceSumsAt(saved[kSums2], at)};
  }

  // layers: both of the block. y may be x. rows: room for a piece.
  static void ForwardBlock(const MixedLayer* layers, const float* x, float* y,
                           const KeptBlock& kept, Bf16* rows) {
    const MixedLayer& first = layers[0];
    const MixedLayer& second = layers[1];
    const int64_t channels = first.norm().channels;
    const int64_t size = kPieceBoards * channels;
    const Tensor room = torch::empty({size});
    float* z = room.data_ptr<float>();
    nn::SumPiece(first.norm(), x, kept.sums1);
    nn::NormaliseAndKeep(first.norm(), kept.sums1, x, rows, kept.x);
    kept.sums1 = kept.sums1.OfNormalised();
    nn::PieceMoments moments;
    for (int64_t at = 0; at < 64 * size; at += size) {
      nn::PrefetchRows(kept.inner + at, channels);
      nn::PrefetchRows(kept.slope1 + at, channels);
      nn::ConvolveSquare(first.weights(), rows, at / size, z);
      nn::GeluSquare(z, first.bias(), channels, kept.inner + at, kept.slope1 + at, moments);
    }
    moments.Finish(second.norm(), kept.sums2);
    nn::NormalisePiece(second.norm(), kept.sums2, kept.inner, rows);
    for (int64_t at = 0; at < 64 * size; at += size) {
      nn::PrefetchRows(kept.slope2 + at, channels);
      nn::ConvolveSquare(second.weights(), rows, at / size, z);
      nn::AddGeluSquare(z, second.bias(), channels, x + at, y + at, kept.slope2 + at);
    }
  }

  // dx may be dy. `before`: of the block before this one, whose turn is next.
  static void BackwardBlock(const MixedLayer* layers, const KeptBlock& kept,
                            const KeptBlock& before, const float* dy, float* dx, MixedShare* shares,
                            const MixedRoom& room) {
    const MixedLayer& first = layers[0];
    const MixedLayer& second = layers[1];
    nn::SlopeBackward(dy, kept.slope2, second.norm().channels,
                      {room.rows(), room.pairs(), shares[1].bias});
    const nn::NormBackwardSums totals2 =
        second.Backward(kept.sums2, kept.inner, shares[1], room, {kept.slope1, kept.x});
    nn::NormSlopeBackward(second.norm(), kept.sums2, totals2, room.gradients(), kept.inner,
                          kept.slope1, {room.rows(), room.pairs(), shares[0].bias});
    const nn::NormBackwardSums totals1 =
        first.Backward(kept.sums1, kept.x, shares[0], room, {before.slope2, before.inner});
    nn::NormBackward(first.norm(), kept.sums1, totals1, room.gradients(), kept.x, dy, dx);
  }

  static variable_list Results(const Tensor& dx, const std::vector<LayerTensors>& tensors,
                               const std::vector<MixedGradients>& sums) {
    std::vector<LayerTensors> totals(sums.size());
    learn::ForEachTask(static_cast<int64_t>(sums.size()), [&](int64_t task) {
      const auto i = static_cast<size_t>(task);
      totals[i] = sums[i].Total(tensors[i]);
    });
    variable_list results = {dx};
    for (const LayerTensors& total : totals) Append(total, results);
    results.emplace_back();  // epsilon
    return results;
  }
};

struct BoardsFunction : torch::autograd::Function<BoardsFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, int64_t boards,
                        int64_t channels) {
    const Tensor x = x_in.contiguous();
    Tensor y = torch::empty({boards, 64, PaddedBoard(channels)});
    ctx->saved_data["channels"] = x.size(3);
    learn::ForEachTask(x.size(0), [&](int64_t piece) {
      Copy(x, piece, y, [](float* of_piece, float* of_board, size_t bytes) {
        std::memcpy(of_board, of_piece, bytes);
      });
    });
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor dy = gradients[0].contiguous();
    const Tensor dx =
        torch::zeros({PiecesOf(dy.size(0)), 64, kPieceBoards, ctx->saved_data["channels"].toInt()});
    learn::ForEachTask(dx.size(0), [&](int64_t piece) {
      Copy(dx, piece, dy, [](float* of_piece, float* of_board, size_t bytes) {
        std::memcpy(of_piece, of_board, bytes);
      });
    });
    return {dx, Tensor(), Tensor()};
  }

 private:
  // Calls copy for each square of the boards of a piece.
  template <typename CopyRow>
  static void Copy(const Tensor& pieces, int64_t piece, const Tensor& boards, const CopyRow& copy) {
    const int64_t row = std::min(pieces.size(3), boards.size(2));
    const int64_t first = piece * kPieceBoards;
    const int64_t count = std::min(kPieceBoards, boards.size(0) - first);
    for (int64_t board = 0; board < count; ++board) {
      for (int64_t square = 0; square < 64; ++square) {
        copy(PieceAt<float>(pieces, piece) + (square * kPieceBoards + board) * pieces.size(3),
             PieceAt<float>(boards, first + board) + square * boards.size(2),
             static_cast<size_t>(row) * sizeof(float));
      }
    }
  }
};

}  // namespace

Tensor MixedInput(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return InputFunction::apply(x, weight, bias);
}

Tensor MixedBlocks(const Tensor& x, const std::vector<LayerTensors>& layers) {
  if (layers.empty()) return x;
  variable_list parameters;
  for (const LayerTensors& layer : layers) {
    CHECK(layer.epsilon == layers[0].epsilon);
    CHECK(x.size(3) == nn::PaddedPiece(layer.weight.size(1)));
    Append(layer, parameters);
  }
  for (Tensor& parameter : parameters) parameter = EmptyForNone(parameter);
  return BlocksFunction::apply(x, at::TensorList(parameters), layers[0].epsilon);
}

Tensor BoardsOfPieces(const Tensor& x, int64_t boards, int64_t channels) {
  return BoardsFunction::apply(x, boards, channels);
}

}  // namespace kibitz::policy
