// Random weights of 2048 networks, for tests without torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "io/weights/model_file.h"
#include "students/twenty48/data/net_config.h"
#include "students/twenty48/data/tuples.h"

namespace kibitz::testing {

class RandomTwenty48 {
 public:
  explicit RandomTwenty48(uint64_t seed)
      : rng_({.seed = seed, .purpose = Purpose("random 2048")}) {}

  // The warm start of the encoder over tiles.
  io::StateDict AttentionFree(const twenty48::NetConfig& config) {
    const int64_t g = twenty48::AttentionFreeWidth(config);
    const int64_t f = config.intermediate_size;
    Add("table.weight", {16 * 17, g});
    Add("mix.weight", {g, g});
    for (int i = 0; i + 1 < config.num_hidden_layers; ++i) {
      Add(fmt::format("gates.{}.weight", i), {f, g});
      Add(fmt::format("ups.{}.weight", i), {f, g});
      Add(fmt::format("downs.{}.weight", i), {g, f});
    }
    Add("head.weight", {4 * config.bins(), g});
    Add("head.bias", {4 * config.bins()});
    return io::StateDict(std::move(tensors_), "random weights");
  }

  // The tuple network, or its warm start without attention.
  io::StateDict Tuples(const twenty48::NetConfig& config, bool attention) {
    const int64_t d = config.hidden_size;
    const int64_t f = config.intermediate_size;
    const int64_t e = config.tuple_width;
    Add("tuples.weight", {twenty48::kTuples * twenty48::kTupleEntries, e});
    Add("tiles.weight", {16 * 17, d});
    Add("board_proj.weight", {d, twenty48::kTuples * e});
    if (attention) {
      Add("tuple_proj", {twenty48::kTuples, e, d});
      Add("positions.weight", {twenty48::kTupleRows - 1, d});
    }
    for (int i = 0; i < config.num_hidden_layers; ++i) {
      if (attention) AddAttention(fmt::format("blocks.{}.attn", i), config);
      Add(fmt::format("blocks.{}.mlp_norm.weight", i), {d});
      Add(fmt::format("blocks.{}.mlp.w_gate.weight", i), {f, d});
      Add(fmt::format("blocks.{}.mlp.w_up.weight", i), {f, d});
      Add(fmt::format("blocks.{}.mlp.w_down.weight", i), {d, f});
    }
    Add("final_ln.weight", {d});
    for (int move = 0; move < 4; ++move) {
      Add(fmt::format("ev_heads.{}.weight", move), {config.bins(), d});
      Add(fmt::format("ev_heads.{}.bias", move), {config.bins()});
    }
    return io::StateDict(std::move(tensors_), "random weights");
  }

 private:
  void AddAttention(const std::string& name, const twenty48::NetConfig& config) {
    const int64_t d = config.hidden_size;
    const int64_t kv = int64_t{config.kv_heads()} * config.head_width();
    Add(name + "_norm.weight", {d});
    Add(name + ".wq.weight", {d, d});
    Add(name + ".wk.weight", {kv, d});
    Add(name + ".wv.weight", {kv, d});
    Add(name + ".wo.weight", {d, d});
  }
  void Add(const std::string& name, const std::vector<int64_t>& shape) {
    std::vector<float> values(*io::CountOf(shape));
    for (float& value : values) value = static_cast<float>(0.2 * rng_.Normal());
    const auto bytes = std::as_bytes(std::span(values));
    tensors_.push_back(
        {name, io::OwnedTensor(io::DType::kF32, shape, {bytes.begin(), bytes.end()})});
  }

  Rng rng_;
  std::vector<io::NamedTensor> tensors_;
};

// Sizes that both take.
inline twenty48::NetConfig SmallTwenty48() {
  return {.hidden_size = 96,
          .num_hidden_layers = 3,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .intermediate_size = 280};
}

}  // namespace kibitz::testing
