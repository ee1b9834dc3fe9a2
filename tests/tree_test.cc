// The shape of the source tree: who includes whom, who sees which library, how long functions are,
// one name for one type, READMEs and documents, formatting.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/support/source_code.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = testing::SourcePath("");

// The table under "What each folder may include" in docs/ARCHITECTURE.md: | folder | may include |.
std::map<std::string, std::set<std::string>> AllowedIncludes() {
  std::map<std::string, std::set<std::string>> allowed;
  std::istringstream text(testing::ReadWhole(kRoot / "docs/ARCHITECTURE.md"));
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("| folder | may include")) inside = true;
    if (inside && !line.starts_with('|')) break;
    if (!inside || line.starts_with("|---") || line.starts_with("| folder")) continue;
    const auto cells = Split(line, '|');
    std::set<std::string>& names = allowed[std::string(Trim(cells.at(1)))];
    for (std::string_view name : SplitWords(cells.at(2))) names.insert(std::string(name));
  }
  return allowed;
}

std::vector<fs::path> Sources(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto ending = entry.path().extension();
    if (ending == ".h" || ending == ".cc") files.push_back(entry.path());
  }
  return files;
}

struct Include {
  std::string path;
  bool ours = false;
  int line = 0;
};

std::vector<Include> IncludesOf(const fs::path& file) {
  std::vector<Include> includes;
  std::ifstream in(file);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.starts_with("#include ")) continue;
    const size_t open = line.find_first_of("<\"");
    const size_t close = line.find_last_of(">\"");
    if (open == std::string::npos || close <= open) continue;
    includes.push_back({line.substr(open + 1, close - open - 1), line[open] == '"', number});
  }
  return includes;
}

// The top folder under src: "games" for src/games/chess/board.h.
std::string TopFolder(const std::string& path) { return path.substr(0, path.find('/')); }

// "decoder" for students/decoder/net/loss.h.
std::string StudentOf(const std::string& path) {
  return TopFolder(path.substr(path.find('/') + 1));
}

bool MayInclude(const std::map<std::string, std::set<std::string>>& allowed,
                const std::string& from, const std::string& to) {
  const std::string folder = TopFolder(from);
  const std::string other = TopFolder(to);
  if (other == "base") return true;
  if (folder == other) {
    return folder != "students" || StudentOf(from) == StudentOf(to);  // They never see each other.
  }
  const auto& names = allowed.at(folder);
  return names.contains(other) || names.contains("any");
}

TEST(TreeTest, IncludesFollowTheTable) {
  const auto allowed = AllowedIncludes();
  ASSERT_TRUE(allowed.contains("games") && allowed.contains("cli"));
  for (const fs::path& file : Sources(kRoot / "src")) {
    const std::string name = fs::relative(file, kRoot / "src");
    ASSERT_TRUE(allowed.contains(TopFolder(name)))
        << name << ": folder " << TopFolder(name) << " is not in docs/ARCHITECTURE.md";
    const bool test = file.stem().string().ends_with("_test");
    for (const Include& include : IncludesOf(file)) {
      if (!include.ours || (test && include.path.starts_with("tests/"))) continue;
      EXPECT_TRUE(fs::exists(kRoot / "src" / include.path)) << name << ":" << include.line;
      EXPECT_TRUE(MayInclude(allowed, name, include.path))
          << name << ":" << include.line << " includes " << include.path
          << ", which docs/ARCHITECTURE.md does not allow";
    }
  }
}

// Inside io and nn a room includes only rooms below it, as their READMEs say.
TEST(TreeTest, RoomsIncludeOnlyRoomsBelow) {
  const std::map<std::string, std::set<std::string>> below = {
      {"io/bytes", {}},
      {"io/tables", {"io/bytes"}},
      {"io/weights", {"io/bytes", "io/tables"}},
      {"io/runs", {"io/bytes", "io/tables"}},
      {"nn/kernels", {}},
      {"nn/transformer", {"nn/kernels"}},
      {"nn/conv", {"nn/kernels"}},
  };
  std::set<std::string> rooms;
  for (const char* folder : {"io", "nn"}) {
    for (const fs::path& file : Sources(kRoot / "src" / folder)) {
      const std::string room = fs::relative(file.parent_path(), kRoot / "src");
      if (room == folder) continue;  // What stands above all rooms.
      ASSERT_TRUE(below.contains(room)) << room << " is not in this test";
      rooms.insert(room);
      for (const Include& include : IncludesOf(file)) {
        const std::string other = fs::path(include.path).parent_path();
        if (!include.ours || other == room || TopFolder(other) != folder) continue;
        EXPECT_TRUE(below.at(room).contains(other))
            << file << ":" << include.line << " includes " << include.path;
      }
    }
  }
  EXPECT_EQ(rooms.size(), below.size()) << "a room of this test is gone";
}

