// A data set in the other storage, or with another vocabulary.
#pragma once

#include <string>

#include "students/policy/data/dataset_files.h"

namespace kibitz::policy {

struct ExportOptions {
  Storage storage = Storage::kPlanes;
  // Planes only: moves are numbered by this vocabulary (a .npy), others are left out. Empty: the
  // full one. Packed rows always have the full one.
  std::string vocabulary = {};
};

// Throws Error; of kind kInterrupted after Ctrl-C, with no data set written.
Manifest Export(const std::string& from, const std::string& out, const ExportOptions& options);

}  // namespace kibitz::policy
