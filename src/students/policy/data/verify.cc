#include "students/policy/data/verify.h"

#include <algorithm>
#include <bit>
#include <filesystem>

#include "base/interrupt.h"
#include "base/progress.h"
#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"

namespace kibitz::policy {
namespace {

constexpr uint64_t kHashesAtOnce = uint64_t{1} << 25;  // 256 MB of them.

}  // namespace

// A friend of SplitData: checks offsets before it uses them.
class Verifier {
 public:
  Verifier(const Dataset& data, const VerifyOptions& options)
      : data_(data), options_(options), progress_("positions", data.positions()) {}

  VerifyReport Run() {
    if (options_.checksums) CheckFiles();
    for (Split split : kSplits) {
      const SplitData& part = data_.split(split);
      report_.splits[static_cast<size_t>(split)] = {part.size(), part.analyses()};
      if (CheckOffsets(split, part)) CheckPositions(split, part);
    }
    if (data_.positions() == 0) Fault("data sets without a position", data_.folder());
    FindDoubles();
    progress_.Finish();
    return report_;
  }

 private:
  void Fault(const std::string& what, const std::string& place) {
    Finding& finding = report_.faults[what];
    if (finding.count++ == 0) finding.first = place;
  }
  static std::string Place(Split split, uint64_t index) {
    return fmt::format("{}, position {}", NameOf(split), index);
  }

  void CheckFiles() {
    if (!data_.manifest()) return;
    for (const auto& [name, state] : data_.manifest()->files) {
      const std::string path = data_.folder() + "/" + name;
      const uint64_t bytes = std::filesystem::file_size(path);
      if (StateOfFile(path, bytes - state.bytes) != state) {
        Fault("files that differ from the manifest", path);
      }
    }
  }

  // Whether the analyses of each position can be found.
  bool CheckOffsets(Split split, const SplitData& part) {
    uint64_t offset = 0;
    bool good = true;
    for (uint64_t i = 0; i < part.size(); ++i) {
      if (!part.positions_.empty()) {
        if (i % kIndexStep == 0 && part.index_[i / kIndexStep] != offset) {
          Fault("offsets that are not the sum of the counts before them", Place(split, i));
          return false;
        }
        offset += part.positions_[i].analyses;
        continue;
      }
      const uint64_t next = part.OffsetOf(i + 1);
      if (part.OffsetOf(i) != offset || next < offset) {
        Fault("offsets that decrease or do not start at 0", Place(split, i));
        good = false;
      }
      offset = std::max(offset, next);
    }
    if (offset != part.analyses()) {
      Fault("counts that do not add up to the number of analyses", std::string(NameOf(split)));
      return false;
    }
    return good;
  }

  void CheckPositions(Split split, const SplitData& part) {
    const uint64_t step =
        std::max<uint64_t>(1, part.size() / std::max<uint64_t>(1, options_.legal_sample));
    const uint64_t phase =
        Rng({.seed = options_.seed, .purpose = Purpose("policy verify")}).Below(step);
    std::vector<Analysis> scratch;
    uint64_t last_hash = 0;
    for (uint64_t i = 0; i < part.size(); ++i) {
      if (i % 65536 == 0) ThrowIfInterrupted();
      progress_.Add(1);
      const std::optional<Sample> sample = Read(split, part, i, scratch);
      if (!sample) continue;
      const uint64_t hash = HashOf(sample->position);
      CheckPlace(split, i, hash, last_hash);
      last_hash = hash;
      CheckRanges(split, i, sample->analyses);
      if (options_.legal_sample > 0 && i % step == phase) CheckLegal(split, i, *sample);
      CountDepth(sample->analyses);
    }
  }

  std::optional<Sample> Read(Split split, const SplitData& part, uint64_t i,
                             std::vector<Analysis>& scratch) {
    const bool zero =
        part.positions_.empty()
            ? std::all_of(part.planes_.begin() + static_cast<std::ptrdiff_t>(i * 832),
                          part.planes_.begin() + static_cast<std::ptrdiff_t>(i * 832 + 832),
                          [](uint8_t byte) { return byte == 0; })
            : part.positions_[i].occupied_bits() == 0;
    if (zero) {
      Fault("rows of zeros", Place(split, i));
      return std::nullopt;
    }
    const Result<Sample> sample = part.TryAt(i, scratch);
    if (sample && IsSound(sample->position)) return *sample;
    Fault("invalid positions (not one king each, a castling right without its rook, ...)",
          Place(split, i));
    return std::nullopt;
  }

