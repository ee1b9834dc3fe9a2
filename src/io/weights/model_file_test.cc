#include "io/weights/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "io/weights/convert_weights.h"
#include "io/weights/safetensors.h"
#include "io/weights/torch_file.h"
#include "tests/support/lc0_file.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using ::testing::HasSubstr;
using testing::MessageOf;
using testing::TempFolder;
using Json = nlohmann::ordered_json;

Tensor Zeros(std::vector<int64_t> shape) {
  const auto bytes = static_cast<size_t>(BytesOf(DType::kF32, shape).value());
  return OwnedTensor(DType::kF32, std::move(shape), std::vector<std::byte>(bytes));
}

Value Dict(std::vector<std::pair<std::string, Value>> items) {
  Value::Pairs pairs;
  for (auto& [key, value] : items) pairs.emplace_back(Value::String(key), std::move(value));
  return Value::Dict(std::move(pairs));
}

// A checkpoint with an object in its config, as training scripts leave them.
Value Checkpoint() {
  const Value object = Value::Of(Opaque{.module = "torch", .name = "float32"});
  const Value config = Dict({{"model", Dict({{"width", Value::Int(3)}, {"dtype", object}})},
                             {"binning", Dict({{"bins", Value::Int(5)}})}});
  return Dict({{"model_state_dict", Dict({{"head.weight", Value::Of(Zeros({2, 3}))}})},
               {"config", config}});
}

struct Sizes {
  int width = 7;
  int depth = 8;
};
Fields FieldsOf(Sizes& sizes) {
  Fields fields;
  fields.Add("width", sizes.width, "numbers of a row", {.min = 1, .max = 100});
  fields.Add("depth", sizes.depth, "layers", {.min = 1, .max = 100});
  return fields;
}

TEST(ModelFileTest, ReadsEveryFormat) {
  const TempFolder folder;
  WritePt(folder.File("run.pt"), Checkpoint());
  ConvertPtToSafetensors(folder.File("run.pt"), folder.File("run.safetensors"));
  for (const std::string name : {"run.pt", "run.safetensors"}) {
    const ModelFile file = ReadModel(folder.File(name));
    EXPECT_EQ(file.place, folder.File(name));
    EXPECT_EQ(file.format, name == "run.pt" ? ModelFormat::kTorch : ModelFormat::kSafetensors);
    EXPECT_EQ(file.weights.tensors().size(), 1U);
    EXPECT_EQ(file.weights.Get("head.weight").shape, (std::vector<int64_t>{2, 3}));
    ASSERT_NE(file.Section("model"), nullptr);
    EXPECT_EQ(*file.Section("model"), (Json{{"width", 3}})) << "the object is left out";
    EXPECT_EQ(*file.Section("binning"), (Json{{"bins", 5}}));
    EXPECT_EQ(file.Section("none"), nullptr);
  }
  testing::WriteLc0File(folder.File("net.pb"), {.blocks = 3});
  const ModelFile lc0 = ReadModel(folder.File("net.pb"));
  EXPECT_EQ(lc0.format, ModelFormat::kLc0);
  EXPECT_EQ(lc0.Section("model")->at("blocks"), 3);
  EXPECT_NE(lc0.weights.Find("residual.2.conv1.weights"), nullptr);
  EXPECT_EQ(lc0.weights.Find("residual.3.conv1.weights"), nullptr);
}

TEST(ModelFileTest, ContentDecidesBeforeTheName) {
  const TempFolder folder;
  WritePt(folder.File("run.safetensors"), Checkpoint());
  EXPECT_EQ(ReadModel(folder.File("run.safetensors")).format, ModelFormat::kTorch);
  testing::WriteLc0File(folder.File("weights"));
  EXPECT_EQ(ReadModel(folder.File("weights")).format, ModelFormat::kLc0);
}

