// Win, draw and loss as probabilities.
#pragma once

namespace kibitz::decoder {

struct Wdl {
  double win = 0;
  double draw = 0;
  double loss = 0;
};

}  // namespace kibitz::decoder
