#include "learn/runtime.h"

#include <dlfcn.h>
#include <torch/torch.h>
#include <torch/version.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "base/thread_pool.h"
#include "nn/kernels/amx.h"

namespace kibitz::learn {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// OpenBLAS is not linked by us: it stands behind libblas.so.3 when installed.
using SetOpenBlasThreads = void (*)(int);
using GetOpenBlasThreads = int (*)();
SetOpenBlasThreads FindOpenBlas() {
  static const auto found =
      reinterpret_cast<SetOpenBlasThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  return found;
}
GetOpenBlasThreads FindOpenBlasThreads() {
  static const auto found =
      reinterpret_cast<GetOpenBlasThreads>(dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return found;
}

// The processor that OpenBLAS has chosen its kernels for; empty without OpenBLAS.
std::string OpenBlasKernels() {
  using GetCoreName = const char* (*)();
  const auto get = reinterpret_cast<GetCoreName>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return get == nullptr ? "" : get();
}

Instructions ThisProcessor() {
#if defined(__x86_64__)
  return {
      .avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0,
      .avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0};
#else
  return {};
#endif
}

// Whether the variable was not set before.
bool SetIfMissing(const char* variable, const std::string& value) {
  return std::getenv(variable) == nullptr && setenv(variable, value.c_str(), 0) == 0;
}

double MeasureMatmul() {
  const torch::NoGradGuard no_grad;
  constexpr int64_t kSize = 768;
  const auto a = torch::randn({kSize, kSize});  // (N, N)
  const auto b = torch::randn({kSize, kSize});  // (N, N)
  auto product = torch::matmul(a, b);
  int64_t count = 0;
  const auto start = Clock::now();
  while (SecondsSince(start) < 0.4) {
    torch::matmul_out(product, a, b);
    ++count;
  }
  const double flops = 2.0 * kSize * kSize * kSize * static_cast<double>(count);
  return flops / SecondsSince(start) / 1e9;
}

double MeasurePlain() {
  constexpr size_t kSize = 192;
  std::vector<float> a(kSize * kSize, 1.5F);
  std::vector<float> b(kSize * kSize, 1.0F / kSize);
  std::vector<float> c(kSize * kSize, 0.0F);
  int64_t count = 0;
  const auto start = Clock::now();
  while (SecondsSince(start) < 0.2) {
    for (size_t i = 0; i < kSize; ++i) {
      for (size_t j = 0; j < kSize; ++j) {
        float sum = 0;
        for (size_t k = 0; k < kSize; ++k) sum += a[i * kSize + k] * b[k * kSize + j];
        c[i * kSize + j] = sum;
      }
    }
    a.swap(c);  // The next round depends on all of this one: nothing can be left out.
    ++count;
  }
  return 2.0 * kSize * kSize * kSize * static_cast<double>(count) / SecondsSince(start) / 1e9;
}

}  // namespace

void SetThreads(int threads) {
  if (threads <= 0) threads = HardwareThreads();
  at::set_num_threads(threads);
  if (const auto set = FindOpenBlas()) set(threads);
}

void StartWell(char** argv) {
  bool changed = SetIfMissing("OMP_WAIT_POLICY", "passive");
  // Blocks of memory in huge pages, where the kernel gives them to those who ask (madvise).
  changed |= SetIfMissing("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
  if (const auto kernels = BetterKernels(OpenBlasKernels(), ThisProcessor())) {
    changed |= SetIfMissing("OPENBLAS_CORETYPE", *kernels);
  }
  if (!changed) return;
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  execv(program.c_str(), argv);  // Comes back only when it fails, and then we are merely slower.
}

std::optional<std::string> BetterKernels(std::string_view chosen, Instructions instructions) {
  // Those from before AVX: what OpenBLAS takes for a processor that is newer than itself.
  static constexpr std::string_view kOld[] = {"Katmai", "Coppermine", "Northwood", "Prescott",
                                              "Banias", "Core2",      "Penryn",    "Dunnington",
                                              "Atom",   "Nano",       "Nehalem"};
  if (std::find(std::begin(kOld), std::end(kOld), chosen) == std::end(kOld)) return std::nullopt;
  if (instructions.avx512) return "SkylakeX";
  if (instructions.avx2) return "Haswell";
  return std::nullopt;
}

void KeepFreedMemory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);         // Large blocks come from the heap like all others ...
  mallopt(M_TRIM_THRESHOLD, -1);  // ... and the heap does not shrink.
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

OneThreadPerProduct::OneThreadPerProduct() {
  const auto get = FindOpenBlasThreads();
  const auto set = FindOpenBlas();
  if (get == nullptr || set == nullptr) return;
  before_ = get();
  if (before_ > 1) set(1);
}

OneThreadPerProduct::~OneThreadPerProduct() {
  if (before_ > 1) FindOpenBlas()(before_);
}

RuntimeReport InspectRuntime() {
  RuntimeReport report;
  report.torch_version = TORCH_VERSION;
  report.matrix_library = FindOpenBlas() != nullptr ? "openblas"
                          : at::hasMKL()            ? "mkl"
                                                    : "reference";
  report.kernels = OpenBlasKernels();
  report.threads = at::get_num_threads();
  report.cuda_devices = static_cast<int>(torch::cuda::device_count());
  if (nn::HasAvx512Bf16()) report.bfloat16 = nn::HasAmx() ? "AMX" : "AVX-512 BF16";
  report.matmul_gflops = MeasureMatmul();
  report.plain_gflops = MeasurePlain();
  return report;
}

}  // namespace kibitz::learn
