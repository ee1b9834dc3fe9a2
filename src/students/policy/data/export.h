// Converts a data set to the other storage, or to another vocabulary.
#pragma once

#include <string>

#include "students/policy/data/manifest.h"

namespace kibitz::policy {

struct ExportOptions {
  Storage storage = Storage::kPlanes;
  // Planes only: a vocabulary (.npy) that numbers the moves; analyses of other moves are dropped.
  // Empty: the full one, which packed rows always have.
  std::string vocabulary = {};
};

// Throws Error; of kind kInterrupted after Ctrl-C, with no data set written.
Manifest Export(const std::string& from, const std::string& out, const ExportOptions& options);

}  // namespace kibitz::policy
