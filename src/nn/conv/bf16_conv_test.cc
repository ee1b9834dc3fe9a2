// The convolutions in bfloat16 beside the plain ones, and the passes between them beside norms and
// gelu in float32.
#include "nn/conv/bf16_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "nn/conv/norm_rows.h"
#include "nn/conv/piece_passes.h"
#include "nn/kernels/gelu.h"

namespace kibitz::nn {
namespace {

constexpr int64_t kBoardsTimesSquares = 64 * kPieceBoards;

std::vector<float> Random(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = normal(random);
  return numbers;
}

std::vector<Bf16> Rounded(const std::vector<float>& numbers) {
  std::vector<Bf16> rounded;
  for (float number : numbers) rounded.push_back(ToBf16(number));
  return rounded;
}

void ExpectNear(const std::vector<float>& found, const std::vector<float>& expected, float share) {
  ASSERT_EQ(found.size(), expected.size());
  float size = 0;
  for (float number : expected) size = std::max(size, std::abs(number));
  float difference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    difference = std::max(difference, std::abs(found[i] - expected[i]));
  }
  EXPECT_LE(difference, share * size);
}

// Windows of weights against a convolution written out: packing, taps and padding.
TEST(Bf16Conv, PlainVersionConvolves) {
  constexpr int64_t kInputs = 3;
  constexpr int64_t kOutputs = 5;
  const auto weight = Random(kOutputs * kInputs * 9, 1);
  for (ConvPass pass : {ConvPass::kForward, ConvPass::kBackward}) {
    const Bf16Weights packed({weight.data(), kOutputs, kInputs}, pass);
    const bool forward = pass == ConvPass::kForward;
    const auto x = Rounded(Random(kBoardsTimesSquares * packed.inputs(), 2));
    std::vector<float> z(static_cast<size_t>(kPieceBoards * packed.outputs()));
    for (int64_t square : {0, 7, 35, 63}) {
      PlainConvolveSquare(packed, x.data(), square, z.data());
      for (int64_t to = 0; to < (forward ? kOutputs : kInputs); ++to) {
        float expected = 0;
        for (int64_t tap = 0; tap < 9; ++tap) {
          const int64_t rank = square / 8 + tap / 3 - 1;
          const int64_t file = square % 8 + tap % 3 - 1;
          if (rank < 0 || rank > 7 || file < 0 || file > 7) continue;
          const Bf16* row = x.data() + ((rank * 8 + file) * kPieceBoards + 4) * packed.inputs();
          for (int64_t from = 0; from < (forward ? kInputs : kOutputs); ++from) {
            const int64_t window = forward ? to * kInputs + from : from * kInputs + to;
            const float number =
                weight[static_cast<size_t>(window * 9 + (forward ? tap : 8 - tap))];
            expected += FromBf16(ToBf16(number)) * FromBf16(row[from]);
          }
        }
        EXPECT_NEAR(z[static_cast<size_t>(4 * packed.outputs() + to)], expected, 1e-4);
      }
    }
  }
}

struct Size {
  int64_t inputs;
  int64_t outputs;
  int64_t taps = 9;
};

TEST(Bf16Conv, TilesMatchPlainVersion) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16 here";
  const AmxTiles tiles;
  for (const Size& size :
       {Size{12, 12}, Size{16, 64}, Size{64, 64}, Size{96, 33}, Size{64, 152, 1}}) {
    const auto weight = Random(size.inputs * size.outputs * size.taps, 1);
    const Bf16Weights packed({weight.data(), size.outputs, size.inputs, size.taps},
                             ConvPass::kForward);
    const auto x = Rounded(Random(kBoardsTimesSquares * packed.inputs(), 2));
    const auto count = static_cast<size_t>(kPieceBoards * packed.outputs());
    std::vector<float> expected(count);
    std::vector<float> found(count);
    for (int64_t square : {0, 5, 7, 24, 27, 31, 56, 60, 63}) {
      PlainConvolveSquare(packed, x.data(), square, expected.data());
      ConvolveSquare(packed, x.data(), square, found.data());
      ExpectNear(found, expected, 1e-5F);
    }
    const auto dz = Rounded(Random(kBoardsTimesSquares * packed.outputs(), 3));
    std::vector<float> plain = Random(size.taps * packed.inputs() * packed.outputs(), 4);
    std::vector<float> sums = plain;
    const WeightGradients from = {x.data(), dz.data(), packed.inputs(), packed.outputs(),
                                  size.taps};
    PlainAddWeightGradients(from, plain.data());
    AddWeightGradients(from, sums.data());
    ExpectNear(sums, plain, 1e-5F);
  }
}

