#include <fmt/format.h>

#include "cli/json_output.h"
#include "cli/train_commands.h"
#include "learn/runtime.h"

namespace kibitz::cli {

int Run(const TrainCheckOptions& options, const Context& context) {
  learn::SetThreads(options.threads);
  const learn::RuntimeReport report = learn::InspectRuntime();
  const bool good = report.matmul_gflops > 4 * report.plain_gflops;
  if (context.json) {
    PrintJson({{"torch", report.torch_version},
               {"matrix_library", report.matrix_library},
               {"kernels", report.kernels},
               {"threads", report.threads},
               {"cuda_devices", report.cuda_devices},
               {"bfloat16", report.bfloat16},
               {"matmul_gflops", report.matmul_gflops},
               {"plain_gflops", report.plain_gflops},
               {"good", good}});
    return good ? 0 : 1;
  }
  const std::string kernels =
      report.kernels.empty() ? "" : fmt::format(" ({} kernels)", report.kernels);
  fmt::print("torch {} with {}{}, {} threads, {} CUDA devices{}\n", report.torch_version,
             report.matrix_library, kernels, report.threads, report.cuda_devices,
             report.bfloat16.empty() ? "" : fmt::format(", {} for use_amp", report.bfloat16));
  fmt::print("matrix product {:.1f} GFLOP/s, {:.0f} times a plain loop\n", report.matmul_gflops,
             report.matmul_gflops / report.plain_gflops);
  fmt::print("{}\n", good ? "good" : "slow: install libopenblas-dev and check again");
  return good ? 0 : 1;
}

}  // namespace kibitz::cli
