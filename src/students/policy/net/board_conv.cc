#include "students/policy/net/board_conv.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "learn/parallel.h"
#include "students/policy/net/board_shares.h"

namespace kibitz::policy {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls visit(row, neighbour or -1, tap) for all squares of a board and taps of the window.
template <typename Visit>
void ForEachTap(int64_t k, const Visit& visit) {
  const int64_t reach = k / 2;
  for (int64_t row = 0; row < 64; ++row) {
    for (int64_t tap = 0; tap < k * k; ++tap) {
      const int64_t rank = row / 8 + tap / k - reach;
      const int64_t file = row % 8 + tap % k - reach;
      const bool inside = rank >= 0 && rank < 8 && file >= 0 && file < 8;
      visit(row, inside ? rank * 8 + file : -1, tap);
    }
  }
}

// im2col: the window around each square, (boards * 64, K * K * I) from (boards, 64, I).
void Im2Col(const float* x, int64_t boards, int64_t channels, int64_t k, float* columns) {
  const int64_t width = k * k * channels;
  const auto bytes = static_cast<size_t>(channels) * sizeof(float);
  for (int64_t board = 0; board < boards; ++board, x += 64 * channels, columns += 64 * width) {
    ForEachTap(k, [&](int64_t row, int64_t neighbour, int64_t tap) {
      float* to = columns + row * width + tap * channels;
      if (neighbour < 0) {
        std::memset(to, 0, bytes);
      } else {
        std::memcpy(to, x + neighbour * channels, bytes);
      }
    });
  }
}

// The same of some boards of a batch.
Tensor ColumnsOf(const Tensor& x, int64_t begin, int64_t boards, int64_t k) {
  const int64_t channels = x.size(2);
  Tensor columns = torch::empty({boards * 64, k * k * channels}, x.options());
  Im2Col(x.data_ptr<float>() + begin * 64 * channels, boards, channels, k,
         columns.data_ptr<float>());
  return columns;
}

// Adds the sum of all rows. torch's own sum depends on the number of threads.
void AddRows(const Tensor& rows, float* sum) {
  const float* row = rows.data_ptr<float>();
  const int64_t width = rows.size(1);
  for (int64_t i = 0; i < rows.size(0); ++i, row += width) {
    for (int64_t c = 0; c < width; ++c) sum[c] += row[c];
  }
}

// (O, I, K, K) as (K * K * I, O).
Tensor ByTap(const Tensor& weight) {
  return weight.permute({2, 3, 1, 0}).reshape({-1, weight.size(0)}).contiguous();
}

// The convolution of backward: the kernel rotated by 180 degrees, inputs and outputs exchanged.
Tensor RotatedAndTransposed(const Tensor& weight) { return weight.flip({2, 3}).transpose(0, 1); }

Tensor Rows(const Tensor& x, int64_t begin, int64_t end) {
  return x.narrow(0, begin, end - begin).view({-1, x.size(2)});
}

struct BoardConvFunction : torch::autograd::Function<BoardConvFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& weight,
                        const Tensor& bias) {
    const Tensor x = x_in.contiguous();
    const int64_t k = weight.size(3);
    const Tensor taps = ByTap(weight);
    Tensor y = torch::empty({x.size(0), 64, weight.size(0)}, x.options());
    learn::ForEachPiece(x.size(0), kBoardsOfPiece, [&](int64_t begin, int64_t end) {
      Tensor rows = Rows(y, begin, end);
      torch::addmm_out(rows, bias, ColumnsOf(x, begin, end - begin, k), taps);
    });
    ctx->save_for_backward({x, weight});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor& weight = saved[1];
    const Tensor dy = gradients[0].contiguous();  // (B, 64, O)
    const int64_t channels = x.size(2);
    const int64_t k = weight.size(3);
    const int64_t outputs = weight.size(0);
    Tensor dx = ctx->needs_input_grad(0) ? torch::empty_like(x) : Tensor();
    const Tensor backward_taps = ByTap(RotatedAndTransposed(weight));  // (K * K * O, I)
    const Shares shares(x.size(0), outputs);
    Tensor sums = torch::zeros({shares.count(), k * k * channels, outputs}, x.options());
    Tensor bias_sums = torch::zeros({shares.count(), outputs}, x.options());
    learn::ForEachTask(shares.count(), [&](int64_t share) {
      Tensor sum = sums[share];
      const int64_t last = shares.FirstOf(share) + shares.SizeOf(share);
      for (int64_t begin = shares.FirstOf(share); begin < last; begin += kBoardsOfPiece) {
        const int64_t boards = std::min(kBoardsOfPiece, last - begin);
        const Tensor dy_rows = Rows(dy, begin, begin + boards);
        sum.addmm_(ColumnsOf(x, begin, boards, k).t(), dy_rows);
        AddRows(dy_rows, bias_sums.data_ptr<float>() + share * outputs);
        if (!dx.defined()) continue;
        Tensor to = Rows(dx, begin, begin + boards);
        torch::mm_out(to, ColumnsOf(dy, begin, boards, k), backward_taps);
      }
    });
    const Tensor dtaps = SumOfShares(sums).view({k, k, channels, outputs});
    return {dx, dtaps.permute({3, 2, 0, 1}).contiguous(), SumOfShares(bias_sums)};
  }
};

}  // namespace

Tensor BoardConv(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return BoardConvFunction::apply(x, weight, bias);
}

}  // namespace kibitz::policy
