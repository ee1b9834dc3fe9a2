#include "learn/fused.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "learn/parallel.h"
#include "learn/precision.h"
#include "learn/products.h"
#include "learn/rms_rows.h"
#include "nn/kernels/aligned.h"
#include "nn/kernels/lanes.h"

namespace kibitz::learn {
namespace {

using nn::kLanes;
using nn::Lanes;
using nn::Load;
using nn::Sigmoid;
using nn::Store;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor Plain(const Tensor& tensor) {
  CHECK(tensor.device().is_cpu() && tensor.scalar_type() == torch::kFloat32);
  return tensor.contiguous();
}

Tensor Empty(int64_t rows, int64_t columns, const Tensor& like) {
  return torch::empty({rows, columns}, like.options());
}

float* Row(const Tensor& matrix, int64_t row) {
  return static_cast<float*>(matrix.unsafeGetTensorImpl()->data()) + row * matrix.size(1);
}

// Calls body(begin, end) for blocks of rows.
template <typename Body>
void ForEachBlock(int64_t rows, const Body& body) {
  ForEachPiece(rows, kBlockRows, body);
}

// Gradients of a norm's scale, one sum for each block of rows.
class ScaleSums {
 public:
  ScaleSums(int64_t rows, int64_t width)
      : sums_(torch::zeros({std::max<int64_t>(1, (rows + kBlockRows - 1) / kBlockRows), width})) {}
  float* Of(int64_t first_row) { return Row(sums_, first_row / kBlockRows); }
  Tensor Total() const {  // (D), added up in order.
    Tensor total = sums_[0].clone();
    for (int64_t i = 1; i < sums_.size(0); ++i) total += sums_[i];
    return total;
  }

 private:
  Tensor sums_;  // (blocks, D)
};

RmsScale NormOf(const Tensor& scale, double epsilon) {
  return {scale.data_ptr<float>(), scale.numel(), static_cast<float>(epsilon)};
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& scale_in,
                        double epsilon) {
    const Tensor x = Plain(x_in);
    const Tensor scale = Plain(scale_in);
    const RmsScale norm = NormOf(scale, epsilon);
    auto y = torch::empty_like(x);                         // (R, D)
    auto factor = torch::empty({x.size(0)}, x.options());  // (R) 1 / root mean square.
    auto* factors = factor.data_ptr<float>();
    ForEachBlock(x.size(0), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        factors[row] = NormRow(norm, Row(x, row), Row(y, row));
      }
    });
    ctx->save_for_backward({x, scale, factor});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor dy = Plain(gradients[0]);
    const RmsScale norm = NormOf(saved[1], 0);
    const auto* factors = saved[2].data_ptr<float>();
    auto dx = torch::empty_like(x);  // (R, D)
    ScaleSums sums(x.size(0), x.size(1));
    ForEachBlock(x.size(0), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        NormRowBackward(norm, {.x = Row(x, row),
                               .factor = factors[row],
                               .dy = Row(dy, row),
                               .dx = Row(dx, row),
                               .dscale = sums.Of(begin)});
      }
    });
    return {dx, sums.Total(), Tensor()};
  }
};

std::vector<PackedMatrix> PackAll(at::TensorList weights, Layout layout, Precision precision) {
  std::vector<RightFactor> factors;
  for (const Tensor& weight : weights) factors.push_back({weight, layout});
  return Pack(factors, precision);
}

// One output (R, N) for each weight (N, D).
variable_list OutputsOf(const Tensor& x, at::TensorList weights) {
  variable_list outputs;
  for (const Tensor& weight : weights) outputs.push_back(Empty(x.size(0), weight.size(0), x));
  return outputs;
}

// Runs all products without a pause between them.
void Compute(const std::vector<WholeProduct>& products) {
  std::vector<std::pair<size_t, int64_t>> tasks;
  for (size_t i = 0; i < products.size(); ++i) {
    for (int64_t task = 0; task < products[i].tasks(); ++task) tasks.emplace_back(i, task);
  }
  ForEachTask(static_cast<int64_t>(tasks.size()), [&](int64_t task) {
    const auto [product, piece] = tasks[static_cast<size_t>(task)];
    products[product].Run(piece);
  });
}

