// The examples at the top of our headers compile. An example is the indented block in a header's
// first comment; header_examples.txt declares what it takes for granted. In an example "..." stands
// for whatever the reader would put there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = testing::SourcePath("");
const char kPreludes[] = "tests/header_examples.txt";

struct Block {
  int line = 0;  // Of its first line in the header, from 1.
  std::string code;
};

// What header_examples.txt says about one header.
struct Prelude {
  int line = 1;
  std::string code;          // Declarations.
  std::string includes;      // #include lines of their own.
  bool definitions = false;  // The example defines functions and types: it stands in no function.
  bool skipped = false;      // Prose.
};

// "[base/options.h] definitions" begins a section.
std::map<std::string, Prelude> ReadPreludes() {
  std::map<std::string, Prelude> preludes;
  std::istringstream text(testing::ReadWhole(kRoot / kPreludes));
  Prelude* section = nullptr;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.starts_with('[')) {
      const size_t close = line.find(']');
      const std::string name = line.substr(1, close - 1);
      EXPECT_FALSE(preludes.contains(name)) << kPreludes << ":" << number << ": " << name;
      section = &preludes[name];
      section->line = number + 1;
      section->definitions = line.substr(close + 1) == " definitions";
      section->skipped = line.substr(close + 1) == " prose";
    } else if (section != nullptr) {
      const bool include = line.starts_with("#include");
      (include ? section->includes : section->code) += line + "\n";
      if (include) section->code += "\n";  // Line numbers stay right.
    }
  }
  return preludes;
}

std::string WithoutDots(std::string line) {
  const std::pair<std::string_view, std::string_view> replacements[] = {
      {", ...}", "}"}, {"= ...", "= {}"}, {"...", ";"}};
  for (const auto& [from, to] : replacements) {
    for (size_t at = line.find(from); at != std::string::npos; at = line.find(from, at)) {
      line.replace(at, from.size(), to);
    }
  }
  return line;
}

bool EndsLikeCode(std::string_view line) {
  line = Trim(line.substr(0, line.find("  //")));
  return line.ends_with(';') || line.ends_with('{') || line.ends_with('}');
}

// The indented blocks of the first comment in which some line ends as code does.
std::vector<Block> BlocksIn(const std::string& text) {
  std::vector<Block> blocks;
  std::istringstream lines(text);
  Block block;
  bool code = false;
  const auto close = [&] {
    if (code) blocks.push_back(block);
    block = {};
    code = false;
  };
  int number = 0;
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    ++number;
    if (!line.starts_with("//   ")) {
      close();
      continue;
    }
    if (block.line == 0) block.line = number;
    block.code += WithoutDots(line.substr(2)) + "\n";
    code |= EndsLikeCode(line.substr(2));
  }
  close();
  return blocks;
}

std::string NamespaceOf(const std::string& text) {
  const size_t at = text.rfind("\nnamespace kibitz");  // Others before it declare.
  if (at == std::string::npos) return "kibitz";
  const size_t name = at + std::string_view("\nnamespace ").size();
  return text.substr(name, text.find(' ', name) - name);
}

std::string LineMark(int line, const fs::path& file) {
  return fmt::format("#line {} \"{}\"\n", line, file.string());
}

// One file with the examples of many headers, each in a namespace of its own. Returns how many.
class Examples {
 public:
  void Add(const std::string& header, const std::string& text, const Prelude& prelude) {
    includes_ += fmt::format("#include \"{}\"\n", header) + prelude.includes;
    code_ += fmt::format("namespace {}::example{} {{\n", NamespaceOf(text), count_++);
    code_ += "template <typename... T>\nvoid Use(T&&...);\n";
    code_ += LineMark(prelude.line, kPreludes) + prelude.code;
    int number = 0;
    for (const Block& block : BlocksIn(text)) {
      if (!prelude.definitions) code_ += fmt::format("void Block{}() {{\n", number++);
      code_ += LineMark(block.line, "src/" + header) + block.code;
      if (!prelude.definitions) code_ += "}\n";
    }
    code_ += "}\n";
  }

  std::string Text() const { return includes_ + code_; }
  int count() const { return count_; }

 private:
  std::string includes_;
  std::string code_;
  int count_ = 0;
};

