#include "arena/openings.h"

#include <filesystem>
#include <fstream>

#include "arena/named_openings.h"
#include "base/error.h"
#include "base/random.h"
#include "base/shipped.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/movegen.h"
#include "games/chess/pgn.h"
#include "io/bytes/byte_source.h"

namespace kibitz::arena {
namespace {

constexpr const char* kBook = "data/openings/balanced.epd";

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void Cut(oracles::GameSoFar& game, int plies) {
  if (plies > 0 && game.moves.size() > static_cast<size_t>(plies)) {
    game.moves.resize(static_cast<size_t>(plies));
  }
}

std::vector<Opening> FromList(int plies) {
  std::vector<Opening> openings;
  for (const NamedOpening& named : NamedOpenings()) {
    Opening& opening = openings.emplace_back();
    opening.name = fmt::format("{} {}", named.eco, named.name);
    opening.eco = named.eco;
    opening.game = GameOf(named);
    Cut(opening.game, plies);
  }
  return openings;
}

// Whether the file is PGN: a tag, or a move number, comes first.
bool LooksLikePgn(const std::string& path) {
  if (LowerCase(path).find(".pgn") != std::string::npos) return true;
  const auto source = io::OpenBytes(path, {.read_ahead = false});
  char first[64];
  const std::string_view text(first, source->Read(first, sizeof(first)));
  return Trim(text).starts_with('[');
}

std::vector<Opening> FromPgn(const std::string& path, int plies) {
  std::vector<Opening> openings;
  chess::PgnReader reader(io::ReadFunction(io::OpenBytes(path)), {.comments = false});
  chess::PgnGame game;
  for (auto read = reader.Next(game); read != chess::PgnRead::kEnd; read = reader.Next(game)) {
    if (read == chess::PgnRead::kBroken) {
      throw Error("{}:{}: {}; mend or remove the game", path, reader.problem().line,
                  reader.problem().reason);
    }
    Opening& opening = openings.emplace_back();
    const std::string_view name = game.Tag("Opening");
    opening.eco = game.Tag("ECO");
    opening.name = name.empty() ? fmt::format("{}:{}", FileName(path), game.line)
                                : fmt::format("{} {}", opening.eco, name);
    opening.game = {.start = game.start, .moves = game.moves};
    Cut(opening.game, plies);
  }
  return openings;
}

std::vector<Opening> FromPositions(const std::string& path) {
  std::ifstream file(path);
  if (!file.good()) throw Error("{}: cannot be read; expected openings: FEN, EPD or PGN", path);
  std::vector<Opening> openings;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = Trim(line);
    if (text.empty() || text.starts_with('#')) continue;
    const auto board = chess::ParseFen(text, {.epd_operations = true});
    if (!board) throw Error("{}:{}: {}", path, number, board.reason());
    openings.push_back(
        {.name = fmt::format("{}:{}", FileName(path), number), .game = {.start = *board}});
  }
  return openings;
}

}  // namespace

Fields FieldsOf(OpeningOptions& options) {
  Fields fields;
  fields.Add("openings", options.source,
             "'book' (the balanced one that ships), 'named' (by ECO), 'start', or a file of FEN, "
             "EPD or PGN",
             {.metavar = "OPENINGS"});
  fields.AddChoice("opening_order", options.order, "how they follow each other",
                   {{"random", OpeningOrder::kRandom}, {"sequential", OpeningOrder::kSequential}});
  fields.Add("opening_plies", options.plies, "moves taken of a PGN or named opening; 0: all",
             {.min = 0, .max = 1000});
  return fields;
}

std::string BookPath() {
  if (const auto path = FindShipped(kBook)) return *path;
  throw Error("{} is not installed; give --openings named, start or a file", kBook);
}

std::vector<Opening> LoadOpenings(const OpeningOptions& options) {
  std::vector<Opening> openings;
  if (!options.fen.empty()) {
    openings = {
        {.name = "position", .game = {.start = chess::ParseFen(options.fen).OrThrow("position")}}};
  } else if (options.source == "start") {
    openings = {{.name = "start", .game = {}}};
  } else if (options.source == "named") {
    openings = FromList(options.plies);
  } else {
    const std::string path = options.source == "book" ? BookPath() : options.source;
    if (!std::filesystem::exists(path)) {
      throw Error("{}: no such file; expected 'book', 'named', 'start' or a file of openings",
                  path);
    }
    openings = LooksLikePgn(path) ? FromPgn(path, options.plies) : FromPositions(path);
  }
  std::erase_if(openings, [](const Opening& opening) {
    return !chess::HasLegalMove(opening.game.Current());
  });
  if (openings.empty()) throw Error("{}: there is no opening in it", options.source);
  for (Opening& opening : openings) {
    const NamedOpening* known = OpeningOf(opening.game);
    if (opening.eco.empty() && known != nullptr) opening.eco = known->eco;
  }
  if (options.order == OpeningOrder::kRandom) {
    Rng rng({.seed = options.seed, .purpose = Purpose("openings")});
    rng.Shuffle(openings);
  }
  return openings;
}

}  // namespace kibitz::arena
