#include "io/weights/state_dict.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace kibitz::io {
namespace {

using Kind = Value::Kind;

constexpr std::string_view kCompiled = "_orig_mod.";
constexpr std::string_view kParallel = "module.";

const Value& ModelPart(const Value& root) {
  for (std::string_view key : {"model_state_dict", "state_dict", "model"}) {
    for (const auto& [name, value] : root.pairs()) {
      if (name.Is(Kind::kString) && name.AsText() == key && value.Is(Kind::kDict)) return value;
    }
  }
  return root;
}

void Collect(const Value& dict, const std::string& prefix, std::vector<NamedTensor>& out) {
  for (const auto& [key, value] : dict.pairs()) {
    std::string name = prefix;
    if (key.Is(Kind::kString)) {
      name += key.AsText();
    } else if (key.Is(Kind::kInt)) {
      name += fmt::format("{}", key.AsInt());
    } else {
      continue;
    }
    if (value.Is(Kind::kDict)) {
      Collect(value, name + ".", out);
    } else if (value.Is(Kind::kTensor)) {
      out.push_back({std::move(name), value.AsTensor()});
    }
  }
}

// Removes "_orig_mod." where a component of the name begins.
std::string WithoutCompiled(std::string name) {
  size_t at = 0;
  while ((at = name.find(kCompiled, at)) != std::string::npos) {
    if (at == 0 || name[at - 1] == '.') {
      name.erase(at, kCompiled.size());
    } else {
      at += kCompiled.size();
    }
  }
  return name;
}

}  // namespace

StateDict StateDict::From(const Value& root, const std::string& place) {
  if (!root.Is(Kind::kDict)) {
    throw Error("{}: found {}, expected a dict of tensors", place, Describe(root));
  }
  std::vector<NamedTensor> tensors;
  Collect(ModelPart(root), "", tensors);
  if (tensors.empty()) {
    throw Error(
        "{}: found no tensors in {}, expected a dict of them at the top or under "
        "'model_state_dict', 'state_dict' or 'model'",
        place, Describe(root));
  }
  for (NamedTensor& tensor : tensors) tensor.name = WithoutCompiled(std::move(tensor.name));
  const bool parallel = std::ranges::all_of(
      tensors, [](const NamedTensor& tensor) { return tensor.name.starts_with(kParallel); });
  if (parallel) {
    for (NamedTensor& tensor : tensors) tensor.name.erase(0, kParallel.size());
  }
  return {std::move(tensors), place};
}

StateDict::StateDict(std::vector<NamedTensor> tensors, std::string place)
    : tensors_(std::move(tensors)), place_(std::move(place)) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!index_.emplace(tensors_[i].name, i).second) {
      throw Error("{}: two tensors are called {}", place_, Quoted(tensors_[i].name));
    }
  }
}

const Tensor* StateDict::Find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second].tensor;
}

const Tensor& StateDict::Get(std::string_view name) const {
  if (const Tensor* found = Find(name)) return *found;
  std::vector<std::string> known;
  for (const NamedTensor& tensor : tensors_) known.push_back(tensor.name);
  const auto nearest = NearestName(name, known);
  throw Error("{}: found no tensor {} among {}{}; is this the right kind of model?", place_,
              Quoted(name), known.size(), nearest ? ", the nearest is " + Quoted(*nearest) : "");
}

std::vector<float> StateDict::Floats(std::string_view name,
                                     const std::vector<int64_t>& shape) const {
  const Tensor& tensor = Get(name);
  if (tensor.shape != shape) {
    throw Error("{}: {} is {}, expected {}; is the config the file's?", place_, name,
                ShapeText(tensor.shape), ShapeText(shape));
  }
  return ToFloats(tensor);
}

void StateDict::CheckFinite() const {
  for (const auto& [name, tensor] : tensors_) {
    if (AllFinite(tensor)) continue;
    throw Error(
        "{}: tensor {} has a weight that is NaN or infinite; the training went wrong or the file "
        "is "
        "damaged: use another checkpoint",
        place_, Quoted(name));
  }
}

Value ToDict(const std::vector<NamedTensor>& tensors) {
  Value::Pairs pairs;
  for (const NamedTensor& item : tensors) {
    pairs.emplace_back(Value::String(item.name), Value::Of(item.tensor));
  }
  return Value::Dict(std::move(pairs));
}

}  // namespace kibitz::io
