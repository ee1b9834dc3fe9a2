#include "students/twenty48/net/tuple_lookup.h"

#include <algorithm>

#include "base/check.h"
#include "learn/parallel.h"

namespace kibitz::twenty48 {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBoardsOfPiece = 256;

struct LookUpFunction : torch::autograd::Function<LookUpFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& table, const Tensor& entries_in) {
    const Tensor entries = entries_in.contiguous();
    CHECK(table.is_cpu() && table.is_contiguous() && table.scalar_type() == torch::kFloat32);
    const int64_t e = table.size(1);
    const int64_t columns = entries.size(1);
    Tensor out = torch::empty({entries.size(0), columns, e}, table.options().requires_grad(false));
    const float* from = table.data_ptr<float>();
    const int64_t* index = entries.data_ptr<int64_t>();
    float* to = out.data_ptr<float>();
    learn::ForEachPiece(entries.size(0), kBoardsOfPiece, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * columns; i < end * columns; ++i) {
        std::copy_n(from + index[i] * e, e, to + i * e);
      }
    });
    ctx->save_for_backward({entries});
    ctx->saved_data["rows"] = table.size(0);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor entries = ctx->get_saved_variables()[0];
    const Tensor dout = gradients[0].contiguous();
    const int64_t e = dout.size(2);
    const int64_t columns = entries.size(1);
    Tensor dtable = torch::zeros({ctx->saved_data["rows"].toInt(), e}, dout.options());
    const float* from = dout.data_ptr<float>();
    const int64_t* index = entries.data_ptr<int64_t>();
    float* to = dtable.data_ptr<float>();
    learn::ForEachTask(columns, [&](int64_t column) {
      for (int64_t i = column; i < entries.numel(); i += columns) {
        float* row = to + index[i] * e;
        for (int64_t j = 0; j < e; ++j) row[j] += from[i * e + j];
      }
    });
    return {dtable, Tensor()};
  }
};

}  // namespace

Tensor LookUpRows(const Tensor& table, const Tensor& entries) {
  return LookUpFunction::apply(table, entries);
}

}  // namespace kibitz::twenty48
