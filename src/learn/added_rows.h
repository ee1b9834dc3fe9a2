// Rows of an embedding that are added to some rows of a tensor, many to one: in one pass forward
// and one backward, where torch's index_add of looked-up rows takes a call for each.
//
//   AddedRows added;
//   added.Add(token, row);
//   x = AddRows(x, embedding->weight, added);
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace kibitz::learn {

struct AddedRows {
  std::vector<int64_t> to;    // Rows of the tensor.
  std::vector<int64_t> rows;  // Of the embedding.

  void Add(int64_t to_row, int64_t row) {
    to.push_back(to_row);
    rows.push_back(row);
  }
};

// x: (R, D), embedding: (N, D), both float32 on the CPU. CHECKs that the rows are theirs.
torch::Tensor AddRows(const torch::Tensor& x, const torch::Tensor& embedding,
                      const AddedRows& added);  // (R, D)

}  // namespace kibitz::learn
