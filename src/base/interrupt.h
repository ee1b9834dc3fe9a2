// Ctrl-C. The first one asks: long loops see Interrupted() and stop at a clean place, saving what
// they have. The second one ends the process at once; files are safe either way (atomic_file.h).
#pragma once

namespace kibitz {

// For main(): SIGINT, SIGTERM and SIGHUP set the flag instead of ending the process; nohup still
// works. A write beyond the limit on file sizes (SIGXFSZ) becomes an error of that write.
void CatchInterrupts();

bool Interrupted();
// The signal that came first; 0: none.
int InterruptSignal();

// Throws Error of kind kInterrupted when Ctrl-C was pressed: for work with nothing to save.
void ThrowIfInterrupted();

}  // namespace kibitz
