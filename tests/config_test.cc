// Every file in configs/ loads with the command that its first comment gives.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/text.h"
#include "students/decoder/data/train_options.h"
#include "students/policy/data/train_options.h"
#include "students/twenty48/data/train_options.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

namespace fs = std::filesystem;

// The flags of a command without "--config FILE".
using Words = std::vector<std::string>;

template <typename Options>
void Load(const std::string& config, const Words& flags) {
  Options options;
  Fields fields = FieldsOf(options);
  fields.ReadConfig(config);
  fields.ParseFlags(flags);
}

using Loader = void (*)(const std::string&, const Words&);

const std::map<std::string, Loader>& Loaders() {
  static const std::map<std::string, Loader> loaders = {
      {"decoder pretrain", Load<decoder::PretrainOptions>},
      {"decoder finetune", Load<decoder::FinetuneOptions>},
      {"policy train", Load<policy::TrainOptions>},
      {"2048 train", Load<twenty48::TrainOptions>},
  };
  return loaders;
}

// The command lines "# kibitz ..." at the top of a config file, as words after "kibitz"; "# --flag"
// continues one.
std::vector<Words> CommandsIn(const std::string& path) {
  std::vector<Words> commands;
  std::istringstream text(testing::ReadWhole(path));
  for (std::string line; std::getline(text, line) && line.starts_with('#');) {
    const bool begins = line.starts_with("# kibitz ");
    if (!begins && (commands.empty() || !line.starts_with("#   "))) continue;
    if (begins) commands.emplace_back();
    for (std::string_view word : SplitWords(std::string_view(line).substr(begins ? 9 : 1))) {
      commands.back().emplace_back(word);
    }
  }
  return commands;
}

// Loads the file as the command line says; the line must name the file itself.
void ExpectLoads(const fs::path& file, const Words& words) {
  ASSERT_GE(words.size(), 4U) << file;
  const std::string command = words[0] + " " + words[1];
  ASSERT_TRUE(Loaders().contains(command)) << file << ": kibitz " << command;
  EXPECT_EQ(words[2], "--config") << file;
  EXPECT_EQ(testing::SourcePath(words[3]), file.string());
  EXPECT_EQ(testing::MessageOf(
                [&] { Loaders().at(command)(file, Words(words.begin() + 4, words.end())); }),
            "");
}

TEST(ConfigTest, EveryFileLoadsWithItsCommand) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(testing::SourcePath("configs"))) {
    const auto ending = entry.path().extension();
    if (ending != ".toml" && ending != ".yaml" && ending != ".json") continue;
    ++files;
    const std::vector<Words> commands = CommandsIn(entry.path());
    EXPECT_FALSE(commands.empty()) << entry.path() << ": no line '# kibitz COMMAND --config ...'";
    for (const Words& words : commands) ExpectLoads(entry.path(), words);
  }
  EXPECT_GT(files, 0);
}

TEST(ConfigTest, AWrongKeyIsFound) {
  const testing::TempFolder folder;
  const std::string path = folder.File("wrong.toml");
  std::ofstream(path) << "run_name = \"x\"\nbath_size = 3\n";
  EXPECT_NE(testing::MessageOf([&] { Load<policy::TrainOptions>(path, {}); }), "");
}

}  // namespace
}  // namespace kibitz
