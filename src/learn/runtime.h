// libtorch set up for this machine, and a look at whether it is set up well. Debian's libtorch
// without OpenBLAS multiplies matrices a hundred times slower, and takes half the cores by
// default: both show here before they show as a slow training run.
#pragma once

#include <string>

namespace kibitz::learn {

// Threads for torch's own loops and for its matrix library; 0 = all cores this process may use.
// Call before the first operation.
void SetThreads(int threads);

struct RuntimeReport {
  std::string torch_version;
  std::string matrix_library;  // "openblas", "mkl", ..., as torch was built or is linked.
  int threads = 0;
  int cuda_devices = 0;
  double matmul_gflops = 0;  // f32 matrix product on the CPU with these threads.
  double plain_gflops = 0;   // The same product by a plain loop on one thread, for scale.
};

// Measures for about a second.
RuntimeReport InspectRuntime();

}  // namespace kibitz::learn
