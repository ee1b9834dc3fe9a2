#include "students/policy/net/mixed_block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
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
    ForEachShareOfPieces(pieces, [&](int64_t index, int64_t piece) {
      const MixedShare share = sums.Share(index);
      const MixedRoom room(inputs, outputs);
      nn::SlopeBackward(PieceAt<float>(dy, piece), PieceAt<Bf16>(slopes, piece), outputs,
                        {room.rows(), room.pairs(), share.bias});
      nn::TransposePiece(PieceAt<Bf16>(rows, piece), inputs, room.columns());
      nn::AddWeightGradients({room.columns(), room.pairs(), inputs, outputs}, share.taps);
    });
    const LayerTensors total = sums.Total(tensors);
    return {Tensor(), total.weight, total.bias};
  }
};

// Functions of torch take no undefined tensors: an empty one stands for a bias that is not there.
Tensor EmptyForNone(const Tensor& tensor) { return tensor.defined() ? tensor : torch::empty({0}); }

// The tensors of one of a block's layers in the list of both.
LayerTensors LayerOf(at::ArrayRef<Tensor> parameters, size_t layer, double epsilon) {
  const Tensor& norm_bias = parameters[4 * layer + 1];
  return {.norm_weight = parameters[4 * layer],
          .norm_bias = norm_bias.numel() == 0 ? Tensor() : norm_bias,
          .weight = parameters[4 * layer + 2],
          .bias = parameters[4 * layer + 3],
          .epsilon = epsilon};
}
void Append(const LayerTensors& layer, variable_list& list) {
  list.insert(list.end(), {layer.norm_weight, layer.norm_bias, layer.weight, layer.bias});
}

