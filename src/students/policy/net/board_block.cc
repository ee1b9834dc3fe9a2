#include "students/policy/net/board_block.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "learn/parallel.h"
#include "learn/runtime.h"
#include "students/policy/net/board_shares.h"

namespace kibitz::policy {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

float* At(const Tensor& boards, int64_t board) {
  return boards.data_ptr<float>() + board * boards.stride(0);
}
// sums: (B, 2)
nn::NormSums* SumsAt(const Tensor& sums, int64_t board) {
  static_assert(sizeof(nn::NormSums) == 2 * sizeof(float));
  return reinterpret_cast<nn::NormSums*>(sums.data_ptr<float>()) + board;
}

struct InputFunction : torch::autograd::Function<InputFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& weight,
                        const Tensor& bias) {
    const learn::OneThreadPerProduct one_thread;
    const Tensor x = PadBoards(x_in);  // (B, 64, Ip)
    const int64_t boards = x.size(0);
    const int64_t row = PaddedBoard(weight.size(0));
    const BoardLayer layer({.weight = weight, .bias = bias});
    Tensor y = torch::empty({boards, 64, row}, x.options());
    Tensor slope = torch::empty_like(y);
    Tensor sums = torch::zeros({boards, 2}, x.options());
    learn::ForEachPiece(boards, kBoardsOfPiece, [&](int64_t begin, int64_t end) {
      LayerRoom room(0, weight.size(1), weight.size(0));
      layer.Forward(end - begin, At(x, begin),
                    {.sums = SumsAt(sums, begin), .y = At(y, begin), .slope = At(slope, begin)},
                    room);
    });
    ctx->save_for_backward({x, slope, sums, weight, bias});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const learn::OneThreadPerProduct one_thread;
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    const LayerTensors tensors = {.weight = saved[3], .bias = saved[4]};
    const Tensor dy = gradients[0].contiguous();
    const int64_t boards = x.size(0);
    const BoardLayer layer(tensors);
    const Shares shares(boards, tensors.weight.size(0));
    LayerGradients sums(tensors, shares.count());
    learn::ForEachTask(shares.count(), [&](int64_t index) {
      LayerRoom room(shares.size(), tensors.weight.size(1), tensors.weight.size(0));
      LayerShare share = sums.Share(index);
      const int64_t begin = shares.FirstOf(index);
      layer.Backward(shares.SizeOf(index),
                     {.x = At(x, begin),
                      .sums = SumsAt(saved[2], begin),
                      .slope = At(saved[1], begin),
                      .dy = At(dy, begin)},
                     nullptr, share, room);
    });
    const LayerTensors total = sums.Total(tensors);
    return {Tensor(), total.weight, total.bias};
  }
};

// Functions of torch take no undefined tensors: an empty one stands for a bias that is not there.
Tensor EmptyForNone(const Tensor& tensor) { return tensor.defined() ? tensor : torch::empty({0}); }
Tensor NoneForEmpty(const Tensor& tensor) { return tensor.numel() == 0 ? Tensor() : tensor; }

// The tensors of one of a block's layers in the list of both.
LayerTensors LayerOf(at::ArrayRef<Tensor> parameters, size_t layer, double epsilon) {
  return {.norm_weight = parameters[4 * layer],
          .norm_bias = NoneForEmpty(parameters[4 * layer + 1]),
          .weight = parameters[4 * layer + 2],
          .bias = parameters[4 * layer + 3],
          .epsilon = epsilon};
}
void Append(const LayerTensors& layer, variable_list& list) {
  list.insert(list.end(), {layer.norm_weight, layer.norm_bias, layer.weight, layer.bias});
}

