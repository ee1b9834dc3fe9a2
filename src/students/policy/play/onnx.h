// A policy network as ONNX: inputs "planes" (batch, 13, 8, 8) and "meta" (batch, 5; with flip 4),
// with attack planes also "attacks" (batch, 29, 8, 8); output "logits" (batch, moves). All inputs
// are those of data/planes.h, with flip as the side to move sees the board; the metadata "moves"
// names the outputs.
#pragma once

#include "io/weights/model_file.h"
#include "io/weights/onnx_graph.h"

namespace kibitz::policy {

// Throws Error when the weights do not fit.
io::OnnxGraph OnnxOf(const io::ModelFile& file);

}  // namespace kibitz::policy