  // As Precompute writes them: in the order of the hash, each in its own split.
  void CheckPlace(Split split, uint64_t i, uint64_t hash, uint64_t last_hash) {
    if (!data_.manifest() || data_.manifest()->input["files"].empty()) return;
    if (hash < last_hash) Fault("positions out of order", Place(split, i));
    if (SplitOf(hash, data_.manifest()->shares) != split) {
      Fault("positions in another split than their own", Place(split, i));
    }
  }

  void CheckRanges(Split split, uint64_t i, std::span<const Analysis> analyses) {
    for (const Analysis& analysis : analyses) {
      if (analysis.move >= data_.vocabulary().size()) {
        Fault("moves outside the vocabulary", Place(split, i));
      }
      if (analysis.depth() == 0) Fault("analyses of depth 0", Place(split, i));
    }
  }

  void CheckLegal(Split split, uint64_t i, const Sample& sample) {
    const chess::Board board = BoardOf(sample.position);
    const chess::Color mover = board.side_to_move();
    if ((board.AttackersOf(board.KingOf(~mover), board.occupied()) & board.pieces(mover)) != 0) {
      Fault("positions with the side not to move in check", Place(split, i));
      return;
    }
    const chess::MoveList legal = LegalMoves(board);
    for (const Analysis& analysis : sample.analyses) {
      if (analysis.move >= data_.vocabulary().size()) continue;
      ++report_.legal_checked;
      const MoveWord word = data_.vocabulary()[analysis.move];
      const bool found = std::any_of(legal.begin(), legal.end(),
                                     [&](chess::Move move) { return WordOf(move) == word; });
      if (!found) {
        Fault("illegal moves",
              fmt::format("{}: {} in {}", Place(split, i), word.Text(), chess::ToFen(board)));
      }
    }
  }

  void CountDepth(std::span<const Analysis> analyses) {
    const int deepest = DeepestOf(analyses);
    ++report_.deepest[deepest];
    if (analyses.empty()) return;
    std::optional<uint16_t> move;
    bool soft = false;
    for (const Analysis& analysis : analyses) {
      if (analysis.depth() != deepest) continue;
      soft = soft || (move && *move != analysis.move);
      move = analysis.move;
    }
    ++(soft ? report_.soft : report_.hard);
  }

  // Over all splits, in passes: each sorts the hashes that begin with the same bits.
  void FindDoubles() {
    const uint64_t passes = std::bit_ceil(data_.positions() / kHashesAtOnce + 1);
    const int bits = std::countr_zero(passes);
    std::vector<Analysis> scratch;
    for (uint64_t pass = 0; pass < passes; ++pass) {
      std::vector<std::pair<uint64_t, uint64_t>> hashes;  // With split and index.
      for (Split split : kSplits) {
        const SplitData& part = data_.split(split);
        for (uint64_t i = 0; i < part.size(); ++i) {
          if (i % 65536 == 0) ThrowIfInterrupted();
          const std::optional<uint64_t> hash = Hash(part, i);
          if (!hash || (bits > 0 && *hash >> (64 - bits) != pass)) continue;
          hashes.emplace_back(*hash, i << 2 | static_cast<uint64_t>(split));
        }
      }
      std::sort(hashes.begin(), hashes.end());
      for (size_t i = 1; i < hashes.size(); ++i) {
        if (hashes[i].first != hashes[i - 1].first) continue;
        const auto place = [](uint64_t where) {
          return Place(static_cast<Split>(where & 3), where >> 2);
        };
        Fault("duplicate positions",
              place(hashes[i - 1].second) + " and " + place(hashes[i].second));
      }
    }
  }
  static std::optional<uint64_t> Hash(const SplitData& part, uint64_t i) {
    if (!part.positions_.empty()) return HashOf(part.positions_[i]);
    const Result<PackedPosition> position = part.PositionFromPlanes(i);
    if (!position) return std::nullopt;  // Already a fault.
    return HashOf(*position);
  }

  const Dataset& data_;
  VerifyOptions options_;
  Progress progress_;
  VerifyReport report_;
};

uint64_t VerifyReport::AtLeast(int depth) const {
  uint64_t sum = 0;
  for (auto at = deepest.lower_bound(depth); at != deepest.end(); ++at) sum += at->second;
  return sum;
}

VerifyReport Verify(const Dataset& data, const VerifyOptions& options) {
  return Verifier(data, options).Run();
}

}  // namespace kibitz::policy
