// A decoder's instinct as ONNX: input "tokens" (batch, 68), a board as tokens.h writes it; output
// "logits" (batch, 1924) of the policy head for each move token, as Model::BoardPolicy computes
// them. Thinking needs many passes over a growing sequence, and is not in the file.
#pragma once

#include "io/weights/model_file.h"
#include "io/weights/onnx_graph.h"

namespace kibitz::decoder {

// Throws Error when the weights do not fit.
io::OnnxGraph OnnxOf(const io::ModelFile& file);

}  // namespace kibitz::decoder
