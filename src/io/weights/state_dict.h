// The weights of a model by name, found in whatever a training script wraps them in.
//
//   const StateDict weights = StateDict::From(ReadPt("run.pt"), "run.pt");
//   const Tensor& head = weights.Get("policy_head.weight");
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/weights/named_tensor.h"
#include "io/weights/value.h"

namespace kibitz::io {

class StateDict {
 public:
  // The tensors of a dict: those under "model_state_dict", "state_dict" or "model" when there is
  // such a dict at the top, else all of them. Nested dicts give dotted names; other values are
  // skipped. Prefixes of wrappers are removed: "_orig_mod." (torch.compile) anywhere, "module."
  // (data-parallel) at the start when every name has it. Throws Error, naming `place`, when there
  // is no tensor or two get one name.
  static StateDict From(const Value& root, const std::string& place);
  // Names as they are, such as those of a safetensors file.
  StateDict(std::vector<NamedTensor> tensors, std::string place);

  // In the file's order.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  // nullptr when there is none.
  const Tensor* Find(std::string_view name) const;
  // The same, or an Error that names the nearest.
  const Tensor& Get(std::string_view name) const;
  // Its numbers, or an Error when its shape is another.
  std::vector<float> Floats(std::string_view name, const std::vector<int64_t>& shape) const;
  // Throws Error that names the first tensor with a NaN or an infinity.
  void CheckFinite() const;
  // Where the weights come from, for messages.
  const std::string& place() const { return place_; }

 private:
  std::vector<NamedTensor> tensors_;
  std::string place_;
  std::unordered_map<std::string, size_t> index_;
};

// Tensors by name as a dict, for a file to be written.
Value ToDict(const std::vector<NamedTensor>& tensors);

}  // namespace kibitz::io