struct BlockFunction : torch::autograd::Function<BlockFunction> {
  // What backward needs of forward; then the parameters.
  enum Saved : size_t { kX, kInner, kSlope1, kSlope2, kSums1, kSums2, kParameters };

  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, at::TensorList parameters,
                        double epsilon) {
    const learn::OneThreadPerProduct one_thread;
    const Tensor x = x_in.contiguous();
    const BoardLayer first(LayerOf(parameters, 0, epsilon));
    const BoardLayer second(LayerOf(parameters, 1, epsilon));
    const int64_t boards = x.size(0);
    const int64_t channels = parameters[2].size(0);
    const Tensor inner = torch::empty_like(x);
    const Tensor slope1 = torch::empty_like(x);
    const Tensor slope2 = torch::empty_like(x);
    const Tensor y = torch::empty_like(x);
    const Tensor sums1 = torch::empty({boards, 2}, x.options());
    const Tensor sums2 = torch::empty({boards, 2}, x.options());
    learn::ForEachPiece(boards, kBoardsOfPiece, [&](int64_t begin, int64_t end) {
      const int64_t count = end - begin;
      LayerRoom room(0, channels, channels);
      first.Forward(
          count, At(x, begin),
          {.sums = SumsAt(sums1, begin), .y = At(inner, begin), .slope = At(slope1, begin)}, room);
      second.Forward(count, At(inner, begin),
                     {.sums = SumsAt(sums2, begin),
                      .onto = At(x, begin),
                      .y = At(y, begin),
                      .slope = At(slope2, begin)},
                     room);
    });
    variable_list saved = {x, inner, slope1, slope2, sums1, sums2};
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["epsilon"] = epsilon;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const learn::OneThreadPerProduct one_thread;
    const variable_list saved = ctx->get_saved_variables();
    const auto parameters = at::ArrayRef<Tensor>(saved).slice(kParameters);
    const double epsilon = ctx->saved_data["epsilon"].toDouble();
    const LayerTensors first = LayerOf(parameters, 0, epsilon);
    const LayerTensors second = LayerOf(parameters, 1, epsilon);
    const Shares shares(saved[kX].size(0), first.weight.size(0));
    LayerGradients first_sums(first, shares.count());
    LayerGradients second_sums(second, shares.count());
    variable_list results = {BlockBackward(saved, gradients[0].contiguous(), shares,
                                           {first, first_sums}, {second, second_sums})};
    Append(first_sums.Total(first), results);
    Append(second_sums.Total(second), results);
    results.emplace_back();  // epsilon
    return results;
  }

 private:
  struct Half {
    const LayerTensors& tensors;
    LayerGradients& sums;
  };

  static Tensor BlockBackward(const variable_list& saved, const Tensor& dy, const Shares& shares,
                              const Half& first_half, const Half& second_half) {
    const Tensor& x = saved[kX];
    const int64_t size = x.stride(0);
    const int64_t channels = first_half.tensors.weight.size(0);
    BoardLayer first(first_half.tensors);
    BoardLayer second(second_half.tensors);
    first.PrepareBackward();
    second.PrepareBackward();
    const Tensor dx = torch::empty_like(x);
    learn::ForEachTask(shares.count(), [&](int64_t index) {
      LayerRoom room(shares.size(), channels, channels);
      LayerShare first_share = first_half.sums.Share(index);
      LayerShare second_share = second_half.sums.Share(index);
      const int64_t begin = shares.FirstOf(index);
      const int64_t count = shares.SizeOf(index);
      const Tensor dinner = torch::empty({count, size}, x.options());
      second.Backward(count,
                      {.x = At(saved[kInner], begin),
                       .sums = SumsAt(saved[kSums2], begin),
                       .slope = At(saved[kSlope2], begin),
                       .dy = At(dy, begin)},
                      At(dinner, 0), second_share, room);
      first.Backward(count,
                     {.x = At(x, begin),
                      .sums = SumsAt(saved[kSums1], begin),
                      .slope = At(saved[kSlope1], begin),
                      .dy = At(dinner, 0),
                      .onto = At(dy, begin)},
                     At(dx, begin), first_share, room);
    });
    return dx;
  }
};

// The norm of rows. What it points to must live as long.
nn::NormRows NormOf(const Tensor& weight, const Tensor& bias, int64_t count, double epsilon) {
  return {.weight = weight.data_ptr<float>(),
          .bias = bias.defined() ? bias.data_ptr<float>() : nullptr,
          .size = weight.numel(),
          .count = count,
          .epsilon = static_cast<float>(epsilon)};
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& weight_in,
                        const Tensor& bias_in, double epsilon) {
    const Tensor x = x_in.contiguous();
    const Tensor weight = weight_in.contiguous();
    const Tensor bias = NoneForEmpty(bias_in.contiguous());
    const nn::NormRows norm = NormOf(weight, bias, weight.numel(), epsilon);
    const Tensor y = torch::empty_like(x);
    const Tensor sums = torch::empty({x.size(0), 2}, x.options());
    learn::ForEachPiece(x.size(0), kBoardsOfPiece, [&](int64_t begin, int64_t end) {
      for (int64_t board = begin; board < end; ++board) {
        *SumsAt(sums, board) = nn::SumsOf(norm, At(x, board));
        nn::Normalise(norm, *SumsAt(sums, board), At(x, board), At(y, board));
      }
    });
    ctx->save_for_backward({x, sums, weight, bias});
    ctx->saved_data["epsilon"] = epsilon;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor dy = gradients[0].contiguous();
    const nn::NormRows norm =
        NormOf(saved[2], saved[3], saved[2].numel(), ctx->saved_data["epsilon"].toDouble());
    const Tensor dx = torch::empty_like(x);
    const Shares shares(x.size(0), norm.size / 64);
    const Tensor weights = torch::zeros({shares.count(), norm.size}, x.options());
    const Tensor biases = torch::zeros_like(weights);
    learn::ForEachTask(shares.count(), [&](int64_t share) {
      for (int64_t i = 0; i < shares.SizeOf(share); ++i) {
        const int64_t board = shares.FirstOf(share) + i;
        nn::NormaliseBackward(norm, *SumsAt(saved[1], board),
                              {.x = At(x, board),
                               .dy = At(dy, board),
                               .dx = At(dx, board),
                               .dweight = At(weights, share),
                               .dbias = At(biases, share)});
      }
    });
    return {dx, SumOfShares(weights), saved[3].defined() ? SumOfShares(biases) : Tensor(),
            Tensor()};
  }
};

