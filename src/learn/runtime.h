// libtorch set up for this machine, and a look at whether it is set up well. Debian's libtorch
// without OpenBLAS multiplies matrices a hundred times slower, and takes half the cores by
// default: both show here before they show as a slow training run.
#pragma once

#include <string>

namespace kibitz::learn {

// Threads for torch's own loops and for its matrix library; 0 = all cores this process may use.
// Call before the first operation.
void SetThreads(int threads);

// Starts the program anew with variables that libraries read before main, unless they are set.
// First thing in main; returns when there is nothing to do.
//   OMP_WAIT_POLICY=passive: OpenMP's threads would otherwise spin while they wait and, on a
//   machine
// with other work, hold up each other (measured: 7 times slower beside a compiler).
//   OPENBLAS_CORETYPE: OpenBLAS takes a processor younger than itself for a Prescott of 2004 and
// multiplies without AVX (measured on model 207: a training step at half the speed).
void SetUpLibraries(char** argv);

// Keeps freed memory in the process for the next step, which wants blocks of the same sizes:
// getting them from the kernel each time took a third of a training step. Nothing where the C
// library is not glibc.
void KeepFreedMemory();

// While it lives, OpenBLAS computes each matrix product on the calling thread: for code that splits
// products over torch's threads itself. OpenBLAS would otherwise wake threads of its own, and the
// two kinds fight for the cores. Other libraries see by themselves that they are called from such a
// thread.
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
  int threads = 0;
  int cuda_devices = 0;
  double matmul_gflops = 0;  // f32 matrix product on the CPU with these threads.
  double plain_gflops = 0;   // The same product by a plain loop on one thread, for scale.
};

// Measures for about a second.
RuntimeReport InspectRuntime();

}  // namespace kibitz::learn
