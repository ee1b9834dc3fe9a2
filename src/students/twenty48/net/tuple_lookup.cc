#include "students/twenty48/net/tuple_lookup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "learn/parallel.h"

namespace kibitz::twenty48 {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBoardsOfPiece = 256;

struct RowSums {
  Tensor rows;  // (N), ascending.
  Tensor sums;  // (N, E)
};

// The gradients of a column, summed by entry in the order of the boards.
RowSums SumColumn(const Tensor& entries, const Tensor& dout, int64_t column) {
  const int64_t boards = entries.size(0);
  const int64_t columns = entries.size(1);
  const int64_t e = dout.size(2);
  std::vector<std::pair<int64_t, int64_t>> order;  // Entry and board.
  for (int64_t i = 0; i < boards; ++i) {
    order.emplace_back(entries.data_ptr<int64_t>()[i * columns + column], i);
  }
  std::ranges::sort(order);
  std::vector<int64_t> rows;
  std::vector<float> sums;
  for (const auto& [entry, board] : order) {
    if (rows.empty() || rows.back() != entry) {
      rows.push_back(entry);
      sums.resize(sums.size() + static_cast<size_t>(e));
    }
    const float* from = dout.data_ptr<float>() + (board * columns + column) * e;
    float* to = sums.data() + (std::ssize(rows) - 1) * e;
    for (int64_t j = 0; j < e; ++j) to[j] += from[j];
  }
  return {torch::tensor(rows, torch::kInt64),
          torch::from_blob(sums.data(), {std::ssize(rows), e}).clone()};
}

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
    std::vector<RowSums> columns(static_cast<size_t>(entries.size(1)));
    learn::ForEachTask(entries.size(1), [&](int64_t column) {
      columns[static_cast<size_t>(column)] = SumColumn(entries, dout, column);
    });
    std::vector<Tensor> rows;
    std::vector<Tensor> sums;
    for (RowSums& column : columns) {
      rows.push_back(column.rows);
      sums.push_back(column.sums);
    }
    return {torch::_sparse_coo_tensor_unsafe(torch::cat(rows).unsqueeze(0), torch::cat(sums),
                                             {ctx->saved_data["rows"].toInt(), e})
                ._coalesced_(true),
            Tensor()};
  }
};

}  // namespace

Tensor LookUpRows(const Tensor& table, const Tensor& entries) {
  return LookUpFunction::apply(table, entries);
}

}  // namespace kibitz::twenty48
