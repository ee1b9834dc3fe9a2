// A 2048 network as ONNX: input "board" (batch, 16), the ranks of the cells from the upper left (2
// is 1), at most 16; output "logits" (batch, 4) for up, down, left, right, or (batch, 4, bins). A
// network whose config says canonical_view takes boards in that view (data/augment.h).
#pragma once

#include "io/weights/model_file.h"
#include "io/weights/onnx_graph.h"

namespace kibitz::twenty48 {

// Throws Error when the weights do not fit.
io::OnnxGraph OnnxOf(const io::ModelFile& file);

}  // namespace kibitz::twenty48
