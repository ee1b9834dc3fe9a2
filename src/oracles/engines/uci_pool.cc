#include "oracles/engines/uci_pool.h"

#include "base/error.h"
#include "base/log.h"

namespace kibitz::oracles {

UciPool::UciPool(EngineSpec spec, const PoolOptions& options)
    : spec_(std::move(spec)), options_(options) {
  CHECK(options_.engines > 0 && options_.tries > 0);
  free_.resize(static_cast<size_t>(options_.engines));
}

std::unique_ptr<UciClient> UciPool::Take() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return !free_.empty(); });
  std::unique_ptr<UciClient> engine = std::move(free_.back());
  free_.pop_back();
  return engine;
}

void UciPool::GiveBack(std::unique_ptr<UciClient> engine) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(engine));
  }
  freed_.notify_one();
}

Answer UciPool::Ask(const GameSoFar& game, const Limits& limits) {
  return AskInOrder({&game, 1}, limits).front();
}

std::vector<Answer> UciPool::AskInOrder(std::span<const GameSoFar> games, const Limits& limits) {
  std::unique_ptr<UciClient> engine = Take();
  for (int tries = 1;; ++tries) {
    try {
      if (engine == nullptr) engine = std::make_unique<UciClient>(spec_);
      if (options_.forget) engine->NewGame();
      std::vector<Answer> answers;
      for (const GameSoFar& game : games) {
        answers.push_back(engine->Ask(game, limits));
        const std::string fault = options_.fault_of ? options_.fault_of(answers.back()) : "";
        if (!fault.empty()) throw Error("engine {}: {}", engine->name(), fault);
      }
      GiveBack(std::move(engine));
      return answers;
    } catch (const Error& error) {
      engine.reset();
      const bool last = tries == options_.tries || error.kind() != Error::Kind::kFailed;
      if (last) GiveBack(nullptr);
      if (error.kind() == Error::Kind::kFailed) ++failures_;
      if (last) throw;
      LogWarn("{}\nrestarting it ({} of {} tries)", error.message(), tries + 1, options_.tries);
    }
  }
}

}  // namespace kibitz::oracles