// Libraries that one folder alone may see, and the files elsewhere that may too.
struct LibraryRule {
  std::vector<std::string> headers;   // Beginnings of include paths.
  std::string folder;                 // Below src.
  std::set<std::string> other_files;  // Below src.
};

const std::vector<LibraryRule>& LibraryRules() {
  static const std::vector<LibraryRule> rules = {
      {{"torch/", "ATen/", "c10/"}, "learn/", {}},
      {{"duckdb", "zstd", "zip.h", "zlib", "sqlite3", "simdjson", "libdeflate"}, "io/", {}},
      {{"boost/"}, "serve/http/", {}},
      {{"oneapi/", "dnnl", "immintrin", "nmmintrin", "smmintrin", "emmintrin", "x86intrin"},
       "nn/",
       // PEXT and CRC.
       {"games/chess/attacks.h", "oracles/twenty48/ntuple_index.h", "io/bytes/crc32c.cc",
        "students/policy/data/fen_pieces.cc"}},
      {{"yaml-cpp/", "toml++/"}, "base/", {}},
  };
  return rules;
}

bool MaySee(const LibraryRule& rule, const std::string& name) {
  const bool net = name.starts_with("students/") && name.find("/net/") != std::string::npos;
  return name.starts_with(rule.folder) || rule.other_files.contains(name) ||
         (rule.folder == "learn/" && net);
}

TEST(TreeTest, LibrariesStayInTheirPlace) {
  std::set<std::string> used;  // Of the files that rules name.
  for (const fs::path& file : Sources(kRoot / "src")) {
    const std::string name = fs::relative(file, kRoot / "src");
    for (const Include& include : IncludesOf(file)) {
      if (include.ours) continue;
      for (const LibraryRule& rule : LibraryRules()) {
        const bool matches = std::any_of(
            rule.headers.begin(), rule.headers.end(),
            [&](const std::string& header) { return include.path.starts_with(header); });
        if (!matches) continue;
        EXPECT_TRUE(MaySee(rule, name))
            << name << ":" << include.line << " includes <" << include.path
            << ">, which belongs to src/" << rule.folder;
        if (rule.other_files.contains(name)) used.insert(name);
      }
    }
  }
  for (const LibraryRule& rule : LibraryRules()) {
    for (const std::string& name : rule.other_files) {
      EXPECT_TRUE(used.contains(name)) << name << " needs no exception (any more)";
    }
  }
}

TEST(TreeTest, EveryFolderHasAShortReadme) {
  std::set<fs::path> folders = {kRoot / "bench", kRoot / "tests"};
  for (const fs::path& file : Sources(kRoot / "src")) folders.insert(file.parent_path());
  for (const fs::path& folder : folders) {
    if (folder.parent_path() == kRoot / "src/cli") continue;  // Parts of one library.
    const fs::path readme = folder / "README.md";
    ASSERT_TRUE(fs::exists(readme)) << readme;
    const std::string text = testing::ReadWhole(readme);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 15) << readme;
  }
}

// The pieces of a line of Markdown between backquotes.
std::vector<std::string> CodeSpans(std::string_view line) {
  const auto cells = Split(line, '`');
  std::vector<std::string> spans;
  for (size_t i = 1; i + 1 < cells.size(); i += 2) spans.emplace_back(cells[i]);
  return spans;
}

bool HasWord(const std::string& text, const std::string& word) {
  const auto in_word = [&](size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + word.size())) return true;
  }
  return false;
}

// The tables of docs/DATAFLOW.md: | step | `file below src` | `Function`, ... | what happens |. A
// name counts as there when the file, or the header or source beside it, has every part of it.
TEST(TreeTest, DataFlowNamesWhatExists) {
  std::istringstream text(testing::ReadWhole(kRoot / "docs/DATAFLOW.md"));
  int steps = 0;
  for (std::string line; std::getline(text, line);) {
    const auto cells = Split(line, '|');
    if (cells.size() < 5 || cells[1].size() < 2 || !std::isdigit(cells[1][1])) continue;
    ++steps;
    ASSERT_EQ(CodeSpans(cells[2]).size(), 1U) << line;
    const fs::path file = kRoot / "src" / CodeSpans(cells[2])[0];
    ASSERT_TRUE(fs::exists(file)) << line;
    std::string code = testing::ReadWhole(file);
    fs::path other = file;
    other.replace_extension(file.extension() == ".h" ? ".cc" : ".h");
    if (fs::exists(other)) code += testing::ReadWhole(other);
    for (const std::string& name : CodeSpans(cells[3])) {
      for (std::string_view part : Split(name, ':')) {
        EXPECT_TRUE(part.empty() || HasWord(code, std::string(part))) << name << " in " << line;
      }
    }
  }
  EXPECT_GT(steps, 60);
}