// The gradients of weights (N_i, D) from those of their outputs (R, N_i) and their common input.
class GradientSums {
 public:
  GradientSums(at::ArrayRef<Tensor> gradients, at::ArrayRef<Tensor> weights, Precision precision) {
    for (size_t i = 0; i < weights.size(); ++i) {
      factors_.emplace_back(gradients[i], SumFactor::Side::kA, precision);
      results_.push_back(torch::empty_like(weights[i]));  // (N, D)
    }
  }
  void Keep(int64_t begin, int64_t end) const {
    for (const SumFactor& factor : factors_) factor.Keep(begin, end);
  }
  const variable_list& Of(const SumFactor& inputs) const {
    RowSums sums;
    for (size_t i = 0; i < factors_.size(); ++i) sums.Add(results_[i], factors_[i], inputs);
    sums.Compute();
    return results_;
  }

 private:
  std::vector<SumFactor> factors_;
  variable_list results_;
};

struct ProjectFunction : torch::autograd::Function<ProjectFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x_in, at::TensorList weights) {
    const Tensor x = Plain(x_in);
    const Precision precision = KeepPrecision(ctx);
    variable_list outputs = OutputsOf(x, weights);
    if (x.size(0) > 0) {
      const auto packed = PackAll(weights, Layout::kTransposed, precision);
      std::vector<WholeProduct> products;
      for (size_t i = 0; i < outputs.size(); ++i) products.push_back({x, &packed[i], outputs[i]});
      Compute(products);
    }
    variable_list saved = weights.vec();
    saved.push_back(x);
    ctx->save_for_backward(std::move(saved));
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto weights = at::ArrayRef<Tensor>(saved).slice(0, saved.size() - 1);
    const Tensor& x = saved.back();
    const Precision precision = KeptPrecision(ctx);
    variable_list results = {torch::empty_like(x)};                 // (R, D)
    for (Tensor& gradient : gradients) gradient = Plain(gradient);  // (R, N) each.
    const GradientSums sums(gradients, weights, precision);
    const SumFactor inputs(x, SumFactor::Side::kB, precision);
    std::vector<PackedMatrix> packed;
    if (x.size(0) > 0) packed = PackAll(weights, Layout::kAsIs, precision);
    ForEachBlock(x.size(0), [&](int64_t begin, int64_t end) {
      for (size_t i = 0; i < weights.size(); ++i) {
        Multiply({Row(gradients[i], begin), gradients[i].size(1), end - begin}, packed[i],
                 {Row(results[0], begin), x.size(1), /*add=*/i > 0});
      }
      inputs.Keep(begin, end);
      sums.Keep(begin, end);
    });
    for (const Tensor& sum : sums.Of(inputs)) results.push_back(sum);
    return results;
  }
};

