#include "learn/parallel.h"

#include <torch/torch.h>

#include <algorithm>
#include <atomic>

#include "learn/runtime.h"

namespace kibitz::learn {

void ForEachTask(int64_t count, const std::function<void(int64_t)>& task) {
  const OneThreadPerProduct one_thread;
  const int64_t threads = std::min<int64_t>(count, at::get_num_threads());
  std::atomic<int64_t> next = 0;
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    const torch::NoGradGuard no_grad;
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t index = next++; index < count; index = next++) task(index);
    }
  });
}

void ForEachPiece(int64_t size, int64_t piece, const std::function<void(int64_t, int64_t)>& task) {
  ForEachTask((size + piece - 1) / piece,
              [&](int64_t index) { task(index * piece, std::min(size, (index + 1) * piece)); });
}

}  // namespace kibitz::learn