std::vector<fs::path> Pages() {
  std::vector<fs::path> pages = {kRoot / "README.md", kRoot / "CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  return pages;
}

// The anchors that Markdown makes of a page's headings: "## int8 uses 7 bits" is int8-uses-7-bits.
std::set<std::string> AnchorsOf(const fs::path& page) {
  std::set<std::string> anchors;
  std::istringstream text(testing::ReadWhole(page));
  bool fenced = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) fenced = !fenced;
    if (fenced || !line.starts_with('#')) continue;
    std::string anchor;
    for (char c : Trim(std::string_view(line).substr(line.find_first_not_of('#')))) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0 || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(byte));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

// Links to other pages, pictures and headings: [text](../path#anchor).
TEST(TreeTest, LinksOfDocumentsLeadSomewhere) {
  int links = 0;
  for (const fs::path& page : Pages()) {
    const std::string text = testing::ReadWhole(page);
    for (size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 2)) {
      const std::string link = text.substr(at + 2, text.find(')', at) - at - 2);
      if (link.starts_with("http") || link.find_first_of(" \n\"") != std::string::npos) continue;
      ++links;
      const size_t hash = std::min(link.find('#'), link.size());
      const fs::path target = hash == 0 ? page : page.parent_path() / link.substr(0, hash);
      ASSERT_TRUE(fs::exists(target)) << page << ": " << link;
      EXPECT_TRUE(hash == link.size() || AnchorsOf(target).contains(link.substr(hash + 1)))
          << page << ": " << link;
    }
  }
  EXPECT_GT(links, 100);
}

// "BoardTest.PlacesOfPieces" for every test of the tree.
std::set<std::string> TestNames() {
  std::set<std::string> names;
  for (const char* folder : {"src", "tests"}) {
    for (const fs::path& file : Sources(kRoot / folder)) {
      if (!file.stem().string().ends_with("_test")) continue;
      const std::string code = testing::ReadWhole(file);
      for (size_t at = code.find("\nTEST"); at != std::string::npos;
           at = code.find("\nTEST", at + 1)) {
        const size_t open = code.find('(', at);
        std::string name;
        for (char c : code.substr(open + 1, code.find(')', open) - open - 1)) {
          if (c == ',') name += '.';
          if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') name += c;
        }
        names.insert(name);
      }
    }
  }
  return names;
}

// Pages name tests as evidence: `BoardTest.PlacesOfPieces`.
TEST(TreeTest, DocumentsNameTestsThatExist) {
  const std::set<std::string> tests = TestNames();
  int named = 0;
  for (const fs::path& page : Pages()) {
    std::istringstream text(testing::ReadWhole(page));
    for (std::string line; std::getline(text, line);) {
      for (const std::string& span : CodeSpans(line)) {
        const size_t dot = span.find('.');
        const bool name = dot != std::string::npos && dot + 1 < span.size() &&
                          std::isupper(static_cast<unsigned char>(span[0])) != 0 &&
                          std::isupper(static_cast<unsigned char>(span[dot + 1])) != 0 &&
                          span.find_first_of(" /*:()") == std::string::npos;
        if (!name) continue;
        ++named;
        EXPECT_TRUE(tests.contains(span)) << page << ": " << span;
      }
    }
  }
  EXPECT_GT(named, 50);
}

// The table of commands in README.md: | group | `command`, ... | purpose |; no group for "uci".
TEST(TreeTest, ReadmeListsEveryCommand) {
  const std::string readme = testing::ReadWhole(kRoot / "README.md");
  const std::string mark = ".name = \"";
  int commands = 0;
  for (const fs::path& file : Sources(kRoot / "src/cli")) {
    if (file.extension() != ".cc" || file.stem().string().ends_with("_test")) continue;
    const std::string code = testing::ReadWhole(file);
    for (size_t at = code.find(mark); at != std::string::npos; at = code.find(mark, at + 1)) {
      const size_t begin = at + mark.size();
      const std::string name = code.substr(begin, code.find('"', begin) - begin);
      const size_t blank = name.find(' ');
      const std::string row =
          blank == std::string::npos ? "\n| |" : "\n| " + name.substr(0, blank) + " |";
      const size_t found = readme.find(row);
      ASSERT_NE(found, std::string::npos) << "README.md has no row for " << name;
      const std::string line = readme.substr(found, readme.find('\n', found + 1) - found);
      EXPECT_NE(line.find("`" + name.substr(blank + 1) + "`"), std::string::npos)
          << "README.md does not list " << name;
      ++commands;
    }
  }
  EXPECT_GT(commands, 30);
}