struct NormProjectFunction : torch::autograd::Function<NormProjectFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& scale_in,
                               at::TensorList weights, double epsilon) {
    const Tensor x = Plain(x_in);
    const Tensor scale = Plain(scale_in);
    const RmsScale norm = NormOf(scale, epsilon);
    auto factor = torch::empty({x.size(0)}, x.options());  // (R)
    auto* factors = factor.data_ptr<float>();
    const Precision precision = KeepPrecision(ctx);
    variable_list outputs = OutputsOf(x, weights);
    const auto packed = PackAll(weights, Layout::kTransposed, precision);
    ForEachBlock(x.size(0), [&](int64_t begin, int64_t end) {
      const Scratch normed(norm.width);
      for (int64_t row = begin; row < end; ++row) {
        factors[row] = NormRow(norm, Row(x, row), normed.Row(row - begin));
      }
      const LeftBlock left({normed.Row(0), norm.width, end - begin}, norm.width, precision);
      for (size_t i = 0; i < outputs.size(); ++i) {
        left.Multiply(packed[i], {Row(outputs[i], begin), outputs[i].size(1)});
      }
    });
    variable_list saved = {x, scale, factor};
    saved.insert(saved.end(), weights.begin(), weights.end());
    ctx->save_for_backward(std::move(saved));
    outputs.insert(outputs.begin(), x.detach());
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& x = saved[0];
    const RmsScale norm = NormOf(saved[1], 0);
    const auto* factors = saved[2].data_ptr<float>();
    const auto weights = at::ArrayRef<Tensor>(saved).slice(3);
    const Precision precision = KeptPrecision(ctx);
    const auto packed = PackAll(weights, Layout::kAsIs, precision);
    for (Tensor& gradient : gradients) gradient = Plain(gradient);
    auto dx = torch::empty_like(x);  // (R, D)
    const SumFactor normed(x.size(0), x.size(1), SumFactor::Side::kB, precision);
    const GradientSums sums(at::ArrayRef<Tensor>(gradients).slice(1), weights, precision);
    ScaleSums scale_sums(x.size(0), x.size(1));
    ForEachBlock(x.size(0), [&](int64_t begin, int64_t end) {
      const Scratch dnormed(norm.width);
      const SumBlock normed_block(normed, begin, end);
      for (size_t i = 0; i < weights.size(); ++i) {
        const Tensor& dy = gradients[i + 1];  // (R, N)
        Multiply({Row(dy, begin), dy.size(1), end - begin}, packed[i],
                 {dnormed.Row(0), norm.width, /*add=*/i > 0});
      }
      for (int64_t row = begin; row < end; ++row) {
        NormRowBackward(norm, {.x = Row(x, row),
                               .factor = factors[row],
                               .dy = dnormed.Row(row - begin),
                               .onto = Row(gradients[0], row),
                               .dx = Row(dx, row),
                               .dscale = scale_sums.Of(begin)});
        ScaleRow(norm, Row(x, row), factors[row], normed_block.Row(row - begin));
      }
      normed_block.Keep();
      sums.Keep(begin, end);
    });
    variable_list results = {dx, scale_sums.Total()};
    for (const Tensor& sum : sums.Of(normed)) results.push_back(sum);
    results.emplace_back();  // epsilon
    return results;
  }
};

struct AddProjectedFunction : torch::autograd::Function<AddProjectedFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& onto_in, const Tensor& x_in,
                        const Tensor& weight) {
    const Tensor onto = Plain(onto_in);
    const Tensor x = Plain(x_in);
    const Precision precision = KeepPrecision(ctx);
    const auto packed = Pack({{weight, Layout::kTransposed}}, precision);
    auto out = torch::empty_like(onto);  // (R, N)
    Compute({{x, packed.data(), out, onto}});
    ctx->save_for_backward({x, weight});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor dy = Plain(gradients[0]);       // (R, N)
    auto dx = torch::empty_like(saved[0]);       // (R, D)
    auto dweight = torch::empty_like(saved[1]);  // (N, D)
    const Precision precision = KeptPrecision(ctx);
    const auto packed = Pack({{saved[1], Layout::kAsIs}}, precision);
    const SumFactor a(dy, SumFactor::Side::kA, precision);
    const SumFactor b(saved[0], SumFactor::Side::kB, precision);
    ForEachBlock(dy.size(0), [&](int64_t begin, int64_t end) {
      Multiply({Row(dy, begin), dy.size(1), end - begin}, packed[0], {Row(dx, begin), dx.size(1)});
      a.Keep(begin, end);
      b.Keep(begin, end);
    });
    RowSums sums;
    sums.Add(dweight, a, b);
    sums.Compute();
    return {dy, dx, dweight};
  }
};

// hidden = silu(gate) * up.
void SwiGluRow(const float* gate, const float* up, int64_t size, float* hidden) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Store(hidden + i, Load(gate + i) * Sigmoid(Load(gate + i)) * Load(up + i));
  }
  for (; i < size; ++i) hidden[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

struct SwiGluRowBackward {
  const float* gate;
  const float* up;
  const float* dhidden;
  float* dgate;
  float* dup;
  float* hidden;  // As forward computed it.
};
// With s = sigmoid(a): d silu(a) = s (1 + a (1 - s)).
void BackwardOf(const SwiGluRowBackward& row, int64_t size) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Lanes a = Load(row.gate + i);
    const Lanes up = Load(row.up + i);
    const Lanes d = Load(row.dhidden + i);
    const Lanes s = Sigmoid(a);
    Store(row.dgate + i, d * up * s * (1.0F + a * (1.0F - s)));
    Store(row.dup + i, d * a * s);
    Store(row.hidden + i, a * s * up);
  }
  for (; i < size; ++i) {
    const float a = row.gate[i];
    const float s = 1 / (1 + std::exp(-a));
    row.dgate[i] = row.dhidden[i] * row.up[i] * s * (1 + a * (1 - s));
    row.dup[i] = row.dhidden[i] * a * s;
    row.hidden[i] = a * s * row.up[i];
  }
}

