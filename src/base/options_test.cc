#include "base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "tests/support/test_data.h"

namespace kibitz {
namespace {

using ::testing::HasSubstr;

enum class Schedule { kCosine, kConstant };

struct RunOptions {
  std::string out = "runs/a";
  int batch_size = 64;
  double learning_rate = 3e-4;
  bool amp = false;
  uint64_t seed = 1;
  std::optional<int64_t> max_steps;
  std::vector<int> widths = {8, 16};
  std::vector<std::string> files;
  Schedule schedule = Schedule::kCosine;
  int embed_dim = 256;
};

Fields FieldsOf(RunOptions& o) {
  Fields fields;
  fields.Add("files", o.files, "inputs", {.positional = true, .metavar = "FILE"});
  fields.Add("out", o.out, "folder of the run");
  fields.Add("batch_size", o.batch_size, "samples a step", {.min = 1, .max = 4096});
  fields.Add("learning_rate", o.learning_rate, "step size", {.min = 0});
  fields.Add("amp", o.amp, "mixed precision");
  fields.Add("seed", o.seed, "of all chance");
  fields.Add("max_steps", o.max_steps, "stop after so many");
  fields.Add("widths", o.widths, "of the layers", {.min = 1});
  fields.AddChoice<Schedule>("schedule", o.schedule, "of the step size",
                             {{"cosine", Schedule::kCosine}, {"constant", Schedule::kConstant}});
  Fields model;
  model.Add("embed_dim", o.embed_dim, "width", {.min = 8});
  fields.AddAll(std::move(model), "model");
  return fields;
}

std::string UsageError(const std::vector<std::string>& words) {
  RunOptions options;
  Fields fields = FieldsOf(options);
  try {
    fields.ParseFlags(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kUsage);
    return error.message();
  }
  return "";
}

TEST(OptionsTest, Flags) {
  RunOptions o;
  Fields fields = FieldsOf(o);
  fields.ParseFlags(std::vector<std::string>{"a.pgn", "--batch-size", "32", "--learning_rate=1e-3",
                                             "--amp", "--max-steps", "7", "--widths", "1,2,3",
                                             "b.pgn", "--schedule", "constant", "--model.embed-dim",
                                             "512", "--", "--c"});
  EXPECT_EQ(o.batch_size, 32);
  EXPECT_EQ(o.learning_rate, 1e-3);
  EXPECT_TRUE(o.amp);
  EXPECT_EQ(o.max_steps, 7);
  EXPECT_EQ(o.widths, (std::vector{1, 2, 3}));
  EXPECT_EQ(o.files, (std::vector<std::string>{"a.pgn", "b.pgn", "--c"}));
  EXPECT_EQ(o.schedule, Schedule::kConstant);
  EXPECT_EQ(o.embed_dim, 512);
  EXPECT_TRUE(fields.WasGiven("batch_size"));
  EXPECT_FALSE(fields.WasGiven("out"));
}

TEST(OptionsTest, NoPrefixTurnsOff) {
  RunOptions o;
  o.amp = true;
  FieldsOf(o).ParseFlags(std::vector<std::string>{"--no-amp"});
  EXPECT_FALSE(o.amp);
}

TEST(OptionsTest, WrongFlagsSayWhatToDo) {
  EXPECT_THAT(UsageError({"--batchsize", "3"}), HasSubstr("did you mean --batch-size?"));
  EXPECT_THAT(UsageError({"--model.embed-dimm", "30"}),
              HasSubstr("did you mean --model.embed-dim?"));
  EXPECT_THAT(UsageError({"--qqqq"}), HasSubstr("--help"));
  EXPECT_THAT(UsageError({"-x"}), HasSubstr("unknown flag '-x'"));
  EXPECT_THAT(UsageError({"--files", "a"}), HasSubstr("give FILE as a word of its own"));
  EXPECT_THAT(UsageError({"--fils", "a"}), HasSubstr("unknown flag '--fils'; --help"));
  EXPECT_THAT(UsageError({"--batch-size", "0"}),
              HasSubstr("found '0', expected a whole number from 1 to 4096"));
  EXPECT_THAT(UsageError({"--batch-size", "3.5"}), HasSubstr("a whole number"));
  EXPECT_THAT(UsageError({"--batch-size"}), HasSubstr("wants a value"));
  EXPECT_THAT(UsageError({"--seed", "-1"}), HasSubstr("0 or more"));
  EXPECT_THAT(UsageError({"--schedule", "step"}), HasSubstr("one of cosine, constant"));
  EXPECT_THAT(UsageError({"--amp=maybe"}), HasSubstr("true or false"));
  EXPECT_THAT(UsageError({"--seed", "1", "--seed", "2"}), HasSubstr("given twice"));
  EXPECT_THAT(UsageError({"--widths", "1,0"}), HasSubstr("at least 1"));
  EXPECT_THAT(UsageError({"--learning-rate", "nan"}), HasSubstr("a number"));
}

TEST(OptionsTest, WhereThereAreNoOptionsItSaysSo) {
  Fields fields;
  EXPECT_EQ(fields.Set("temperature", "1"), "'temperature' is no option here: there are none");
}

TEST(OptionsTest, SavedCopyComesBack) {
  RunOptions o;
  o.batch_size = 5;
  o.max_steps = 9;
  o.schedule = Schedule::kConstant;
  o.embed_dim = 64;
  const auto tree = FieldsOf(o).ToTree();
  EXPECT_EQ(tree["model"]["embed_dim"], 64);
  RunOptions back;
  FieldsOf(back).ReadTree(tree, "checkpoint");
  EXPECT_EQ(FieldsOf(back).ToTree(), tree);
}

TEST(OptionsTest, HelpShowsDefaultsAndRanges) {
  RunOptions o;
  const std::string help = FieldsOf(o).Help();
  EXPECT_THAT(help, HasSubstr("--batch-size N"));
  EXPECT_THAT(help, HasSubstr("1 to 4096; default 64"));
  EXPECT_THAT(help, HasSubstr("--schedule cosine|constant"));
  EXPECT_THAT(help, HasSubstr("default 8,16"));
  EXPECT_EQ(FieldsOf(o).PositionalHelp(), " [FILE ...]");
}

TEST(OptionsTest, AnOutputFollowsItsFlag) {
  std::string in;
  std::string out;
  Fields fields;
  fields.Add("in", in, "read", {.required = true, .positional = true, .metavar = "FILE"});
  fields.Add("out", out, "written", {.required = true, .metavar = "FILE"});
  const std::vector<std::string> words = {"a", "b"};
  try {
    fields.ParseFlags(words);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kUsage);
    EXPECT_EQ(error.message(), "unexpected word 'b'; the output follows a flag: --out FILE");
  }
}

TEST(OptionsTest, RequiredFields) {
  std::string out;
  Fields fields;
  fields.Add("out", out, "where to write", {.required = true});
  EXPECT_THROW(fields.CheckRequired(), Error);
  fields.ParseFlags(std::vector<std::string>{"--out", "x"});
  EXPECT_NO_THROW(fields.CheckRequired());
}

class ConfigFileTest : public ::testing::Test {
 protected:
  std::string ErrorOf(const std::string& name, const std::string& text) {
    try {
      Read(name, text);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  RunOptions Read(const std::string& name, const std::string& text) {
    WriteFileAtomically(folder_.File(name), text);
    RunOptions o;
    FieldsOf(o).ReadConfig(folder_.File(name));
    return o;
  }
  testing::TempFolder folder_;
};

TEST_F(ConfigFileTest, YamlTomlAndJsonAreOne) {
  const RunOptions yaml = Read("a.yaml",
                               "batch_size: 32\nlearning_rate: 1e-3\namp: true\nmax_steps: null\n"
                               "widths: [1, 2]\nmodel:\n  embed_dim: 64\nout: \"1\"\n");
  const RunOptions toml = Read("a.toml",
                               "batch_size = 32\nlearning_rate = 1e-3\namp = true\nout = '1'\n"
                               "widths = [1, 2]\n[model]\nembed_dim = 64\n");
  const RunOptions json = Read("a.json", R"({"batch_size":32,"learning_rate":0.001,"amp":true,
      "widths":[1,2],"model":{"embed_dim":64},"out":"1"})");
  for (const RunOptions& o : {yaml, toml, json}) {
    EXPECT_EQ(o.batch_size, 32);
    EXPECT_EQ(o.learning_rate, 1e-3);
    EXPECT_TRUE(o.amp);
    EXPECT_EQ(o.widths, (std::vector{1, 2}));
    EXPECT_EQ(o.embed_dim, 64);
    EXPECT_EQ(o.out, "1");
  }
  EXPECT_EQ(Read("empty.yaml", "").batch_size, 64);
}

TEST_F(ConfigFileTest, ErrorsNameFileLineAndNearestKey) {
  EXPECT_THAT(ErrorOf("a.yaml", "out: x\nbatchsize: 3\n"),
              HasSubstr("a.yaml:2: unknown key 'batchsize'; did you mean 'batch_size'?"));
  EXPECT_THAT(ErrorOf("a.toml", "out = 'x'\n[model]\nembed_dimm = 3\n"),
              HasSubstr("a.toml:3: unknown key 'model.embed_dimm'; did you mean"));
  EXPECT_THAT(ErrorOf("b.yaml", "batch_size: many\n"),
              HasSubstr("b.yaml:1: key 'batch_size': found '\"many\"', expected a whole number"));
  EXPECT_THAT(ErrorOf("b.yaml", "batch_size: 1\nbatch_size: 2\n"), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf("b.yaml", "model: 3\n"), HasSubstr("unknown key 'model'"));
  EXPECT_THAT(ErrorOf("c.yaml", "a: [1\n"), HasSubstr("c.yaml:"));
  EXPECT_THAT(ErrorOf("c.toml", "a = \n"), HasSubstr("c.toml:1"));
  EXPECT_THAT(ErrorOf("c.json", "{"), HasSubstr("c.json"));
  EXPECT_THAT(ErrorOf("c.ini", "a=1"), HasSubstr(".yaml, .toml or .json"));
  EXPECT_THAT(ErrorOf("d.json", "[1]"), HasSubstr("expected keys and values"));
  RunOptions o;
  EXPECT_THROW(FieldsOf(o).ReadConfig(folder_.File("absent.yaml")), Error);
}

TEST(OptionsTest, AFlagMayLeaveOutItsSectionWhereThatIsClear) {
  int width = 1;
  int steps = 2;
  int model_length = 3;
  int data_length = 4;
  Fields fields;
  fields.Add("model.width", width, "");
  fields.Add("training.max_steps", steps, "");
  fields.Add("model.length", model_length, "");
  fields.Add("data.length", data_length, "");
  const std::vector<std::string> words = {"--max-steps", "7", "--model.length=5"};
  fields.ParseFlags(words);
  EXPECT_EQ(steps, 7);
  EXPECT_EQ(model_length, 5);
  const std::vector<std::string> unclear = {"--length", "7"};
  std::string message;
  try {
    fields.ParseFlags(unclear);
  } catch (const Error& error) {
    message = error.message();
  }
  EXPECT_EQ(message, "--length may be --model.length or --data.length; say which");
}

}  // namespace
}  // namespace kibitz
