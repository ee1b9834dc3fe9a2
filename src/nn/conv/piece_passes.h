// What a training step in mixed precision does between the convolutions of bf16_conv.h, on pieces
// of 32 boards: norms over whole boards, gelu and their gradients, computed in float32 and rounded
// to bfloat16 as the next convolution reads them. All need HasAvx512Bf16().
//
// Letters: P = 32 boards of a piece, C padded channels (PaddedPiece). Rows are (64, P, C), floats
// or bfloat16; of one square (P, C). Behind the channels that count, values and weights of norms
// are 0, and gradients are undefined but finite.
#pragma once

#include <cstdint>

#include "nn/conv/bf16_conv.h"

namespace kibitz::nn {

// A LayerNorm or an RMSNorm over all numbers of a board.
struct PieceNorm {
  const float* weight = nullptr;  // (64, C)
  const float* bias = nullptr;    // (64, C); zeros for an RMSNorm.
  bool has_mean = true;           // A LayerNorm.
  int64_t channels = 0;           // C
  int64_t count = 0;              // Numbers of a board that count.
  float epsilon = 0;
};

// Sums of something over each board, a vector for each.
struct alignas(64) PieceTotals {
  float lanes[kPieceBoards][16] = {};

  float Of(int64_t board) const;
};

// The statistics of a piece's boards: normalised, x is (x - mean) * factor.
struct PieceSums {
  float mean[kPieceBoards];    // 0 for an RMSNorm.
  float factor[kPieceBoards];  // 1 / sqrt(variance + epsilon)
  float scale[kPieceBoards];   // The same, for gradients.

  // For a piece that is kept normalised instead of x.
  PieceSums OfNormalised() const;
};
struct PieceMoments {
  PieceTotals sums;
  PieceTotals squares;

  void Finish(const PieceNorm& norm, PieceSums& to) const;
};
void SumPiece(const PieceNorm& norm, const float* x, PieceSums& sums);

// y = norm(x): rows of bfloat16.
void NormalisePiece(const PieceNorm& norm, const PieceSums& sums, const float* x, Bf16* y);
void NormalisePiece(const PieceNorm& norm, const PieceSums& sums, const Bf16* x, Bf16* y);
// The same, and the normalised x without weight and bias.
void NormaliseAndKeep(const PieceNorm& norm, const PieceSums& sums, const float* x, Bf16* y,
                      Bf16* normalised);
// y with boards innermost: (64, C, P).
void NormaliseTransposed(const PieceNorm& norm, const PieceSums& sums, const float* x, Bf16* y);
void NormaliseTransposed(const PieceNorm& norm, const PieceSums& sums, const Bf16* x, Bf16* y);
// Rows as they are: (64, P, C) to (64, C, P).
void TransposePiece(const Bf16* x, int64_t channels, Bf16* y);
// Rows in pairs of boards: (64, P, C) to (64, P / 2, C, 2).
void PairPiece(const Bf16* x, int64_t channels, Bf16* y);

// Brings a square's rows, (P, C), to the second cache, before they are read or written:
// convolutions leave the memory idle. Does nothing for nullptr.
void PrefetchRows(const Bf16* rows, int64_t channels);

// y = x, rounded.
void RoundNumbers(const float* x, int64_t count, Bf16* y);

// Boards as they come, (boards, 64, inputs), to rows of bfloat16, zeros where there is nothing.
void RowsOfBoards(const float* x, int64_t boards, int64_t inputs, Bf16* rows);

// Of one square, all (P, C): y = gelu(z + bias), rounded, and its slope; adds to the moments of y.
void GeluSquare(const float* z, const float* bias, int64_t channels, Bf16* y, Bf16* slope,
                PieceMoments& moments);
// y = x + gelu(z + bias); x may be nothing.
void AddGeluSquare(const float* z, const float* bias, int64_t channels, const float* x, float* y,
                   Bf16* slope);

// The gradient of outputs, as both convolutions of backward read it.
struct OutputGradients {
  Bf16* rows = nullptr;   // (64, P, C)
  Bf16* pairs = nullptr;  // (64, P / 2, C, 2)
  float* bias = nullptr;  // (C): sums over boards and squares, added to.
};
// dz = dy * slope
void SlopeBackward(const float* dy, const Bf16* slope, int64_t channels, const OutputGradients& to);

// Backward of a norm, first part, of one square: adds to sums over each board and to the gradients
// of the norm's parameters.
struct NormBackwardSums {
  PieceTotals g;   // Of dy * weight.
  PieceTotals gh;  // Of dy * weight * normalised x.
};
// dy, x: (P, C) of the square; dweight, dbias: (64, C).
struct NormBackwardFrom {
  const PieceNorm& norm;
  const PieceSums& sums;
  int64_t square = 0;
};
void SumNormBackward(const NormBackwardFrom& from, const float* dy, const float* x,
                     NormBackwardSums& totals, float* dweight, float* dbias);
void SumNormBackward(const NormBackwardFrom& from, const float* dy, const Bf16* x,
                     NormBackwardSums& totals, float* dweight, float* dbias);

// Second part, of the piece: dx = the gradient of x, plus `onto`, which may be dx or nothing.
void NormBackward(const PieceNorm& norm, const PieceSums& sums, const NormBackwardSums& totals,
                  const float* dy, const float* x, const float* onto, float* dx);
void NormBackward(const PieceNorm& norm, const PieceSums& sums, const NormBackwardSums& totals,
                  const float* dy, const Bf16* x, const float* onto, float* dx);
// The same, then SlopeBackward: x is the gelu of a layer whose slopes these are.
void NormSlopeBackward(const PieceNorm& norm, const PieceSums& sums, const NormBackwardSums& totals,
                       const float* dy, const Bf16* x, const Bf16* slope,
                       const OutputGradients& to);

}  // namespace kibitz::nn
