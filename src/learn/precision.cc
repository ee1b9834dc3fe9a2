#include "learn/precision.h"

namespace kibitz::learn {
namespace {

thread_local Precision current_precision = Precision::kFloat32;

}  // namespace

Precision CurrentPrecision() { return current_precision; }
void SetCurrentPrecision(Precision precision) { current_precision = precision; }

}  // namespace kibitz::learn
