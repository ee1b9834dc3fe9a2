#include "learn/added_rows.h"

#include <gtest/gtest.h>

namespace kibitz::learn {
namespace {

TEST(AddedRowsTest, IsIndexAddOfLookedUpRows) {
  torch::manual_seed(1);
  AddedRows added;
  for (int64_t i = 0; i < 40; ++i) added.Add(i * 7 % 9, i * 5 % 6);  // Both come up repeatedly.
  const auto weights = torch::randn({9, 5});
  const auto run = [&](bool fused) {
    auto x = torch::ones({9, 5}).requires_grad_();
    auto embedding = torch::arange(30, torch::kFloat32).view({6, 5}).requires_grad_();
    const auto to = torch::tensor(added.to, torch::kInt64);
    const auto rows = torch::tensor(added.rows, torch::kInt64);
    const auto out =
        fused ? AddRows(x, embedding, added) : x.index_add(0, to, embedding.index_select(0, rows));
    (out * weights).sum().backward();
    return std::vector<torch::Tensor>{out.detach(), x.grad(), embedding.grad()};
  };
  const auto found = run(true);
  const auto expected = run(false);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(torch::allclose(found[i], expected[i]));
}

}  // namespace
}  // namespace kibitz::learn
