// Converts weights between .pt and .safetensors without loss in either direction.
//
//   ConvertPtToSafetensors("run.pt", "run.safetensors");
//   ConvertSafetensorsToPt("run.safetensors", "again.pt");
//
// A plain state dict keeps its names. In a checkpoint, tensors below the top get dotted names
// ("model_state_dict.head.weight"); every other value at the top becomes metadata under its own
// key, as JSON text, in which {"$tensor": name} stands for a tensor. JSON has fewer types than
// Python, so {"$tuple": [...]}, {"$set": [...]}, {"$dict": [[key, value], ...]} (keys that are not
// strings), {"$bytes": hex}, {"$float": "nan"} and {"$opaque": {...}} stand for the rest. The
// metadata "kibitz.values" lists the keys that hold such JSON.
#pragma once

#include <string>
#include <vector>

#include "io/weights/safetensors.h"
#include "io/weights/value.h"

namespace kibitz::io {

struct FlatWeights {
  std::vector<NamedStoredTensor> tensors;
  Metadata metadata;
};

// `root` must be a dict with strings as keys. Throws Error, naming `place`.
FlatWeights Flatten(const Value& root, const std::string& place);

// The inverse of Flatten. A file of another program becomes a dict of its tensors; its metadata,
// beyond "format", a dict under "__metadata__".
Value Unflatten(const Safetensors& content, const std::string& place);

// The second throws Error when the file holds opaque values, which WritePt does not write.
void ConvertPtToSafetensors(const std::string& from, const std::string& to);
void ConvertSafetensorsToPt(const std::string& from, const std::string& to);

}  // namespace kibitz::io
