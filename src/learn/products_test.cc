// Our products beside torch's.
#include "learn/products.h"

#include <gtest/gtest.h>

#include "learn/parallel.h"

namespace kibitz::learn {
namespace {

using torch::Tensor;

Tensor Random(at::IntArrayRef shape, uint64_t seed) {
  return torch::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

void ExpectNear(const Tensor& found, const Tensor& expected) {
  EXPECT_LT((found - expected).abs().max().item<double>(),
            1e-5 * expected.abs().max().item<double>());
}

TEST(ProductsTest, Multiply) {
  // Edges in rows, columns and depth; rows 4096 bytes apart are packed.
  for (const auto& [rows, depth, columns] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                                {7, 5, 33},
                                                                                {96, 128, 128},
                                                                                {200, 400, 70},
                                                                                {101, 1024, 96},
                                                                                {95, 2048, 31}}) {
    const Tensor x = Random({rows, depth}, 1);
    const Tensor weight = Random({columns, depth}, 2);
    for (const Layout layout : {Layout::kTransposed, Layout::kAsIs}) {
      const bool as_is = layout == Layout::kAsIs;
      const auto packed = Pack({{as_is ? weight.t().contiguous() : weight, layout}});
      for (const bool add : {false, true}) {
        Tensor out = Random({rows, columns}, 3);
        const Tensor expected = (add ? out.clone() : torch::zeros_like(out)) + x.mm(weight.t());
        ForEachPiece(rows, kBlockRows, [&](int64_t begin, int64_t end) {
          Multiply({x.data_ptr<float>() + begin * depth, depth, end - begin}, packed[0],
                   {out.data_ptr<float>() + begin * columns, columns, add});
        });
        ExpectNear(out, expected);
      }
    }
  }
}

TEST(ProductsTest, RowSums) {
  for (const auto& [rows, a_width, b_width] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {5, 7, 33}, {300, 128, 128}, {129, 200, 300}, {1000, 100, 31}}) {
    const Tensor a = Random({rows, a_width}, 1);
    const Tensor b = Random({rows, b_width}, 2);
    Tensor out = torch::full({a_width, b_width}, 7.0F);
    RowSums sums;
    sums.Add(out, a, b);
    sums.Compute();
    ExpectNear(out, a.t().mm(b));
  }
}

TEST(ProductsTest, SumOfNoRowsIsZero) {
  Tensor out = torch::full({9, 40}, 7.0F);
  RowSums sums;
  sums.Add(out, torch::zeros({0, 9}), torch::zeros({0, 40}));
  sums.Compute();
  EXPECT_EQ(out.abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace kibitz::learn