// What goes into the products of an MLP, packed.
struct MlpFactors {
  MlpFactors(at::TensorList weights, Layout layout, Precision precision)
      : precision(precision), packed(PackAll(weights, layout, precision)) {}

  // gate_out and up_out, (rows, F), of a block of normed rows, (rows, D).
  void Widen(const LeftRows& normed, float* gate_out, float* up_out) const {
    const LeftBlock left(normed, packed[0].depth(), precision);
    left.Multiply(packed[0], {gate_out, packed[0].columns()});
    left.Multiply(packed[1], {up_out, packed[1].columns()});
  }

  Precision precision;
  std::vector<PackedMatrix> packed;  // gate, up, and perhaps down.
};

struct MlpFunction : torch::autograd::Function<MlpFunction> {
  // What backward needs of forward.
  enum Saved : size_t { kX, kFactor, kScale, kGate, kUp, kDown, kGateOut, kUpOut };

  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, const Tensor& scale_in,
                        const Tensor& gate, const Tensor& up, const Tensor& down, double epsilon) {
    const Tensor x = Plain(x_in);
    const Tensor scale = Plain(scale_in);
    const RmsScale norm = NormOf(scale, epsilon);
    const int64_t hidden_width = gate.size(0);
    const Precision precision = KeepPrecision(ctx);
    auto factor = torch::empty({x.size(0)}, x.options());  // (R)
    auto y = torch::empty_like(x);                         // (R, D)
    variable_list saved = {x, factor, scale, gate, up, down};
    if (precision == Precision::kFloat32) {
      saved.push_back(Empty(x.size(0), hidden_width, x));  // (R, F)
      saved.push_back(Empty(x.size(0), hidden_width, x));  // (R, F)
    }
    const MlpFactors factors({gate, up, down}, Layout::kTransposed, precision);
    ForEachBlock(x.size(0), [&](int64_t begin, int64_t end) {
      const Scratch normed(norm.width);
      const Scratch hidden(hidden_width);
      const MlpOutputs outputs(saved, begin, hidden_width);
      for (int64_t row = begin; row < end; ++row) {
        factor.data_ptr<float>()[row] = NormRow(norm, Row(x, row), normed.Row(row - begin));
      }
      factors.Widen({normed.Row(0), norm.width, end - begin}, outputs.gate, outputs.up);
      SwiGluRow(outputs.gate, outputs.up, (end - begin) * hidden_width, hidden.Row(0));
      std::copy(Row(x, begin), Row(x, end), Row(y, begin));
      Multiply({hidden.Row(0), hidden_width, end - begin}, factors.packed[2],
               {Row(y, begin), norm.width, /*add=*/true});
    });
    ctx->save_for_backward(std::move(saved));
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor& x = saved[kX];
    const Tensor dy = Plain(gradients[0]);  // (R, D)
    auto dx = torch::empty_like(x);         // (R, D)
    const int64_t hidden_width = saved[kGate].size(0);
    const RmsScale norm = NormOf(saved[kScale], 0);
    const Precision precision = KeptPrecision(ctx);
    using Side = SumFactor::Side;
    const SumFactor normed(x.size(0), norm.width, Side::kB, precision);       // (R, D)
    const SumFactor hidden(x.size(0), hidden_width, Side::kB, precision);     // (R, F)
    const SumFactor dgate_out(x.size(0), hidden_width, Side::kA, precision);  // (R, F)
    const SumFactor dup_out(x.size(0), hidden_width, Side::kA, precision);    // (R, F)
    const SumFactor dy_sums(dy, Side::kA, precision);
    ScaleSums scale_sums(x.size(0), x.size(1));
    const auto packed = PackAll({saved[kGate], saved[kUp], saved[kDown]}, Layout::kAsIs, precision);
    const bool again = saved.size() <= kGateOut;
    std::optional<MlpFactors> factors;
    if (again) factors.emplace({saved[kGate], saved[kUp]}, Layout::kTransposed, precision);
    ForEachBlock(x.size(0), [&](int64_t begin, int64_t end) {
      const int64_t rows = end - begin;
      const Scratch dhidden(hidden_width);
      const Scratch dnormed(norm.width);
      const SumBlock block_normed(normed, begin, end);
      const SumBlock block_hidden(hidden, begin, end);
      const SumBlock dgate(dgate_out, begin, end);
      const SumBlock dup(dup_out, begin, end);
      const MlpOutputs outputs(saved, begin, hidden_width);
      const float* factor = saved[kFactor].data_ptr<float>() + begin;
      for (int64_t i = 0; i < rows; ++i) {
        ScaleRow(norm, Row(x, begin + i), factor[i], block_normed.Row(i));
      }
      if (again) factors->Widen({block_normed.data(), norm.width, rows}, outputs.gate, outputs.up);
      Multiply({Row(dy, begin), norm.width, rows}, packed[2], {dhidden.Row(0), hidden_width});
      BackwardOf({.gate = outputs.gate,
                  .up = outputs.up,
                  .dhidden = dhidden.Row(0),
                  .dgate = dgate.data(),
                  .dup = dup.data(),
                  .hidden = block_hidden.data()},
                 rows * hidden_width);
      Multiply({dgate.data(), hidden_width, rows}, packed[0], {dnormed.Row(0), norm.width});
      Multiply({dup.data(), hidden_width, rows}, packed[1],
               {dnormed.Row(0), norm.width, /*add=*/true});
      for (int64_t i = 0; i < rows; ++i) {
        NormRowBackward(norm, {.x = Row(x, begin + i),
                               .factor = factor[i],
                               .dy = dnormed.Row(i),
                               .onto = Row(dy, begin + i),
                               .dx = Row(dx, begin + i),
                               .dscale = scale_sums.Of(begin)});
      }
      for (const SumBlock* block : {&block_normed, &block_hidden, &dgate, &dup}) block->Keep();
      dy_sums.Keep(begin, end);
    });
    auto dgate = torch::empty_like(saved[kGate]);  // (F, D)
    auto dup = torch::empty_like(saved[kUp]);      // (F, D)
    auto ddown = torch::empty_like(saved[kDown]);  // (D, F)
    RowSums sums;
    sums.Add(dgate, dgate_out, normed);
    sums.Add(dup, dup_out, normed);
    sums.Add(ddown, dy_sums, hidden);
    sums.Compute();
    return {dx, scale_sums.Total(), dgate, dup, ddown, Tensor()};
  }

 private:
  // A block of gate_out and up_out: kept for backward in float32; else in memory of its own, since
  // in bfloat16 it takes longer to fetch them than to compute them again.
  struct MlpOutputs {
    MlpOutputs(const variable_list& saved, int64_t begin, int64_t width)
        : own(saved.size() > kGateOut ? 0 : 2 * width),
          gate(saved.size() > kGateOut ? Row(saved[kGateOut], begin) : own.Row(0)),
          up(saved.size() > kGateOut ? Row(saved[kUpOut], begin) : gate + kBlockRows * width) {}
    Scratch own;
    float* gate;
    float* up;
  };
};

}  // namespace

Tensor FusedRmsNorm(const Tensor& x, const Tensor& scale, double epsilon) {
  return RmsNormFunction::apply(x, scale, epsilon);
}

std::vector<Tensor> Project(const Tensor& x, const std::vector<Tensor>& weights) {
  return ProjectFunction::apply(x, at::TensorList(weights));
}

NormProjected NormProject(const Tensor& x, const Tensor& scale, const std::vector<Tensor>& weights,
                          double epsilon) {
  variable_list all = NormProjectFunction::apply(x, scale, at::TensorList(weights), epsilon);
  return {all[0], {all.begin() + 1, all.end()}};
}

Tensor AddProjected(const Tensor& onto, const Tensor& x, const Tensor& weight) {
  return AddProjectedFunction::apply(onto, x, weight);
}

Tensor FusedMlp(const Tensor& x, const MlpTensors& mlp, double epsilon) {
  return MlpFunction::apply(x, mlp.scale, mlp.gate, mlp.up, mlp.down, epsilon);
}

}  // namespace kibitz::learn
