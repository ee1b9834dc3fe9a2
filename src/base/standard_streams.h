// Standard input, output and error when they are closed, full or broken.
//
//   ReserveStandardStreams();   // The first thing in main().
#pragma once

#include <string_view>

namespace kibitz {

// Opens /dev/null for those that are closed: else the first files we open would get their numbers,
// and what we print would land in them. Writing to a standard output that was closed still fails.
void ReserveStandardStreams();

// Writes to standard error. What cannot be written is lost: there is nowhere left to tell.
void PrintToStderr(std::string_view text);

}  // namespace kibitz