// Paths from the root of the tree between backquotes, in every page.
TEST(TreeTest, DocumentsNameFilesThatExist) {
  const std::vector<std::string> roots = {"src/",     "tests/",    "docs/",    "models/",
                                          "configs/", "examples/", "scripts/", "cmake/"};
  for (const fs::path& page : Pages()) {
    std::istringstream text(testing::ReadWhole(page));
    for (std::string line; std::getline(text, line);) {
      for (const std::string& span : CodeSpans(line)) {
        const bool path = span.find_first_of(" *<{") == std::string::npos &&
                          std::any_of(roots.begin(), roots.end(), [&](const std::string& root) {
                            return span.starts_with(root);
                          });
        EXPECT_TRUE(!path || fs::exists(kRoot / span)) << page << ": " << span;
      }
    }
  }
}

TEST(TreeTest, EveryGoldenKitHasAReadme) {
  int kits = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "tests/golden")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(fs::exists(entry.path() / "README.md")) << entry.path();
    ++kits;
  }
  EXPECT_GT(kits, 0);
}

// Our own Markdown: documents, READMEs, cards of models. Golden kits are data.
std::vector<fs::path> Documents() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  for (const char* folder :
       {"bench", "configs", "docs", "examples", "models", "python", "src", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const bool golden = entry.path().string().find("/golden/") != std::string::npos;
      if (entry.path().extension() == ".md" && !golden) files.push_back(entry.path());
    }
  }
  return files;
}

TEST(TreeTest, DocumentsFitAWindow) {
  constexpr size_t kMaxColumns = 160;
  for (const fs::path& file : Documents()) {
    const std::string text = testing::ReadWhole(file);
    int number = 0;
    for (std::string_view line : Split(text, '\n')) {
      ++number;
      // Bytes that continue a character of UTF-8 take no column.
      const auto columns = std::count_if(line.begin(), line.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
      });
      EXPECT_LE(columns, kMaxColumns) << file << ":" << number;
    }
  }
}

TEST(TreeTest, ParagraphsAreShort) {
  constexpr int kMaxLines = 5;
  for (const fs::path& file : Documents()) {
    for (const testing::Paragraph& paragraph : testing::ParagraphsIn(testing::ReadWhole(file))) {
      EXPECT_LE(paragraph.lines, kMaxLines) << file << ":" << paragraph.line;
    }
  }
}

TEST(TreeTest, FilesAreFormatted) {
  std::vector<std::string> words = {"clang-format", "--dry-run", "--Werror"};
  for (const char* folder : {"src", "bench", "python", "tests"}) {
    for (const fs::path& file : Sources(kRoot / folder)) words.push_back(file);
  }
  const auto ran = testing::RunCommand(words);
  ASSERT_NE(ran.code, 127) << "clang-format is missing: run 'make setup'";
  EXPECT_EQ(ran.code, 0) << "run 'make format'\n" << ran.err.substr(0, 3000);
}

// The limits leave a little room above the habit of 60 and 600.
TEST(TreeTest, FilesAndFunctionsFitAReader) {
  constexpr int kMaxFileLines = 700;
  constexpr int kMaxFunctionLines = 66;
  for (const fs::path& file : Sources(kRoot / "src")) {
    const std::string text = testing::ReadWhole(file);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), kMaxFileLines) << file;
    for (const testing::SourceFunction& function : testing::FunctionsIn(text)) {
      EXPECT_LE(function.lines, kMaxFunctionLines)
          << file << ":" << function.line << ": " << function.head;
    }
  }
}

// Two types of one name in one program break the one-definition rule without a word of the linker.
TEST(TreeTest, OneNameIsOneType) {
  std::map<std::string, std::string> places;
  for (const fs::path& file : Sources(kRoot / "src")) {
    for (const testing::SourceType& type : testing::TypesIn(testing::ReadWhole(file))) {
      const std::string place = file.string() + ":" + std::to_string(type.line);
      const auto [known, is_new] = places.emplace(type.name, place);
      EXPECT_TRUE(is_new) << type.name << " is defined at " << known->second << " and " << place;
    }
  }
  EXPECT_TRUE(places.contains("kibitz::chess::Board"));
}

}  // namespace
}  // namespace kibitz
