#include "learn/added_rows.h"

#include "base/check.h"

namespace kibitz::learn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void AddTo(const float* from, int64_t width, float* to) {
  for (int64_t i = 0; i < width; ++i) to[i] += from[i];
}

// Row to[i] of `out` grows by row from[i] of `rows`.
void AddEach(const Tensor& rows, const Tensor& from, const Tensor& to, Tensor& out) {
  const int64_t width = out.size(1);
  const auto* from_row = from.data_ptr<int64_t>();
  const auto* to_row = to.data_ptr<int64_t>();
  for (int64_t i = 0; i < to.size(0); ++i) {
    CHECK(from_row[i] >= 0 && from_row[i] < rows.size(0));
    CHECK(to_row[i] >= 0 && to_row[i] < out.size(0));
    AddTo(rows.data_ptr<float>() + from_row[i] * width, width,
          out.data_ptr<float>() + to_row[i] * width);
  }
}

struct AddRowsFunction : torch::autograd::Function<AddRowsFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& embedding,
                        const Tensor& rows, const Tensor& to) {
    auto out = x.clone(torch::MemoryFormat::Contiguous);  // (R, D)
    AddEach(embedding.contiguous(), rows, to, out);
    ctx->save_for_backward({rows, to});
    ctx->saved_data["rows"] = embedding.size(0);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor dout = gradients[0].contiguous();
    const variable_list saved = ctx->get_saved_variables();
    auto drows = torch::zeros({ctx->saved_data["rows"].toInt(), dout.size(1)});  // (N, D)
    AddEach(dout, saved[1], saved[0], drows);
    return {dout, drows, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor AddRows(const Tensor& x, const Tensor& embedding, const AddedRows& added) {
  CHECK(x.dim() == 2 && embedding.dim() == 2 && x.size(1) == embedding.size(1));
  return AddRowsFunction::apply(x, embedding, torch::tensor(added.rows, torch::kInt64),
                                torch::tensor(added.to, torch::kInt64));
}

}  // namespace kibitz::learn
