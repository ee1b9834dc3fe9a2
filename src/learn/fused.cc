#include "learn/fused.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "learn/parallel.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::kLanes;
using nn::Lanes;
using nn::Load;
using nn::Sigmoid;
using nn::Store;
using nn::Sum;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of one piece of work, for sums over rows: the same with any number of threads.
constexpr int64_t kRowsOfSums = 256;
// Numbers of one piece of elementwise work.
constexpr int64_t kNumbers = 1 << 15;

Tensor Plain(const Tensor& tensor) {
  CHECK(tensor.device().is_cpu() && tensor.scalar_type() == torch::kFloat32);
  return tensor.contiguous();
}

// Sum of a[i] * b[i].
float Dot(const float* a, const float* b, int64_t size) {
  Lanes sum{};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) sum += Load(a + i) * Load(b + i);
  float rest = 0;
  for (; i < size; ++i) rest += a[i] * b[i];
  return Sum(sum) + rest;
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& scale_in,
                        double epsilon) {
    const Tensor x = Plain(x_in);
    const Tensor scale = Plain(scale_in);
    const int64_t width = x.size(1);
    auto y = torch::empty_like(x);                         // (R, D)
    auto factor = torch::empty({x.size(0)}, x.options());  // (R) 1 / root mean square.
    const auto* from = x.data_ptr<float>();
    const auto* scales = scale.data_ptr<float>();
    auto* to = y.data_ptr<float>();
    auto* factors = factor.data_ptr<float>();
    ForEachPiece(x.size(0), kRowsOfSums, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* in = from + row * width;
        const float mean = Dot(in, in, width) / static_cast<float>(width);
        factors[row] = 1 / std::sqrt(mean + static_cast<float>(epsilon));
        for (int64_t i = 0; i < width; ++i) to[row * width + i] = in[i] * factors[row] * scales[i];
      }
    });
    ctx->save_for_backward({x, scale, factor});
    return y;
  }

  // With g = dy * scale and r = factor: dx = r g - x r^3 mean(g x); dscale = sum of dy x r.
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor dy = Plain(gradients[0]);
    const int64_t rows = x.size(0);
    const int64_t width = x.size(1);
    const int64_t pieces = (rows + kRowsOfSums - 1) / kRowsOfSums;
    auto dx = torch::empty_like(x);                             // (R, D)
    auto partial = torch::zeros({pieces, width}, x.options());  // One sum for each piece.
    const auto* scales = saved[1].data_ptr<float>();
    const auto* factors = saved[2].data_ptr<float>();
    ForEachPiece(rows, kRowsOfSums, [&](int64_t begin, int64_t end) {
      float* sums = partial.data_ptr<float>() + begin / kRowsOfSums * width;
      std::vector<float> scaled(static_cast<size_t>(width));
      for (int64_t row = begin; row < end; ++row) {
        const float* in = x.data_ptr<float>() + row * width;
        const float* dout = dy.data_ptr<float>() + row * width;
        float* din = dx.data_ptr<float>() + row * width;
        const float factor = factors[row];
        for (int64_t i = 0; i < width; ++i) {
          sums[i] += dout[i] * in[i] * factor;
          scaled[static_cast<size_t>(i)] = dout[i] * scales[i];
        }
        const float along =
            Dot(scaled.data(), in, width) / static_cast<float>(width) * factor * factor * factor;
        for (int64_t i = 0; i < width; ++i) {
          din[i] = scaled[static_cast<size_t>(i)] * factor - in[i] * along;
        }
      }
    });
    return {dx, partial.sum(0), Tensor()};
  }
};

struct SwiGluFunction : torch::autograd::Function<SwiGluFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate_in, const Tensor& up_in) {
    const Tensor gate = Plain(gate_in);
    const Tensor up = Plain(up_in);
    auto y = torch::empty_like(gate);  // (R, F)
    const auto* a = gate.data_ptr<float>();
    const auto* b = up.data_ptr<float>();
    auto* out = y.data_ptr<float>();
    ForEachPiece(gate.numel(), kNumbers, [&](int64_t begin, int64_t end) {
      int64_t i = begin;
      for (; i + kLanes <= end; i += kLanes) {
        Store(out + i, Load(a + i) * Sigmoid(Load(a + i)) * Load(b + i));
      }
      for (; i < end; ++i) out[i] = a[i] / (1 + std::exp(-a[i])) * b[i];
    });
    ctx->save_for_backward({gate, up});
    return y;
  }

  // With s = sigmoid(a): d silu(a) = s (1 + a (1 - s)).
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor dy = Plain(gradients[0]);
    auto dgate = torch::empty_like(dy);  // (R, F)
    auto dup = torch::empty_like(dy);    // (R, F)
    const auto* a = saved[0].data_ptr<float>();
    const auto* b = saved[1].data_ptr<float>();
    const auto* dout = dy.data_ptr<float>();
    auto* da = dgate.data_ptr<float>();
    auto* db = dup.data_ptr<float>();
    ForEachPiece(dy.numel(), kNumbers, [&](int64_t begin, int64_t end) {
      int64_t i = begin;
      for (; i + kLanes <= end; i += kLanes) {
        const Lanes x = Load(a + i);
        const Lanes s = Sigmoid(x);
        Store(da + i, Load(dout + i) * Load(b + i) * s * (1.0F + x * (1.0F - s)));
        Store(db + i, Load(dout + i) * x * s);
      }
      for (; i < end; ++i) {
        const float s = 1 / (1 + std::exp(-a[i]));
        da[i] = dout[i] * b[i] * s * (1 + a[i] * (1 - s));
        db[i] = dout[i] * a[i] * s;
      }
    });
    return {dgate, dup};
  }
};