// The compiler's words for a source of this build, with its precompiled header, up to "-o".
std::vector<std::string> CompilerWords(const std::string& source) {
  const auto commands =
      nlohmann::json::parse(std::ifstream(testing::ProgramPath("compile_commands.json")));
  for (const auto& entry : commands) {
    if (fs::path(entry["file"].get<std::string>()).filename() != source) continue;
    const std::string whole = entry["command"];
    const std::string command = whole.substr(0, whole.find(" -o "));
    std::vector<std::string> words;
    for (std::string_view word : SplitWords(command)) {
      std::string plain(word);
      std::erase(plain, '\\');  // Quotes in definitions are escaped for a shell.
      words.push_back(plain);
    }
    return words;
  }
  return {};
}

testing::Ran Compile(std::vector<std::string> words, const std::string& text) {
  const testing::TempFolder folder;
  const std::string path = folder.File("examples.cc");
  std::ofstream(path) << text;
  words.insert(words.end(), {"-w", "-fsyntax-only", path});
  return testing::RunCommand(words);
}

std::vector<std::string> HeadersBelow(const std::string& folder) {
  std::vector<std::string> headers;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src" / folder)) {
    if (entry.path().extension() != ".h") continue;
    headers.push_back(fs::relative(entry.path(), kRoot / "src"));
  }
  std::sort(headers.begin(), headers.end());
  return headers;
}

bool SeesTorch(const std::string& header) {
  const bool learn = header.starts_with("learn/") && !header.starts_with("learn/options/");
  return learn || header.starts_with("cli/train/") || header.find("/net/") != std::string::npos;
}

// The examples of a folder's headers, with or without torch.
Examples ExamplesOf(const std::string& folder, bool torch) {
  const std::map<std::string, Prelude> preludes = ReadPreludes();
  Examples examples;
  for (const std::string& header : HeadersBelow(folder)) {
    const std::string text = testing::ReadWhole(kRoot / "src" / header);
    const auto known = preludes.find(header);
    const Prelude prelude = known == preludes.end() ? Prelude() : known->second;
    if (SeesTorch(header) != torch || prelude.skipped || BlocksIn(text).empty()) continue;
    examples.Add(header, text, prelude);
  }
  return examples;
}

// The folders below src with torch-free examples; students by name.
std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  for (const char* above : {"", "students"}) {
    for (const auto& entry : fs::directory_iterator(kRoot / "src" / above)) {
      const std::string folder = fs::relative(entry.path(), kRoot / "src");
      if (!entry.is_directory() || folder == "students") continue;
      if (ExamplesOf(folder, false).count() > 0) folders.push_back(folder);
    }
  }
  return folders;
}

class HeaderExamples : public ::testing::TestWithParam<std::string> {};

TEST_P(HeaderExamples, Compile) {
  const Examples examples = ExamplesOf(GetParam(), false);
  const testing::Ran ran = Compile(CompilerWords("kibitz_pch.cc"), examples.Text());
  EXPECT_EQ(ran.code, 0) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(Folders, HeaderExamples, ::testing::ValuesIn(Folders()),
                         [](const auto& folder) {
                           std::string name = folder.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

TEST(HeaderExamplesTest, CompileWithTorch) {
  const std::vector<std::string> words = CompilerWords("kibitz_torch_pch.cc");
  if (words.empty()) GTEST_SKIP() << "built without torch";
  const Examples examples = ExamplesOf("", true);
  ASSERT_GT(examples.count(), 0);
  const testing::Ran ran = Compile(words, examples.Text());
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST(HeaderExamplesTest, ARottenExampleIsFound) {
  Examples examples;
  examples.Add("base/error.h",
               "// Why.\n//\n//   Error error(\"{}\", 1);\n//   error.NoSuchFunction();\n"
               "#pragma once\n\nnamespace kibitz {\n",
               Prelude());
  const testing::Ran ran = Compile(CompilerWords("kibitz_pch.cc"), examples.Text());
  EXPECT_NE(ran.code, 0);
  EXPECT_THAT(ran.err, ::testing::HasSubstr("src/base/error.h:4:"));
  EXPECT_THAT(ran.err, ::testing::HasSubstr("NoSuchFunction"));
}

TEST(HeaderExamplesTest, PreludesBelongToExamples) {
  for (const auto& [header, prelude] : ReadPreludes()) {
    const fs::path path = kRoot / "src" / header;
    ASSERT_TRUE(fs::exists(path)) << kPreludes << ":" << prelude.line - 1 << ": " << header;
    EXPECT_FALSE(BlocksIn(testing::ReadWhole(path)).empty())
        << kPreludes << ":" << prelude.line - 1 << ": " << header << " has no example";
  }
}

}  // namespace
}  // namespace kibitz
