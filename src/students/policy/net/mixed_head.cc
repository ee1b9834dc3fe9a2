#include "students/policy/net/mixed_head.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "students/policy/data/move_planes.h"
#include "students/policy/net/mixed_layer.h"
#include "students/policy/net/mixed_pieces.h"

namespace kibitz::policy {
namespace {

using nn::Bf16;
using nn::kPieceBoards;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kSlots = 2 * kMovePlanes;
const int64_t kSlotRow = nn::PaddedPiece(kSlots);

// A move and where a square of it has its part of the logit.
struct MoveSlot {
  uint16_t move;
  uint16_t slot;  // Below kSlots.
};

// The moves from a square and to it; no two share a slot.
using SlotsOfSquare = std::vector<MoveSlot>;

std::array<SlotsOfSquare, 64> MakeSlots() {
  std::array<SlotsOfSquare, 64> slots;
  uint16_t index = 0;
  for (const MovePlane& move : MovePlanes()) {
    slots[move.from].push_back({index, move.plane});
    slots[move.to].push_back({index, static_cast<uint16_t>(kMovePlanes + move.plane)});
    ++index;
  }
  for (const SlotsOfSquare& square : slots) {
    std::array<bool, kSlots> taken{};
    for (const MoveSlot& part : square) {
      CHECK(!taken[part.slot]);
      taken[part.slot] = true;
    }
  }
  return slots;
}

const std::array<SlotsOfSquare, 64>& AllSlots() {
  static const std::array<SlotsOfSquare, 64> slots = MakeSlots();
  return slots;
}

// Boards of a piece.
int64_t CountOf(int64_t piece, int64_t boards) {
  return std::min(kPieceBoards, boards - piece * kPieceBoards);
}

// Adds a square's part to the logits of boards. z: (P, slots)
void AddLogits(int64_t square, const float* z, int64_t boards, int64_t moves, float* logits) {
  const SlotsOfSquare& slots = AllSlots()[static_cast<size_t>(square)];
  for (int64_t board = 0; board < boards; ++board, z += kSlotRow, logits += moves) {
    for (const MoveSlot& part : slots) logits[part.move] += z[part.slot];
  }
}

// The gradient of logits to rows of slots: (64, P, slots), 0 behind the last board.
void SpreadGradients(const float* dlogits, int64_t boards, int64_t moves, Bf16* rows) {
  std::memset(rows, 0, static_cast<size_t>(64 * kPieceBoards * kSlotRow) * sizeof(Bf16));
  std::vector<Bf16> rounded(static_cast<size_t>(moves));
  for (int64_t board = 0; board < boards; ++board, dlogits += moves) {
    nn::RoundNumbers(dlogits, moves, rounded.data());
    Bf16* row = rows + board * kSlotRow;
    for (const SlotsOfSquare& square : AllSlots()) {
      for (const MoveSlot& part : square) row[part.slot] = rounded[part.move];
      row += kPieceBoards * kSlotRow;
    }
  }
}

void AddRows(const float* rows, int64_t count, int64_t width, float* sums) {
  for (int64_t row = 0; row < count; ++row, rows += width) {
    for (int64_t i = 0; i < width; ++i) sums[i] += rows[i];
  }
}

struct PlanesFunction : torch::autograd::Function<PlanesFunction> {
  enum Saved : size_t { kX, kSums, kNormWeight, kNormBias, kWeight };

