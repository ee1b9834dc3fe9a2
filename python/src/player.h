// Players as Python sees them: any player by its name, its network where it has one, and thoughts
// as streams of events.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <stop_token>

namespace kibitz::python {

// Runs `work` on another thread without the interpreter lock, and waits. Ctrl-C in Python stops the
// work through the token and raises KeyboardInterrupt.
void RunUnlocked(const std::function<void(std::stop_token)>& work);

void AddPlayer(pybind11::module_& module);

}  // namespace kibitz::python