struct BlockFunction : torch::autograd::Function<BlockFunction> {
  // What backward needs of forward; then the parameters. Slopes are those of gelu.
  enum Saved : size_t { kX, kInner, kSlope1, kSlope2, kSums1, kSums2, kParameters };

  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, at::TensorList parameters,
                        double epsilon) {
    const Tensor x = x_in.contiguous();
    const Layers layers(parameters, epsilon, nn::ConvPass::kForward);
    const int64_t pieces = x.size(0);
    const Tensor y = torch::empty_like(x);
    const Tensor inner = EmptyPieces(pieces, x.size(3), torch::kBFloat16);
    variable_list saved = {x,
                           inner,
                           torch::empty_like(inner),
                           torch::empty_like(inner),
                           EmptyPieceSums(pieces),
                           EmptyPieceSums(pieces)};
    learn::ForEachTask(pieces, [&](int64_t piece) { ForwardPiece(layers, saved, piece, y); });
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["epsilon"] = epsilon;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const auto parameters = at::ArrayRef<Tensor>(saved).slice(kParameters);
    const double epsilon = ctx->saved_data["epsilon"].toDouble();
    const Layers layers(parameters, epsilon, nn::ConvPass::kBackward);
    const Tensor dy = gradients[0].contiguous();
    const int64_t pieces = dy.size(0);
    const LayerTensors first = LayerOf(parameters, 0, epsilon);
    const LayerTensors second = LayerOf(parameters, 1, epsilon);
    const MixedGradients first_sums(first, PieceSharesOf(pieces));
    const MixedGradients second_sums(second, PieceSharesOf(pieces));
    const Tensor dx = torch::empty_like(dy);
    ForEachShareOfPieces(pieces, [&](int64_t share, int64_t piece) {
      BackwardPiece(layers, saved, piece,
                    {dy, dx, first_sums.Share(share), second_sums.Share(share)});
    });
    variable_list results = {dx};
    Append(first_sums.Total(first), results);
    Append(second_sums.Total(second), results);
    results.emplace_back();  // epsilon
    return results;
  }

 private:
  struct Layers {
    Layers(at::ArrayRef<Tensor> parameters, double epsilon, nn::ConvPass pass)
        : first(LayerOf(parameters, 0, epsilon), pass),
          second(LayerOf(parameters, 1, epsilon), pass) {}

    MixedLayer first;
    MixedLayer second;
  };
  struct Gradients {
    const Tensor& dy;
    const Tensor& dx;
    MixedShare first;
    MixedShare second;
  };

  static void ForwardPiece(const Layers& layers, const variable_list& saved, int64_t piece,
                           const Tensor& y) {
    const nn::AmxTiles tiles;
    const auto& [first, second] = layers;
    const float* x = PieceAt<float>(saved[kX], piece);
    Bf16* inner = PieceAt<Bf16>(saved[kInner], piece);
    const int64_t channels = saved[kX].size(3);
    const Tensor rows_tensor = EmptyPieces(1, channels, torch::kBFloat16);
    const Tensor z_tensor = torch::empty({kPieceBoards, channels});
    Bf16* rows = PieceAt<Bf16>(rows_tensor, 0);
    float* z = z_tensor.data_ptr<float>();
    nn::PieceSums& sums1 = PieceSumsAt(saved[kSums1], piece);
    nn::PieceSums& sums2 = PieceSumsAt(saved[kSums2], piece);
    nn::SumPiece(first.norm(), x, sums1);
    nn::NormalisePiece(first.norm(), sums1, x, rows);
    nn::PieceMoments moments;
    const int64_t size = kPieceBoards * channels;
    for (int64_t square = 0; square < 64; ++square) {
      nn::ConvolveSquare(first.weights(), rows, square, z);
      nn::GeluSquare(z, first.bias(), channels, inner + square * size,
                     PieceAt<Bf16>(saved[kSlope1], piece) + square * size, moments);
    }
    moments.Finish(second.norm(), sums2);
    nn::NormalisePiece(second.norm(), sums2, inner, rows);
    for (int64_t square = 0; square < 64; ++square) {
      nn::ConvolveSquare(second.weights(), rows, square, z);
      nn::AddGeluSquare(z, second.bias(), channels, x + square * size,
                        PieceAt<float>(y, piece) + square * size,
                        PieceAt<Bf16>(saved[kSlope2], piece) + square * size);
    }
  }

  static void BackwardPiece(const Layers& layers, const variable_list& saved, int64_t piece,
                            const Gradients& gradients) {
    const auto& [first, second] = layers;
    const int64_t channels = saved[kX].size(3);
    const MixedRoom room(channels, channels);
    const float* x = PieceAt<float>(saved[kX], piece);
    const Bf16* inner = PieceAt<Bf16>(saved[kInner], piece);
    const float* dy = PieceAt<float>(gradients.dy, piece);
    const nn::PieceSums& sums1 = PieceSumsAt(saved[kSums1], piece);
    const nn::PieceSums& sums2 = PieceSumsAt(saved[kSums2], piece);
    const auto outputs = [&](const MixedShare& share) {
      return nn::OutputGradients{room.rows(), room.pairs(), share.bias};
    };
    nn::SlopeBackward(dy, PieceAt<Bf16>(saved[kSlope2], piece), channels,
                      outputs(gradients.second));
    nn::NormBackwardSums totals2;
    second.Backward(sums2, inner, gradients.second, room, totals2);
    nn::NormSlopeBackward(second.norm(), sums2, totals2, room.gradients(), inner,
                          PieceAt<Bf16>(saved[kSlope1], piece), outputs(gradients.first));
    nn::NormBackwardSums totals1;
    first.Backward(sums1, x, gradients.first, room, totals1);
    nn::NormBackward(first.norm(), sums1, totals1, room.gradients(), x, dy,
                     PieceAt<float>(gradients.dx, piece));
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

Tensor MixedBlock(const Tensor& x, const LayerTensors& first, const LayerTensors& second) {
  CHECK(first.epsilon == second.epsilon && x.size(3) == nn::PaddedPiece(first.weight.size(1)));
  variable_list parameters;
  Append(first, parameters);
  Append(second, parameters);
  for (Tensor& parameter : parameters) parameter = EmptyForNone(parameter);
  return BlockFunction::apply(x, at::TensorList(parameters), first.epsilon);
}

Tensor BoardsOfPieces(const Tensor& x, int64_t boards, int64_t channels) {
  return BoardsFunction::apply(x, boards, channels);
}

}  // namespace kibitz::policy
