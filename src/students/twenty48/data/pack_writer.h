// Writes packs: from an oracle's games, or from other packs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kibitz::twenty48 {

struct PackOptions {
  int64_t shard_rows = 0;  // Max rows in a file; 0: one file.
  bool overwrite = false;  // Replace an existing pack.
  bool skip_bad = false;   // Leave out games with a fault instead of throwing.
  int threads = 1;
};

struct PackReport {
  uint64_t runs = 0;
  uint64_t rows = 0;
  uint64_t shards = 0;
  std::vector<std::string> skipped;  // The faults of the games left out, with file and line.
};

// Packs all games below the folder, in order of their paths. Throws Error at the first game with a
// fault, unless options.skip_bad, and leaves no files then.
PackReport PackRawGames(const std::string& raws, const std::string& out,
                        const PackOptions& options);

// Joins packs: their runs in order, renumbered.
PackReport MergePacks(const std::vector<std::string>& packs, const std::string& out,
                      const PackOptions& options);

}  // namespace kibitz::twenty48
