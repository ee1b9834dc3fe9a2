#include "students/twenty48/data/pack.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "games/twenty48/slide.h"
#include "io/tables/sqlite.h"

namespace kibitz::twenty48 {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ReadValuationTypes(const std::string& path) {
  const Config config = LoadConfig(path);
  std::vector<std::string> names(config.tree.size());
  for (const auto& [name, number] : config.tree.items()) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= names.size() ||
        !names[number.get<size_t>()].empty()) {
      throw Error("{}: {} is {}, expected the numbers 0 to {}, each once", path, Quoted(name),
                  number.dump(), names.size() - 1);
    }
    names[number.get<size_t>()] = name;
  }
  return names;
}

}  // namespace

Pack Pack::Open(const std::string& folder) {
  Pack pack;
  pack.folder_ = folder;
  pack.OpenShards();
  pack.ReadRuns();
  pack.valuation_types_ = ReadValuationTypes(folder + "/valuation_types.json");
  return pack;
}

void Pack::OpenShards() {
  std::vector<std::string> paths;
  if (!fs::is_directory(folder_)) throw Error("{}: no such folder; expected a pack", folder_);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name == "steps.npy" || (name.starts_with("steps-") && name.ends_with(".npy"))) {
      paths.push_back(entry.path().string());
    }
  }
  std::ranges::sort(paths);
  if (paths.empty()) {
    throw Error("{}: no steps.npy and no steps-*.npy; make a pack with 'kibitz 2048 pack'",
                folder_);
  }
  if (paths.size() > 1 && fs::exists(folder_ + "/steps.npy")) {
    throw Error("{}: has steps.npy and steps-*.npy, expected one or the other; remove the older",
                folder_);
  }
  uint64_t rows = 0;
  for (const std::string& path : paths) {
    Shard shard{.file = io::NpyFile::Open(path), .begin = rows};
    const io::NpyLayout& layout = shard.file.layout();
    if (layout != AlignedLayout() && layout != PackedLayout()) {
      throw Error("{}: rows are {}, expected {}", path, layout.Text(), AlignedLayout().Text());
    }
    if (shard.file.shape().size() != 1) throw Error("{}: expected a list of rows", path);
    rows += shard.file.rows();
    shard.end = rows;
    shards_.push_back(std::move(shard));
  }
}

void Pack::ReadRuns() {
  io::SqliteDb db(folder_ + "/metadata.db", io::SqliteDb::Mode::kRead);
  auto rows = db.Prepare("SELECT id, seed, steps, max_score, highest_tile FROM runs ORDER BY id");
  while (rows.Step()) {
    runs_.push_back({.id = static_cast<uint32_t>(rows.Int(0)),
                     .seed = rows.Int(1),
                     .steps = rows.Int(2),
                     .max_score = rows.Int(3),
                     .highest_tile = rows.Int(4)});
  }
}

StepRow Pack::Row(uint64_t index) const {
  const auto shard = std::ranges::upper_bound(shards_, index, {}, &Shard::end);
  CHECK(shard != shards_.end());
  const size_t bytes = shard->file.layout().row_bytes;
  const std::span<const std::byte> place =
      shard->file.bytes().subspan((index - shard->begin) * bytes, bytes);
  if (bytes != sizeof(StepRow)) return FromPackedBytes(place);
  StepRow row;
  std::memcpy(&row, place.data(), sizeof(row));
  return row;
}

std::string ProblemOf(const StepRow& row) {
  const Board board = BoardOf(row);
  const unsigned legal = LegalMoves(board);
  if ((legal & ~unsigned{row.ev_legal}) != 0) {
    return fmt::format("ev_legal is {}, but the board's legal moves are {}", row.ev_legal, legal);
  }
  if (row.move_dir > 3 || (legal >> row.move_dir & 1) == 0) {
    return fmt::format("move_dir is {}, which is not legal", row.move_dir);
  }
  if (row.max_rank != board.MaxRank()) {
    return fmt::format("max_rank is {}, the board's is {}", row.max_rank, board.MaxRank());
  }
  for (float value : row.branch_evs) {
    if (!std::isfinite(value)) return "a value of branch_evs is infinite or NaN";
  }
  return "";
}

void Pack::CheckRows() const {
  std::unordered_set<uint32_t> known;
  for (const RunInfo& run : runs_) known.insert(run.id);
  for (const Shard& shard : shards_) {
    for (uint64_t i = shard.begin; i < shard.end; ++i) {
      const StepRow row = Row(i);
      std::string problem = ProblemOf(row);
      if (!known.contains(row.run_id)) {
        problem = fmt::format("run_id is {}, which metadata.db does not have", row.run_id);
      } else if (row.valuation_type >= valuation_types_.size()) {
        problem = fmt::format("valuation_type is {}, valuation_types.json has {}",
                              row.valuation_type, valuation_types_.size());
      }
      if (!problem.empty()) {
        throw Error("{}, row {}: {}", shard.file.name(), i - shard.begin, problem);
      }
    }
  }
}

std::vector<uint32_t> Pack::SelectRuns(const std::string& sql,
                                       const std::vector<std::string>& parameters) const {
  io::SqliteDb db(folder_ + "/metadata.db", io::SqliteDb::Mode::kRead);
  io::SqliteStatement rows = db.Prepare(sql);
  int number = 0;
  for (const std::string& text : parameters) {
    ++number;
    if (const std::optional<int64_t> whole = ParseInt(text)) {
      rows.Bind(number, *whole);
    } else if (const std::optional<double> real = ParseDouble(text)) {
      rows.Bind(number, *real);
    } else {
      rows.Bind(number, std::string_view(text));
    }
  }
  std::vector<uint32_t> ids;
  while (rows.Step()) ids.push_back(static_cast<uint32_t>(rows.Int(0)));
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace kibitz::twenty48
