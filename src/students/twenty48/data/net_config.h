// The sizes of a 2048 network, named as in the config.json beside its weights and in the `model`
// section of config files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/options.h"
#include "io/weights/model_file.h"
#include "students/twenty48/data/targets.h"

namespace kibitz::twenty48 {

// Four heads over bins of values, one per move, or one head over the four moves.
enum class HeadType { kBinnedEv, kActionPolicy };

struct NetConfig {
  int input_vocab_size = 17;                  // Ranks 0 to 16.
  std::optional<int64_t> output_n_bins = 12;  // Of the binned heads; none for a policy.
  int hidden_size = 128;
  int num_hidden_layers = 5;
  int num_attention_heads = 4;
  std::optional<int64_t> num_key_value_heads;  // A divisor of the heads; default: as many.
  int intermediate_size = 352;                 // Hidden width of the MLP.
  double layer_norm_eps = 1e-5;
  int max_position_embeddings = 16;
  // Numbers of a pattern's learned vector in the network over patterns (net/tuple_net.h); 0: the
  // encoder over the sixteen tiles.
  int tuple_width = 0;
  HeadType head_type = HeadType::kBinnedEv;
  // The network sees every board in its CanonicalView (augment.h).
  bool canonical_view = false;
  // Kept for other programs that read the file; there is no dropout here.
  double dropout_prob = 0;
  double attention_dropout_prob = 0;

  int kv_heads() const {
    return num_key_value_heads ? static_cast<int>(*num_key_value_heads) : num_attention_heads;
  }
  int bins() const { return static_cast<int>(output_n_bins.value_or(0)); }
  int head_width() const { return hidden_size / num_attention_heads; }
};
Fields FieldsOf(NetConfig& config);

// Throws Error::Usage when the sizes do not fit each other.
void CheckConfig(const NetConfig& config);
// Throws Error::Usage when the encoder is too small for net/attention_free.h to be written into it.
void CheckAttentionFree(const NetConfig& config);
// Width of a tile's vector, and of a board's, there.
int64_t AttentionFreeWidth(const NetConfig& config);
// Of the network with attention.
uint64_t CountParameters(const NetConfig& config);

// The sizes of a file's network: those that its config has, the others by the shapes of its
// weights. The number of heads has no shape: `num_heads` is for files without it, 0 for none.
// Throws Error.
NetConfig ConfigOf(const io::ModelFile& file, int num_heads = 0);
// The bins of the binned heads: the section `binning` of the file's config. Throws Error.
std::optional<BinningOptions> BinningOf(const io::ModelFile& file);
// A config.json that ConfigOf and BinningOf read back.
nlohmann::ordered_json ConfigTree(NetConfig config, std::optional<BinningOptions> binning);

}  // namespace kibitz::twenty48
