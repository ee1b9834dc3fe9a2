// Making packs: from an oracle's games, and from other packs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kibitz::twenty48 {

struct PackOptions {
  int64_t shard_rows = 0;  // Most rows in a file; 0: one file.
  bool overwrite = false;  // Replace a pack that is there.
  bool skip_bad = false;   // Leave out games with something wrong, instead of refusing.
  int threads = 1;
};

struct PackReport {
  uint64_t runs = 0;
  uint64_t rows = 0;
  uint64_t shards = 0;
  std::vector<std::string> skipped;  // What was wrong with the games left out, with file and line.
};

// Packs all games below the folder, in order of their paths. Throws Error at the first that is not
// as it must be, unless options.skip_bad; nothing is left behind then.
PackReport PackRawGames(const std::string& raws, const std::string& out,
                        const PackOptions& options);

// One pack of several: their runs in order, numbered anew.
PackReport MergePacks(const std::vector<std::string>& packs, const std::string& out,
                      const PackOptions& options);

}  // namespace kibitz::twenty48