TEST(ModelFileTest, WritesAFolderThatItReads) {
  const TempFolder folder;
  const StateDict weights({{"a", Zeros({2})}, {"b", Zeros({4, 1})}}, "test");
  const std::string model = folder.File("model");
  WriteModel(model, weights, {{"width", 9}, {"binning", {{"bins", 5}}}});
  // The folder, or the weights in it.
  for (const std::string& path : {model, model + "/model.safetensors"}) {
    const ModelFile file = ReadModel(path);
    EXPECT_EQ(file.place, model + "/model.safetensors");
    EXPECT_EQ(file.weights.tensors().size(), 2U);
    EXPECT_EQ(*file.Section("model"), (Json{{"width", 9}}));
    EXPECT_EQ(*file.Section("binning"), (Json{{"bins", 5}}));
  }
  std::filesystem::remove(model + "/config.json");
  EXPECT_EQ(ReadModel(model).Section("model"), nullptr);
}

TEST(ModelFileTest, SaysWhatIsMissing) {
  const TempFolder folder;
  for (const std::string name : {"none", "none.pt", "none.safetensors", "none.pb.gz"}) {
    EXPECT_THAT(MessageOf([&] { ReadModel(folder.File(name)); }),
                HasSubstr(name + ": found no such file or folder, expected a model"));
  }
  EXPECT_THAT(MessageOf([&] { ReadModel(folder.path()); }),
              HasSubstr(folder.path() + ": found no model.safetensors in the folder, expected"));
  for (const std::string name : {"b.pt", "a.pb.gz", "notes.txt"}) {
    WriteFileAtomically(folder.File(name), "x");
  }
  EXPECT_THAT(MessageOf([&] { ReadModel(folder.path()); }),
              HasSubstr("in the folder (it has a.pb.gz, b.pt), expected"));
  EXPECT_THAT(MessageOf([&] { ReadModel(""); }), HasSubstr("no model: found an empty path"));
}

TEST(ModelFileTest, FindsModelsThatShip) {
  const TempFolder folder;
  const std::string model = folder.path() + "/models/test-model";
  WriteModel(model, StateDict({{"a", Zeros({2})}}, "test"), {{"width", 9}});
  setenv("KIBITZ_SHARE", folder.path().c_str(), 1);
  for (const std::string name : {"models/test-model", "test-model"}) {
    EXPECT_EQ(ReadModel(name).place, model + "/model.safetensors");
  }
  unsetenv("KIBITZ_SHARE");
}

TEST(ModelFileTest, UnknownKeysAreNoError) {
  const TempFolder folder;
  WriteModel(folder.path(), StateDict({{"a", Zeros({2})}}, "test"),
             {{"width", 9}, {"depth", nullptr}, {"rope_theta", 1e4}, {"shape", {1, 2}}});
  const ModelFile file = ReadModel(folder.path());
  Sizes sizes;
  ::testing::internal::CaptureStderr();
  file.ReadSection("model", FieldsOf(sizes));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(sizes.width, 9);
  EXPECT_EQ(sizes.depth, 8) << "null leaves the field as it is";
  EXPECT_THAT(said, HasSubstr("unknown keys left out: rope_theta, shape"));
  file.ReadSection("none", FieldsOf(sizes));
  EXPECT_EQ(sizes.width, 9);
}

TEST(ModelFileTest, ValuesThatDoNotFitAreErrors) {
  const TempFolder folder;
  WriteModel(folder.path(), StateDict({{"a", Zeros({2})}}, "test"), {{"width", 101}});
  Sizes sizes;
  EXPECT_THAT(MessageOf([&] { ReadModel(folder.path()).ReadSection("model", FieldsOf(sizes)); }),
              HasSubstr("model.safetensors, config.model: key 'width': found '101', expected"));
}

TEST(ModelFileTest, SizesFromShapes) {
  const StateDict weights({{"x.0.w", Zeros({2, 3})}, {"x.1.w", Zeros({2, 3})}}, "here.pt");
  EXPECT_EQ(SizeFromShape(weights, "x.0.w", 1), 3);
  EXPECT_EQ(CountLayers(weights, "x.{}.w"), 2);
  EXPECT_EQ(CountLayers(weights, "x.{}.w", 1), 1);
  EXPECT_EQ(CountLayers(weights, "y.{}.w"), 0);
  EXPECT_THAT(MessageOf([&] { SizeFromShape(weights, "x.0.w", 2); }),
              HasSubstr("here.pt: x.0.w is [2, 3], expected at least 3 axes"));
}

}  // namespace
}  // namespace kibitz::io
