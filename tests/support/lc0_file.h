// Small lc0 networks with random weights, in lc0's own file format: for tests where no real one is.
#pragma once

#include <cstdint>
#include <string>

namespace kibitz::testing {

struct Lc0Spec {
  int filters = 8;
  int blocks = 2;
  int squeeze = 4;  // Channels of squeeze-and-excitation; 0: none.
  bool convolutional_policy = true;
  bool wdl = true;
  // Format numbers as the file names them.
  int encoding = 1;   // LINEAR16
  int input = 1;      // 112 classical planes
  int structure = 4;  // SE with head formats; 3 without squeeze.
  int policy = 0;     // 0: as convolutional_policy says.
  int activation = 0;
  bool attention = false;  // Adds a field of attention layers.
  uint64_t seed = 1;
};

// The bytes of a .pb file, not packed.
std::string Lc0Bytes(const Lc0Spec& spec);

void WriteLc0File(const std::string& path, const Lc0Spec& spec = {});

}  // namespace kibitz::testing
