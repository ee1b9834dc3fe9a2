// Buffers that threads borrow for a task and give back, so that each is allocated once.
//
//   Workspaces<Workspace> workspaces;
//   team.Run(tasks, [&](int64_t task) {
//     workspaces.Borrow([&](Workspace& space) { Compute(task, space); });
//   });
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kibitz::nn {

template <typename Workspace>
class Workspaces {
 public:
  // Calls use(workspace) with one that no other thread has. Safe from any thread.
  template <typename Use>
  void Borrow(Use&& use) {
    std::unique_ptr<Workspace> space = Take();
    std::forward<Use>(use)(*space);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(space));
  }

 private:
  std::unique_ptr<Workspace> Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Workspace> space = std::move(free_.back());
        free_.pop_back();
        return space;
      }
    }
    return std::make_unique<Workspace>();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;  // Guarded by mutex_.
};

}  // namespace kibitz::nn
