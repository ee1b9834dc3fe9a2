// lc0's weight files (.pb.gz, .pb) as named tensors. Names are those of lc0's net.proto:
// "input.weights", "residual.0.conv1.bn_means", "residual.0.se.w1", "ip_pol_w". The file has no
// shapes, so every tensor is a list.
//
//   const Lc0Content content = ReadLc0File("maia-1500.pb.gz");
//   content.config["model"]["blocks"];   // 6
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/weights/named_tensor.h"

namespace kibitz::io {

struct Lc0Content {
  std::vector<NamedTensor> tensors;  // Of float32. The moves-left head is left out.
  // "model": "blocks", the file's format numbers "input", "structure", "policy", "value" and
  // "activation", and "attention", whether there are layers of an attention network, which are left
  // out. "license" where the file has one.
  nlohmann::ordered_json config;
};

// Whether the file, unpacked, begins as lc0's do. Throws Error when it cannot be read.
bool IsLc0File(const std::string& path);

// Throws Error when the file is damaged.
Lc0Content ReadLc0File(const std::string& path);
// The same from the bytes of an unpacked file; `place` names it in errors.
Lc0Content ParseLc0File(std::string_view bytes, const std::string& place);

}  // namespace kibitz::io
