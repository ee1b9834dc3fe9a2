#include "base/interrupt.h"

#include <atomic>
#include <csignal>

#include "base/error.h"

namespace kibitz {
namespace {

std::atomic<int> interrupted{0};                       // The signal.
static_assert(std::atomic<int>::is_always_lock_free);  // Safe in a signal handler.

void OnSignal(int signal) {
  int none = 0;
  if (!interrupted.compare_exchange_strong(none, signal)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // Blocking reads return, so that their loops can look.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    sigaction(SIGHUP, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);
}

bool Interrupted() { return interrupted != 0; }
int InterruptSignal() { return interrupted; }

void ThrowIfInterrupted() {
  if (Interrupted()) throw Error("interrupted", Error::Kind::kInterrupted);
}

}  // namespace kibitz