// A board's numbers from square by square, (64, row), to channel by channel, (channels, 64) ...
void ToChannelOrder(const float* from, int64_t row, int64_t channels, float* to) {
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t square = 0; square < 64; ++square) {
      to[channel * 64 + square] = from[square * row + channel];
    }
  }
}
// ... and back.
void ToSquareOrder(const float* from, int64_t row, int64_t channels, float* to) {
  for (int64_t square = 0; square < 64; ++square) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      to[square * row + channel] = from[channel * 64 + square];
    }
  }
}

struct FlattenFunction : torch::autograd::Function<FlattenFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& norm_weight,
                        const Tensor& norm_bias, double epsilon) {
    const Tensor x = x_in.contiguous();
    const Tensor weight = BySquare(norm_weight);
    const Tensor bias = norm_bias.numel() == 0 ? Tensor() : BySquare(norm_bias);
    const int64_t boards = x.size(0);
    const int64_t numbers = norm_weight.numel();
    const nn::NormRows norm = NormOf(weight, bias, numbers, epsilon);
    const Tensor y = torch::empty({boards, numbers}, x.options());
    const Tensor sums = torch::empty({boards, 2}, x.options());
    learn::ForEachPiece(boards, kBoardsOfPiece, [&](int64_t begin, int64_t end) {
      std::vector<float> normed(static_cast<size_t>(norm.size));
      for (int64_t board = begin; board < end; ++board) {
        *SumsAt(sums, board) = nn::SumsOf(norm, At(x, board));
        nn::Normalise(norm, *SumsAt(sums, board), At(x, board), normed.data());
        ToChannelOrder(normed.data(), x.size(2), numbers / 64, At(y, board));
      }
    });
    ctx->save_for_backward({x, sums, weight, bias});
    ctx->saved_data["epsilon"] = epsilon;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor dy = gradients[0].contiguous();  // (B, C * 64)
    const int64_t channels = dy.size(1) / 64;
    const bool has_bias = saved[3].defined();
    const nn::NormRows norm =
        NormOf(saved[2], saved[3], dy.size(1), ctx->saved_data["epsilon"].toDouble());
    const Tensor dx = torch::empty_like(x);
    const Shares shares(x.size(0), norm.size / 64);
    const Tensor weights = torch::zeros({shares.count(), norm.size}, x.options());
    const Tensor biases = torch::zeros_like(weights);
    learn::ForEachTask(shares.count(), [&](int64_t share) {
      std::vector<float> by_square(static_cast<size_t>(norm.size));
      for (int64_t i = 0; i < shares.SizeOf(share); ++i) {
        const int64_t board = shares.FirstOf(share) + i;
        ToSquareOrder(At(dy, board), x.size(2), channels, by_square.data());
        nn::NormaliseBackward(norm, *SumsAt(saved[1], board),
                              {.x = At(x, board),
                               .dy = by_square.data(),
                               .dx = At(dx, board),
                               .dweight = At(weights, share),
                               .dbias = At(biases, share)});
      }
    });
    const auto total = [&](const Tensor& sums) {
      return ByChannel(SumOfShares(sums).view({64, -1}), channels).flatten();
    };
    return {dx, total(weights), has_bias ? total(biases) : Tensor(), Tensor()};
  }
};

}  // namespace

Tensor FusedInput(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return InputFunction::apply(x, weight, bias);
}

Tensor FusedBlock(const Tensor& x, const LayerTensors& first, const LayerTensors& second) {
  CHECK(first.epsilon == second.epsilon && x.size(2) == PaddedBoard(first.weight.size(1)));
  variable_list parameters;
  Append(first, parameters);
  Append(second, parameters);
  for (Tensor& parameter : parameters) parameter = EmptyForNone(parameter);
  return BlockFunction::apply(x, at::TensorList(parameters), first.epsilon);
}

Tensor FusedNorm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  CHECK(x.size(1) == weight.numel() && x.size(1) % (2 * nn::kLanes) == 0);
  return NormFunction::apply(x, weight, EmptyForNone(bias), epsilon);
}

Tensor FusedFlatten(const Tensor& x, const Tensor& norm_weight, const Tensor& norm_bias,
                    double epsilon) {
  return FlattenFunction::apply(x, norm_weight, EmptyForNone(norm_bias), epsilon);
}

}  // namespace kibitz::policy