// Matrix products to compute, in pieces that threads take in any order.
class Products {
 public:
  using Factors = std::vector<std::pair<Tensor, Tensor>>;

  // out = the sum of the products, or out plus it.
  void Add(const Tensor& out, const Factors& factors, bool onto = false) {
    const int64_t rows = out.size(0);
    const int64_t piece = PieceRows(rows);
    for (int64_t begin = 0; begin < rows; begin += piece) {
      pieces_.push_back({out, factors, onto, begin, std::min(piece, rows - begin)});
    }
  }
  void Compute() const {
    ForEachTask(static_cast<int64_t>(pieces_.size()), [this](int64_t index) {
      const Piece& piece = pieces_[static_cast<size_t>(index)];
      auto out = piece.out.narrow(0, piece.begin, piece.rows);
      bool onto = piece.onto;
      for (const auto& [a, b] : piece.factors) {
        const auto part = a.narrow(0, piece.begin, piece.rows);
        onto ? out.addmm_(part, b) : at::mm_out(out, part, b);
        onto = true;
      }
    });
  }

 private:
  struct Piece {
    Tensor out;
    Factors factors;
    bool onto;
    int64_t begin;
    int64_t rows;
  };

  // An even number of pieces, of 384 rows and more where there are so many: for each piece the
  // library copies all of the right factor in an order of its own. Whatever the number of threads:
  // where rows are cut decides in which order the library sums.
  static int64_t PieceRows(int64_t rows) {
    const int64_t pieces = 2 * std::max<int64_t>(1, rows / 768);
    return std::max<int64_t>(16, ((rows + pieces - 1) / pieces + 15) / 16 * 16);
  }

  std::vector<Piece> pieces_;
};

Tensor Empty(int64_t rows, int64_t columns, const Tensor& like) {
  return torch::empty({rows, columns}, like.options());
}

struct ProjectFunction : torch::autograd::Function<ProjectFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x_in, at::TensorList weights) {
    const Tensor x = Plain(x_in);
    variable_list outputs;
    Products products;
    for (const Tensor& weight : weights) {
      outputs.push_back(Empty(x.size(0), weight.size(0), x));  // (R, N)
      products.Add(outputs.back(), {{x, weight.t()}});
    }
    products.Compute();
    variable_list saved = weights.vec();
    saved.push_back(x);
    ctx->save_for_backward(std::move(saved));
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved.back();
    variable_list results = {torch::empty_like(x)};  // (R, D)
    Products::Factors to_x;
    Products products;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const Tensor dy = Plain(gradients[i]);               // (R, N)
      results.push_back(Empty(dy.size(1), x.size(1), x));  // (N, D)
      products.Add(results.back(), {{dy.t(), x}});
      to_x.emplace_back(dy, saved[i]);
    }
    products.Add(results[0], to_x);
    products.Compute();
    return results;
  }
};

struct AddProjectedFunction : torch::autograd::Function<AddProjectedFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& onto, const Tensor& x_in,
                        const Tensor& weight) {
    const Tensor x = Plain(x_in);
    auto out = onto.clone(at::MemoryFormat::Contiguous);  // (R, N)
    Products products;
    products.Add(out, {{x, weight.t()}}, /*onto=*/true);
    products.Compute();
    ctx->save_for_backward({x, weight});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor dy = Plain(gradients[0]);       // (R, N)
    auto dx = torch::empty_like(saved[0]);       // (R, D)
    auto dweight = torch::empty_like(saved[1]);  // (N, D)
    Products products;
    products.Add(dx, {{dy, saved[1]}});
    products.Add(dweight, {{dy.t(), saved[0]}});
    products.Compute();
    return {dy, dx, dweight};
  }
};

}  // namespace

Tensor FusedRmsNorm(const Tensor& x, const Tensor& scale, double epsilon) {
  return RmsNormFunction::apply(x, scale, epsilon);
}

Tensor FusedSwiGlu(const Tensor& gate, const Tensor& up) { return SwiGluFunction::apply(gate, up); }

std::vector<Tensor> Project(const Tensor& x, const std::vector<Tensor>& weights) {
  return ProjectFunction::apply(x, at::TensorList(weights));
}

Tensor AddProjected(const Tensor& onto, const Tensor& x, const Tensor& weight) {
  return AddProjectedFunction::apply(onto, x, weight);
}

}  // namespace kibitz::learn
