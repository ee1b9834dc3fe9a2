#include "learn/recompute.h"

#include <utility>

#include "learn/precision.h"

namespace kibitz::learn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct BodyHolder : torch::CustomClassHolder {
  explicit BodyHolder(TensorFunction body) : body(std::move(body)) {}
  TensorFunction body;
};

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, at::TensorList parameters,
                        TensorFunction body) {
    KeepPrecision(ctx);
    Tensor y = body(x);
    variable_list saved = parameters.vec();
    saved.push_back(x);
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["body"] =
        torch::IValue::make_capsule(c10::make_intrusive<BodyHolder>(std::move(body)));
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    variable_list wanted = ctx->get_saved_variables();
    const Tensor x = wanted.back().detach().requires_grad_();
    wanted.back() = x;
    const auto holder = ctx->saved_data["body"].toCapsule();
    Tensor y;
    {
      const torch::AutoGradMode with_graph(true);
      const PrecisionScope precision(KeptPrecision(ctx));
      y = static_cast<const BodyHolder&>(*holder).body(x);
    }
    auto found = torch::autograd::grad({y}, wanted, {gradients[0]}, /*retain_graph=*/false,
                                       /*create_graph=*/false, /*allow_unused=*/true);
    variable_list results = {found.back()};
    results.insert(results.end(), found.begin(), found.end() - 1);
    results.emplace_back();  // The body has none.
    return results;
  }
};

}  // namespace

Tensor Recomputed(const Tensor& x, const std::vector<Tensor>& parameters, TensorFunction body) {
  return RecomputeFunction::apply(x, at::TensorList(parameters), std::move(body));
}

}  // namespace kibitz::learn