// A norm of random weights over pieces whose channels behind `channels` are 0.
struct Normed {
  Normed(int64_t channels, bool has_mean)
      : padded(PaddedPiece(channels)),
        weight(Random(64 * padded, 1)),
        bias(has_mean ? Random(64 * padded, 2) : std::vector<float>(weight.size())),
        x(Random(kBoardsTimesSquares * padded, 3)) {
    for (std::vector<float>* numbers : {&weight, &bias, &x}) {
      for (size_t i = 0; i < numbers->size(); ++i) {
        if (static_cast<int64_t>(i) % padded >= channels) (*numbers)[i] = 0;
      }
    }
    norm = {weight.data(), bias.data(), has_mean, padded, 64 * channels, 1e-5F};
    rows = {weight.data(), has_mean ? bias.data() : nullptr, 64 * padded, 64 * channels, 1e-5F};
  }
  // A board, (64, C).
  std::vector<float> Board(const std::vector<float>& piece, int64_t board) const {
    std::vector<float> result;
    for (int64_t square = 0; square < 64; ++square) {
      const auto begin = piece.begin() + (square * kPieceBoards + board) * padded;
      result.insert(result.end(), begin, begin + padded);
    }
    return result;
  }

  int64_t padded;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> x;
  PieceNorm norm;
  NormRows rows;
};

TEST(PiecePasses, NormaliseAsRowsDo) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16 here";
  for (bool has_mean : {true, false}) {
    for (int64_t channels : {12, 64}) {
      const Normed normed(channels, has_mean);
      PieceSums sums;
      SumPiece(normed.norm, normed.x.data(), sums);
      std::vector<Bf16> y(normed.x.size());
      std::vector<Bf16> transposed(normed.x.size());
      std::vector<Bf16> again(normed.x.size());
      NormalisePiece(normed.norm, sums, normed.x.data(), y.data());
      NormaliseTransposed(normed.norm, sums, normed.x.data(), transposed.data());
      TransposePiece(y.data(), normed.padded, again.data());
      EXPECT_EQ(transposed, again);
      for (size_t i = 0; i < y.size(); ++i) {
        const auto row = static_cast<int64_t>(i) / normed.padded;
        const int64_t channel = static_cast<int64_t>(i) % normed.padded;
        const int64_t place =
            (row / kPieceBoards * normed.padded + channel) * kPieceBoards + row % kPieceBoards;
        ASSERT_EQ(transposed[static_cast<size_t>(place)], y[i]);
      }
      std::vector<float> floats;
      for (Bf16 number : y) floats.push_back(FromBf16(number));
      const std::vector<float> board = normed.Board(normed.x, 9);
      std::vector<float> expected(board.size());
      const NormSums expected_sums = SumsOf(normed.rows, board.data());
      EXPECT_NEAR(sums.mean[9], expected_sums.mean, 1e-5);
      EXPECT_NEAR(sums.factor[9], expected_sums.factor, 1e-4);
      Normalise(normed.rows, expected_sums, board.data(), expected.data());
      ExpectNear(normed.Board(floats, 9), expected, 4e-3F);
    }
  }
}

TEST(PiecePasses, NormBackwardAsRowsDo) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16 here";
  for (bool has_mean : {true, false}) {
    const Normed normed(64, has_mean);
    const auto dy = Random(kBoardsTimesSquares * 64, 5);
    const auto onto = Random(kBoardsTimesSquares * 64, 6);
    PieceSums sums;
    SumPiece(normed.norm, normed.x.data(), sums);
    NormBackwardSums totals;
    std::vector<float> dweight(64 * 64);
    std::vector<float> dbias(64 * 64);
    for (int64_t square = 0; square < 64; ++square) {
      const int64_t offset = square * kPieceBoards * 64;
      SumNormBackward({normed.norm, sums, square}, dy.data() + offset, normed.x.data() + offset,
                      totals, dweight.data(), dbias.data());
    }
    std::vector<float> dx(dy.size());
    NormBackward(normed.norm, sums, totals, dy.data(), normed.x.data(), onto.data(), dx.data());
    std::vector<float> expected_weight(64 * 64);
    std::vector<float> expected_bias(64 * 64);
    for (int64_t board = 0; board < kPieceBoards; ++board) {
      const auto x = normed.Board(normed.x, board);
      const auto gradient = normed.Board(dy, board);
      const auto extra = normed.Board(onto, board);
      std::vector<float> expected(x.size());
      NormaliseBackward(normed.rows, SumsOf(normed.rows, x.data()),
                        {x.data(), gradient.data(), extra.data(), expected.data(),
                         expected_weight.data(), expected_bias.data()});
      ExpectNear(normed.Board(dx, board), expected, 1e-4F);
    }
    ExpectNear(dweight, expected_weight, 1e-4F);
    if (has_mean) ExpectNear(dbias, expected_bias, 1e-4F);
  }
}

TEST(PiecePasses, GeluAndItsSlope) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "no AVX-512 BF16 here";
  std::vector<float> z(kPieceBoards * 32);
  for (size_t i = 0; i < z.size(); ++i) z[i] = (static_cast<float>(i) - 512.5F) / 40;
  const std::vector<float> bias(32);
  std::vector<float> y(z.size());
  std::vector<Bf16> slope(z.size());
  AddGeluSquare(z.data(), bias.data(), 32, nullptr, y.data(), slope.data());
  for (size_t i = 0; i < z.size(); ++i) {
    EXPECT_NEAR(y[i], Gelu(Spread(z[i]))[0], 3e-4) << z[i];
    EXPECT_NEAR(FromBf16(slope[i]), GeluAndSlope(Spread(z[i])).slope[0], 5e-3) << z[i];
  }
}

}  // namespace
}  // namespace kibitz::nn
