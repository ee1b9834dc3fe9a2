#include "tests/support/perft_suite.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "games/chess/fen.h"

namespace kibitz::testing {
namespace {

chess::Board BoardOf(std::string_view fen, const std::string& place) {
  if (const auto board = chess::ParseFen(fen)) return *board;
  return chess::ParseFen(fen, {.chess960 = true}).OrThrow(place);
}

uint64_t Number(std::string_view text, const std::string& place) {
  const auto number = ParseUnsigned(text);
  if (!number) throw Error("{}: {} is no number", place, Quoted(text));
  return *number;
}

// "FEN ;D1 20 ;D2 400", blanks anywhere around the semicolons.
void ReadEpdLine(std::string_view line, const std::string& place, std::vector<PerftLine>& lines) {
  const auto parts = Split(line, ';');
  const std::string fen(Trim(parts[0]));
  const chess::Board board = BoardOf(fen, place);
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto words = SplitWords(parts[i]);
    if (words.size() != 2 || words[0][0] != 'D') throw Error("{}: no perft line", place);
    const int depth = static_cast<int>(Number(words[0].substr(1), place));
    lines.push_back({place, fen, board, depth, Number(words[1], place)});
  }
}

void ReadSuite(const std::filesystem::path& path, std::vector<PerftLine>& lines) {
  std::ifstream in(path);
  std::string text;
  std::string fen;
  for (int number = 1; std::getline(in, text); ++number) {
    const std::string place = fmt::format("{}:{}", path.filename().string(), number);
    const std::string_view line = Trim(text);
    if (line.empty() || line[0] == '#' || line.starts_with("id ")) continue;
    if (path.extension() == ".epd") {
      ReadEpdLine(line, place, lines);
    } else if (line.starts_with("epd ")) {
      fen = line.substr(4);
    } else {
      const auto words = SplitWords(line);
      if (words.size() != 3 || words[0] != "perft") throw Error("{}: no perft line", place);
      lines.push_back({place, fen, BoardOf(fen, place), static_cast<int>(Number(words[1], place)),
                       Number(words[2], place)});
    }
  }
}

}  // namespace

std::vector<PerftLine> ReadPerftSuites(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto ending = entry.path().extension();
    if (ending == ".epd" || ending == ".perft") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<PerftLine> lines;
  for (const auto& path : paths) ReadSuite(path, lines);
  return lines;
}

}  // namespace kibitz::testing
