// The training targets of a position, one of three: the bin of each move's value, the move made, or
// a softmax of the legal moves' advantages (temperature-scaled advantage distillation, "tsad").
// docs/DECISIONS.md has the choices that the sources left open.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"

namespace kibitz::twenty48 {

enum class TargetMode { kBinnedEv, kHardMove, kTsadSoft };
enum class ScaleKind { kMaxAbs, kMad };
// Direction of the divergence: KL(teacher || student) or KL(student || teacher).
enum class KlDirection { kTeacherStudent, kStudentTeacher };

struct TargetOptions {
  TargetMode mode = TargetMode::kBinnedEv;
  bool mask_illegal = true;  // hard_move: mask illegal moves in the softmax.
  double tsad_temperature = 1;
  ScaleKind tsad_scale_kind = ScaleKind::kMaxAbs;
  double tsad_min_scale = 1e-3;
  double tsad_mix_with_hard = 0.1;  // Weight of the move made, 0 to 1.
  double tsad_aux_ce_weight = 0;  // Of the cross-entropy of the move made, added to the divergence.
  KlDirection tsad_kl = KlDirection::kTeacherStudent;
};
Fields FieldsOf(TargetOptions& options);

enum class BinStrategy { kEdges, kUpperBounds };

struct BinningOptions {
  BinStrategy strategy = BinStrategy::kEdges;
  bool special_zero_one = true;  // With edges: exactly 0 and exactly 1 have bins of their own.
  std::vector<double> edges = {0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0};
};
Fields FieldsOf(BinningOptions& options);

class Binner {
 public:
  // Throws Error::Usage for fewer than two edges, or edges that descend.
  explicit Binner(const BinningOptions& options);

  int bins() const { return bins_; }
  // Clamps the value to [0, 1].
  int BinOf(float value) const;
  // The middle of a bin, for expected values.
  double CenterOf(int bin) const;

 private:
  BinningOptions options_;
  std::vector<float> edges_;
  int bins_ = 0;
};

// Values of a row's moves, by IndexOf(move).
struct Judged {
  std::array<float, 4> values{};
  unsigned legal = 0;  // Bits.
  int move = 0;        // The one made.
};

// Values scaled to [0, 1]: the worst legal move 0, the best just below 1 (also when it is the only
// one), all 0.5 when equal. Then the move made gets 1, and illegal moves 0.
std::array<float, 4> Normalised(const Judged& judged);

// A distribution over the legal moves; all 0 when there are none. If the move made is illegal, the
// best move replaces it.
std::array<float, 4> SoftTargets(const Judged& judged, const TargetOptions& options);

}  // namespace kibitz::twenty48
