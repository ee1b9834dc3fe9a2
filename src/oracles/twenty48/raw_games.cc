#include "oracles/twenty48/raw_games.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "games/twenty48/slide.h"
#include "io/bytes/byte_sink.h"
#include "io/bytes/byte_source.h"
#include "io/tables/jsonl.h"

namespace kibitz::oracles {
namespace {

namespace fs = std::filesystem;
using twenty48::Board;
using twenty48::Move;

constexpr std::string_view kMetaEnding = ".meta.json";
constexpr std::string_view kStepsEnding = ".jsonl.gz";
// The order of keys in files of other programs.
constexpr std::array<Move, 4> kBranchOrder = {Move::kUp, Move::kLeft, Move::kRight, Move::kDown};

std::string StepsPath(const std::string& meta_path) {
  return meta_path.substr(0, meta_path.size() - kMetaEnding.size()) + std::string(kStepsEnding);
}

uint32_t Unsigned32(const io::JsonValue& value, const io::JsonLine& line) {
  const int64_t number = value.Int();
  if (number < 0 || number > std::numeric_limits<uint32_t>::max()) {
    throw Error("{}: {} is {}, expected 0 to 4294967295", line.Place(), value.key(), number);
  }
  return static_cast<uint32_t>(number);
}

double Finite(const io::JsonValue& value, const io::JsonLine& line) {
  const double number = value.Double();
  if (!std::isfinite(number) || std::abs(number) > std::numeric_limits<float>::max()) {
    throw Error("{}: {} is {}, expected a finite number", line.Place(), value.key(), number);
  }
  return number;
}

Board ReadBoard(const io::JsonLine& line) {
  std::vector<int> ranks;
  for (const io::JsonValue cell : line.root()["board"].Items()) {
    const int64_t rank = cell.Int();
    if (rank < 0 || rank > twenty48::kMaxRank) {
      throw Error("{}: board has a rank of {}, ranks are 0 to {}", line.Place(), rank,
                  twenty48::kMaxRank);
    }
    ranks.push_back(static_cast<int>(rank));
    if (ranks.size() > twenty48::kCells) break;
  }
  return Board::FromRanks(ranks).OrThrow(line.Place() + ": board");
}

std::array<std::optional<double>, 4> ReadBranches(const io::JsonLine& line, unsigned legal) {
  std::array<std::optional<double>, 4> values;
  const io::JsonValue branches = line.root()["branch_evs"];
  for (const io::JsonValue branch : branches.Fields()) {
    const Move move = twenty48::ParseMove(branch.key()).OrThrow(line.Place() + ": branch_evs");
    if (branch.kind() == io::JsonKind::kNull) continue;
    values[static_cast<size_t>(move)] = Finite(branch, line);
  }
  for (Move move : twenty48::kMoves) {
    if ((legal >> IndexOf(move) & 1) != 0 && !values[static_cast<size_t>(move)]) {
      throw Error("{}: branch_evs has no value for {}, which is legal", line.Place(), NameOf(move));
    }
  }
  return values;
}

RawStep ReadStep(const io::JsonLine& line) {
  const io::JsonValue root = line.root();
  RawStep step;
  step.seed = Unsigned32(root["seed"], line);
  step.step_index = Unsigned32(root["step_index"], line);
  step.board = ReadBoard(line);
  step.move = twenty48::ParseMove(root["move"].String()).OrThrow(line.Place());
  // The oldest files lack the field; all their values come from searches.
  step.valuation_type = root["valuation_type"].OptionalString().value_or("search");
  step.valuation = Finite(root["valuation"], line);
  const unsigned legal = twenty48::LegalMoves(step.board);
  if ((legal >> IndexOf(step.move) & 1) == 0) {
    throw Error("{}: {} is not legal on this board", line.Place(), NameOf(step.move));
  }
  step.branch_evs = ReadBranches(line, legal);
  const int64_t max_rank = root["max_rank"].OptionalInt().value_or(step.board.MaxRank());
  if (max_rank != step.board.MaxRank()) {
    throw Error("{}: max_rank is {}, the board's largest rank {}", line.Place(), max_rank,
                step.board.MaxRank());
  }
  return step;
}

}  // namespace

std::string RawGameName(const RawMeta& meta) {
  return fmt::format("depth{:02}_worker00_seed{:010}_game{:06}", meta.depth, meta.seed,
                     meta.game_index);
}

RawMeta ReadRawMeta(const std::string& meta_path) {
  io::JsonLines lines(meta_path);
  const io::JsonLine* line = lines.Next();
  if (line == nullptr) throw Error("{}: is empty, expected a JSON object", meta_path);
  if (!line->ok()) throw Error("{}", line->problem());
  const io::JsonValue root = line->root();
  RawMeta meta;
  meta.seed = Unsigned32(root["seed"], *line);
  meta.depth = static_cast<int>(root["depth"].OptionalInt().value_or(0));
  meta.game_index = root["game_index"].OptionalInt().value_or(0);
  meta.steps_file = root["steps_file"].OptionalString().value_or("");
  meta.num_moves = root["num_moves"].Int();
  meta.score = root["score"].Int();
  meta.max_tile = root["max_tile"].Int();
  meta.max_rank = static_cast<int>(root["max_rank"].OptionalInt().value_or(0));
  meta.sum_tile = root["sum_tile"].OptionalInt().value_or(0);
  meta.seconds = root["seconds"].OptionalDouble().value_or(0);
  return meta;
}

RawGame ReadRawGame(const std::string& meta_path) {
  RawGame game;
  game.meta = ReadRawMeta(meta_path);
  const std::string path = StepsPath(meta_path);
  io::JsonLines lines(path, {.source = {.read_ahead = false}});
  while (const io::JsonLine* line = lines.Next()) {
    if (!line->ok()) throw Error("{}", line->problem());
    game.steps.push_back(ReadStep(*line));
    const RawStep& step = game.steps.back();
    if (step.seed != game.meta.seed) {
      throw Error("{}: seed is {}, but {} in {}", line->Place(), step.seed, game.meta.seed,
                  meta_path);
    }
  }
  if (static_cast<int64_t>(game.steps.size()) != game.meta.num_moves) {
    throw Error("{}: {} lines, but {} says num_moves {}", path, game.steps.size(), meta_path,
                game.meta.num_moves);
  }
  return game;
}

std::string RawLine(const RawStep& step) {
  std::string line = fmt::format(
      R"({{"seed":{},"step_index":{},"max_rank":{},"move":"{}","valuation_type":"{}","valuation":{:.6f},"board":[)",
      step.seed, step.step_index, step.board.MaxRank(), NameOf(step.move), step.valuation_type,
      step.valuation);
  for (int cell = 0; cell < twenty48::kCells; ++cell) {
    line += fmt::format("{}{}", cell == 0 ? "" : ",", step.board.Rank(cell));
  }
  line += "],\"branch_evs\":{";
  for (Move move : kBranchOrder) {
    const std::optional<double>& value = step.branch_evs[static_cast<size_t>(move)];
    line += fmt::format("{}\"{}\":{}", move == kBranchOrder[0] ? "" : ",", NameOf(move),
                        value ? fmt::format("{:.6f}", *value) : "null");
  }
  return line + "}}\n";
}

void WriteRawGame(const std::string& folder, const RawGame& game) {
  const std::string path = folder + "/" + RawGameName(game.meta);
  io::ByteSink sink(path + std::string(kStepsEnding));
  for (const RawStep& step : game.steps) sink.Write(RawLine(step));
  sink.Commit();
  const RawMeta& meta = game.meta;
  const nlohmann::ordered_json object = {{"seed", meta.seed},
                                         {"depth", meta.depth},
                                         {"game_index", meta.game_index},
                                         {"steps_file", meta.steps_file},
                                         {"num_moves", meta.num_moves},
                                         {"score", meta.score},
                                         {"max_tile", meta.max_tile},
                                         {"max_rank", meta.max_rank},
                                         {"sum_tile", meta.sum_tile},
                                         {"seconds", std::round(meta.seconds * 1e6) / 1e6}};
  WriteFileAtomically(path + std::string(kMetaEnding), object.dump() + "\n");
}

std::vector<std::string> FindRawGames(const std::string& folder,
                                      std::vector<std::string>* orphans) {
  if (!fs::is_directory(folder)) {
    throw Error("{}: no such folder; expected one with *.meta.json and *.jsonl.gz", folder);
  }
  std::vector<std::string> metas;
  std::vector<std::string> steps;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(kMetaEnding)) metas.push_back(path);
    if (path.ends_with(kStepsEnding)) steps.push_back(path);
  }
  std::ranges::sort(metas);
  std::ranges::sort(steps);
  for (const std::string& path : steps) {
    const std::string meta =
        path.substr(0, path.size() - kStepsEnding.size()) + std::string(kMetaEnding);
    if (std::ranges::binary_search(metas, meta)) continue;
    if (orphans == nullptr) {
      throw Error("{}: its metadata is missing, expected {}; is the game still being played?", path,
                  meta);
    }
    orphans->push_back(path);
  }
  return metas;
}

}  // namespace kibitz::oracles
