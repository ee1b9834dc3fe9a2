#include "io/weights/convert_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "io/weights/torch_file.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::GoldenPath;
using testing::TempFolder;

Tensor Two(float a, float b) {
  const float values[] = {a, b};
  const auto bytes = std::as_bytes(std::span(values));
  return OwnedTensor(DType::kF32, {2}, {bytes.begin(), bytes.end()});
}

Value Text(const std::string& text) { return Value::String(text); }

// To safetensors and back, through files.
Value ThereAndBack(const Value& root) {
  const TempFolder folder;
  const FlatWeights flat = Flatten(root, "test.pt");
  WriteSafetensors(folder.File("x.safetensors"), flat.tensors, flat.metadata);
  return Unflatten(ReadSafetensors(folder.File("x.safetensors")), "x.safetensors");
}

TEST(ConvertWeights, KeepsAPlainStateDict) {
  const Value root = Value::Dict(
      {{Text("b.weight"), Value::Of(Two(1, 2))}, {Text("a.bias"), Value::Of(Two(3, 4))}});
  EXPECT_EQ(ThereAndBack(root), root);
  const FlatWeights flat = Flatten(root, "test.pt");
  EXPECT_EQ(flat.tensors[0].name, "b.weight");
  EXPECT_EQ(flat.metadata, (Metadata{{"format", "pt"}}));
}

TEST(ConvertWeights, KeepsWhatIsNoTensor) {
  const Value odd = Value::Tuple(
      {Value(), Value::Bool(true), Value::Int(INT64_MIN), Value::Float(2.0), Value::Float(-0.0),
       Value::Float(NAN), Value::Float(INFINITY), Value::Float(-INFINITY),
       Value::Bytes(std::string("\0\xff", 2)), Value::Set({Value::Int(1)}), Value::List({}),
       Value::Dict({{Text("$x"), Value::Int(1)}}), Value::Dict({}), Text("\"ü\n")});
  const Value state =
      Value::Dict({{Value::Int(0), Value::Dict({{Text("exp_avg"), Value::Of(Two(5, 6))}})}});
  const Value object = Value::Of(Opaque{.module = "numpy",
                                        .name = "dtype",
                                        .called = true,
                                        .args = {Text("f8"), Value::Of(Two(7, 8))},
                                        .state = Value::Int(3),
                                        .items = {Value::Int(4)},
                                        .pairs = {{Value::Int(5), Value::Int(6)}}});
  const Value root = Value::Dict({{Text("odd"), odd},
                                  {Text("optimizer"), Value::Dict({{Text("state"), state}})},
                                  {Text("object"), object},
                                  {Text("a"), Value::Dict({{Text("b"), Value::Of(Two(9, 10))}})},
                                  {Text("a.b"), Value::Of(Two(11, 12))}});
  EXPECT_EQ(ThereAndBack(root), root);
}

TEST(ConvertWeights, WritesConfigAsPlainJson) {
  const Value root =
      Value::Dict({{Text("config"),
                    Value::Dict({{Text("width"), Value::Int(8)}, {Text("lr"), Value::Float(0.1)}})},
                   {Text("epoch"), Value::Int(3)}});
  const FlatWeights flat = Flatten(root, "test.pt");
  EXPECT_EQ(flat.metadata[0],
            (std::pair<std::string, std::string>{"config", R"({"width":8,"lr":0.1})"}));
  EXPECT_EQ(flat.metadata[1], (std::pair<std::string, std::string>{"epoch", "3"}));
}

TEST(ConvertWeights, KeepsMetadataFromElsewhere) {
  const Safetensors content = {.tensors = {{"w", Two(1, 2)}},
                               .metadata = {{"format", "pt"}, {"author", "me"}}};
  const Value root = Unflatten(content, "x.safetensors");
  EXPECT_EQ(root.Get("__metadata__.author"), Text("me"));
  EXPECT_EQ(root.Find("__metadata__.format"), nullptr);
  const FlatWeights back = Flatten(root, "x.pt");
  EXPECT_EQ(back.metadata, (Metadata{{"author", "me"}, {"format", "pt"}}));
  // No more than the format: a state dict that a module loads without complaint.
  const Safetensors plain = {.tensors = {{"w", Two(1, 2)}}, .metadata = {{"format", "pt"}}};
  EXPECT_EQ(Unflatten(plain, "x"), Value::Dict({{Text("w"), Value::Of(Two(1, 2))}}));
}

TEST(ConvertWeights, TakesGoldenFilesThereAndBack) {
  const TempFolder folder;
  for (const char* name :
       {"decoder/checkpoint_layout/full.pt", "policy/models/mlp_1968/checkpoint_bundle.pt",
        "policy/models/cnn_rmsnorm_flip/state_dict.pt", "twenty48/model/action_policy/model.pt"}) {
    ConvertPtToSafetensors(GoldenPath(name), folder.File("x.safetensors"));
    ConvertSafetensorsToPt(folder.File("x.safetensors"), folder.File("x.pt"));
    EXPECT_EQ(ReadPt(folder.File("x.pt")), ReadPt(GoldenPath(name))) << name;
  }
}

TEST(ConvertWeights, RefusesRootsWithoutNames) {
  EXPECT_THROW(Flatten(Value::List({}), "x.pt"), Error);
  EXPECT_THROW(Flatten(Value::Dict({{Value::Int(0), Value()}}), "x.pt"), Error);
  EXPECT_THROW(Flatten(Value::Dict({{Text("a"), Text("\xed\xa0\x80")}}), "x.pt"), Error);
}

TEST(ConvertWeights, RefusesBrokenMetadata) {
  const auto expect = [](const std::string& json, const std::string& part) {
    const Safetensors content = {.tensors = {{"w", Two(1, 2)}},
                                 .metadata = {{"kibitz.values", R"(["v"])"}, {"v", json}}};
    try {
      Unflatten(content, "x.safetensors");
      ADD_FAILURE() << "no error for " << json;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
    }
  };
  expect("{", "metadata 'v' is not JSON");
  expect(R"({"$tensor":"none"})", "stands for nothing we know");
  expect(R"({"$what":1})", "stands for nothing we know");
  expect(R"({"$bytes":"0"})", "stands for nothing we know");
  expect(R"({"$bytes":"0g"})", "stands for nothing we know");
  expect(R"({"$float":"x"})", "stands for nothing we know");
  expect(R"({"$tuple":1})", "expected an array");
  expect(R"({"$dict":[1]})", "expected [key, value]");
  expect(R"({"$opaque":1})", "an $opaque without module");
  expect(R"({"$opaque":{"module":1,"name":"x","called":true}})", "an $opaque without names");
  expect("18446744073709551615", "expected 63 bits");
  expect(std::string(600, '[') + std::string(600, ']'), "nested over 500 deep");
}

TEST(ConvertWeights, RefusesListsOfValuesThatLie) {
  const auto refused = [](const Metadata& metadata) {
    const Safetensors content = {.tensors = {{"w", Two(1, 2)}}, .metadata = metadata};
    EXPECT_THROW(Unflatten(content, "x.safetensors"), Error);
  };
  refused({{"kibitz.values", "["}});
  refused({{"kibitz.values", "[1]"}});
  refused({{"kibitz.values", R"(["none"])"}});
  refused({{"kibitz.values", R"(["v","v"])"}, {"v", "1"}});
  refused({{"kibitz.values", R"(["w"])"}, {"w", "1"}});
  refused({{"kibitz.values", R"(["__metadata__"])"}, {"__metadata__", "1"}, {"k", "v"}});
}

}  // namespace
}  // namespace kibitz::io
