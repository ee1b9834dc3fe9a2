#include "students/decoder/net/terms.h"
namespace kibitz::decoder {
Taught PackedLoss(DecoderNet& net, const Batch& batch, const LossOptions& options) {
  return PlainLoss(net, batch, options, net->config.max_seq_len);
}
}  // namespace kibitz::decoder