  static Tensor forward(AutogradContext* ctx, const Tensor& x_in, at::TensorList parameters,
                        int64_t boards, double epsilon) {
    const Tensor x = x_in.contiguous();
    const Tensor sums = EmptyPieceSums(x.size(0));
    const Tensor bias = parameters[3].contiguous();
    const variable_list saved = {x, sums, parameters[0], parameters[1], parameters[2]};
    const MixedLayer layer(LayerOf(saved, epsilon), nn::ConvPass::kForward);
    const Tensor logits = torch::empty({boards, bias.size(0)});
    learn::ForEachTask(x.size(0), [&](int64_t piece) {
      const Tensor out = logits.narrow(0, piece * kPieceBoards, CountOf(piece, boards));
      out.copy_(bias.expand(out.sizes()));
      ForwardPiece(layer, PieceAt<float>(x, piece), PieceSumsAt(sums, piece), out);
    });
    ctx->save_for_backward(saved);
    ctx->saved_data["epsilon"] = epsilon;
    return logits;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const LayerTensors tensors = LayerOf(saved, ctx->saved_data["epsilon"].toDouble());
    const MixedLayer layer(tensors, nn::ConvPass::kBackward);
    const Tensor& x = saved[kX];
    const Tensor dlogits = gradients[0].contiguous();
    const int64_t shares = PieceSharesOf(x.size(0));
    const MixedGradients sums(tensors, shares);
    const Tensor biases = torch::zeros({shares, dlogits.size(1)});
    const Tensor dx = torch::empty_like(x);
    ForEachShareOfPieces(x.size(0), [&](int64_t index, int64_t begin, int64_t end) {
      const MixedRoom room(x.size(3), kSlotRow);
      MixedShare share = sums.Share(index);
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t count = CountOf(piece, dlogits.size(0));
        const float* from = PieceAt<float>(dlogits, piece * kPieceBoards);
        AddRows(from, count, dlogits.size(1), PieceAt<float>(biases, index));
        SpreadGradients(from, count, dlogits.size(1), room.rows());
        nn::PairPiece(room.rows(), kSlotRow, room.pairs());
        const nn::PieceSums& statistics = PieceSumsAt(saved[kSums], piece);
        const float* piece_x = PieceAt<float>(x, piece);
        const nn::NormBackwardSums totals = layer.Backward(statistics, piece_x, share, room);
        nn::NormBackward(layer.norm(), statistics, totals, room.gradients(), piece_x, nullptr,
                         PieceAt<float>(dx, piece));
      }
    });
    const LayerTensors total = sums.Total(tensors);
    return {dx,       total.norm_weight, total.norm_bias, total.weight, SumOfShares(biases),
            Tensor(), Tensor()};
  }

 private:
  static LayerTensors LayerOf(const variable_list& saved, double epsilon) {
    const Tensor& norm_bias = saved[kNormBias];
    return {.norm_weight = saved[kNormWeight],
            .norm_bias = norm_bias.numel() == 0 ? Tensor() : norm_bias,
            .weight = saved[kWeight],
            .epsilon = epsilon};
  }

  // logits: (boards, M), with the bias.
  static void ForwardPiece(const MixedLayer& layer, const float* x, nn::PieceSums& sums,
                           const Tensor& logits) {
    const nn::AmxTiles tiles;
    const Tensor rows = EmptyPieces(1, layer.norm().channels, torch::kBFloat16);
    const Tensor z = torch::empty({kPieceBoards, kSlotRow});
    nn::SumPiece(layer.norm(), x, sums);
    nn::NormalisePiece(layer.norm(), sums, x, PieceAt<Bf16>(rows, 0));
    for (int64_t square = 0; square < 64; ++square) {
      nn::ConvolveSquare(layer.weights(), PieceAt<Bf16>(rows, 0), square, z.data_ptr<float>());
      AddLogits(square, z.data_ptr<float>(), logits.size(0), logits.size(1),
                logits.data_ptr<float>());
    }
  }
};

}  // namespace

Tensor MixedPlanes(const Tensor& x, const PlanesTensors& tensors, int64_t boards, double epsilon) {
  CHECK(tensors.weight.size(0) == kSlots);
  const variable_list parameters = {
      tensors.norm_weight, tensors.norm_bias.defined() ? tensors.norm_bias : torch::empty({0}),
      tensors.weight, tensors.bias};
  return PlanesFunction::apply(x, at::TensorList(parameters), boards, epsilon);
}

}  // namespace kibitz::policy
