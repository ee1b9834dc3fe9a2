// Sets libtorch up for this machine and measures how fast it is. Debian's libtorch multiplies
// matrices a hundred times slower without OpenBLAS, and uses half the cores by default.
//
//   SetThreads(0);
//   RuntimeReport report = InspectRuntime();
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kibitz::learn {

// Threads for torch's own loops and for its matrix library; 0 = all cores this process may use.
// Call before the first operation.
void SetThreads(int threads);

// Restarts the program with two variables that libraries read before main, unless they are set.
// OMP_WAIT_POLICY=passive: OpenMP's threads do not spin while they wait (spinning was 7 times
// slower beside a compiler). OPENBLAS_CORETYPE, where OpenBLAS does not know the processor and
// falls back to old kernels (5 times slower; see BetterKernels). Call it first in main; it returns
// when there is nothing to do.
void StartWell(char** argv);

// What this processor can do that OpenBLAS has kernels for.
struct Instructions {
  bool avx2 = false;    // With FMA.
  bool avx512 = false;  // F, BW, DQ and VL.
};
// The kernels to ask for when OpenBLAS chose `chosen`; nothing when those are good.
std::optional<std::string> BetterKernels(std::string_view chosen, Instructions instructions);

// Keeps freed memory in the process: the next step allocates blocks of the same sizes, and getting
// them from the kernel took a third of a step. Does nothing without glibc.
void KeepFreedMemory();

// While it lives, OpenBLAS computes each matrix product on the calling thread: for code that splits
// products over torch's threads itself. OpenBLAS's own threads would compete with those for the
// cores. Other matrix libraries do this without help.
class OneThreadPerProduct {
 public:
  OneThreadPerProduct();
  ~OneThreadPerProduct();
  OneThreadPerProduct(const OneThreadPerProduct&) = delete;
  OneThreadPerProduct& operator=(const OneThreadPerProduct&) = delete;

 private:
  int before_ = 0;
};

struct RuntimeReport {
  std::string torch_version;
  std::string matrix_library;  // "openblas", "mkl", ..., as torch was built or is linked.
  std::string kernels;         // Of OpenBLAS: the processor they are made for; or nothing.
  int threads = 0;
  int cuda_devices = 0;
  std::string bfloat16;  // What multiplies with training.use_amp: "AMX", "AVX-512 BF16" or nothing.
  double matmul_gflops = 0;  // f32 matrix product on the CPU with these threads.
  double plain_gflops = 0;   // The same product by a plain loop on one thread, for scale.
};

// Measures for about a second.
RuntimeReport InspectRuntime();

}  // namespace kibitz::learn
