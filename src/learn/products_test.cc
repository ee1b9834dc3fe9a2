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
  // Edges in rows, columns and depth, and several slices of the depth.
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

Tensor Rounded(const Tensor& x) { return x.to(torch::kBFloat16).to(torch::kFloat32); }

// Without AVX-512 BF16 in plain C++.
TEST(ProductsTest, MultiplyInBfloat16) {
  for (const auto& [rows, depth, columns] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {7, 5, 33}, {96, 128, 128}, {200, 100, 70}}) {
    const Tensor x = Random({rows, depth}, 1);
    const Tensor weight = Random({columns, depth}, 2);
    const Tensor product = Rounded(x).mm(Rounded(weight).t());
    for (const Layout layout : {Layout::kTransposed, Layout::kAsIs}) {
      const bool as_is = layout == Layout::kAsIs;
      const auto packed =
          Pack({{as_is ? weight.t().contiguous() : weight, layout}}, Precision::kBfloat16);
      for (const bool add : {false, true}) {
        Tensor out = Random({rows, columns}, 3);
        const Tensor expected = product + (add ? out.clone() : torch::zeros_like(out));
        const WholeProduct whole = {x, packed.data(), out, add ? out.clone() : Tensor()};
        ForEachTask(whole.tasks(), [&](int64_t task) { whole.Run(task); });
        ExpectNear(out, expected);
      }
    }
  }
}

// a^T b, of rows in memory and of rows that blocks write.
Tensor RowSumsOf(const Tensor& a, const Tensor& b, Precision precision) {
  const int64_t rows = a.size(0);
  const int64_t width = b.size(1);
  Tensor out = torch::full({a.size(1), width}, 7.0F);
  const SumFactor left(a, SumFactor::Side::kA, precision);
  const SumFactor right(rows, width, SumFactor::Side::kB, precision);
  ForEachPiece(rows, kBlockRows, [&](int64_t begin, int64_t end) {
    left.Keep(begin, end);
    const SumBlock block(right, begin, end);
    std::copy_n(b.data_ptr<float>() + begin * width, (end - begin) * width, block.data());
    block.Keep();
  });
  RowSums sums;
  sums.Add(out, left, right);
  sums.Compute();
  return out;
}

TEST(ProductsTest, RowSums) {
  for (const auto& [rows, a_width, b_width] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                           {5, 7, 33},
                                           {300, 128, 128},
                                           {129, 200, 300},
                                           {1000, 100, 31},
                                           {100, 800, 900}}) {
    const Tensor a = Random({rows, a_width}, 1);
    const Tensor b = Random({rows, b_width}, 2);
    ExpectNear(RowSumsOf(a, b, Precision::kFloat32), a.t().mm(b));
  }
}

TEST(ProductsTest, RowSumsInBfloat16) {
  for (const auto& [rows, a_width, b_width] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {5, 7, 33}, {300, 128, 128}, {129, 70, 150}, {1000, 20, 31}}) {
    const Tensor a = Random({rows, a_width}, 1);
    const Tensor b = Random({rows, b_width}, 2);
    ExpectNear(RowSumsOf(a, b, Precision::kBfloat16), Rounded(a).t().mm(Rounded(b)));
  }
}

TEST(ProductsTest, SumOfNoRowsIsZero) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    Tensor out = torch::full({9, 40}, 7.0F);
    const SumFactor a(torch::zeros({0, 9}), SumFactor::Side::kA, precision);
    const SumFactor b(torch::zeros({0, 40}), SumFactor::Side::kB, precision);
    RowSums sums;
    sums.Add(out, a, b);
    sums.Compute();
    EXPECT_EQ(out.abs().max().item<double>(), 0);
  }
}

}  // namespace
}  // namespace kibitz::learn
