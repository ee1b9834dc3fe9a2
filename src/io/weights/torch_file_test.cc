#include "io/weights/torch_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/bytes/zip_reader.h"
#include "io/bytes/zip_writer.h"
#include "io/weights/safetensors.h"
#include "io/weights/state_dict.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using Kind = Value::Kind;
using testing::GoldenPath;
using testing::TempFolder;
using namespace std::string_literals;

std::vector<std::string> GoldenFiles(const std::string& extension) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GoldenPath(""))) {
    if (entry.path().extension() == extension) out.push_back(entry.path());
  }
  return out;
}

size_t CountTensors(const Value& value) {
  size_t count = value.Is(Kind::kTensor) ? 1 : 0;
  if (value.Is(Kind::kDict)) {
    for (const auto& [key, item] : value.pairs()) count += CountTensors(item);
  }
  if (value.Is(Kind::kList) || value.Is(Kind::kTuple)) {
    for (const Value& item : value.items()) count += CountTensors(item);
  }
  return count;
}

TEST(GoldenPt, EveryFileOpensWithAllItsTensors) {
  size_t files = 0;
  for (const std::string& path : GoldenFiles(".pt")) {
    const std::string bytes = testing::ReadWhole(path);
    size_t stored = 0;
    const ZipReader zip(std::as_bytes(std::span(bytes)), path);
    for (const auto& entry : zip.entries()) {
      stored += entry.name.find("/data/") != std::string_view::npos ? 1 : 0;
    }
    EXPECT_GE(CountTensors(ReadPt(path)), stored) << path;
    ++files;
  }
  EXPECT_GE(files, 3);
}

// The two files of one model hold the same numbers. Where the .pt keeps bfloat16 and the other
// float32, widening is exact.
TEST(GoldenPt, HoldsTheSameTensorsAsSafetensors) {
  size_t pairs = 0;
  for (const std::string& path : GoldenFiles(".safetensors")) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (const char* name : {"state_dict.pt", "model.pt"}) {
      const std::string other = folder / name;
      if (!testing::Exists(other)) continue;
      ++pairs;
      const Safetensors expected = ReadSafetensors(path);
      const StateDict weights = StateDict::From(ReadPt(other), other);
      EXPECT_EQ(weights.tensors().size(), expected.tensors.size());
      for (const auto& [tensor_name, tensor] : expected.tensors) {
        const Tensor& found = weights.Get(tensor_name);
        EXPECT_EQ(found.shape, tensor.shape);
        if (found.type == tensor.type) {
          EXPECT_TRUE(std::ranges::equal(found.bytes, tensor.bytes)) << tensor_name;
        } else {
          EXPECT_EQ(found.type, DType::kBF16) << tensor_name;
          EXPECT_EQ(ToFloats(found), ToFloats(tensor)) << tensor_name;
        }
      }
    }
  }
  EXPECT_GE(pairs, 3);
}

TEST(GoldenPt, ReadsAWholeCheckpoint) {
  const Value root = ReadPt(GoldenPath("decoder/checkpoint_layout/full.pt"));
  EXPECT_TRUE(root.Get("epoch").Is(Kind::kInt));
  EXPECT_TRUE(root.Get("config.training.use_amp").AsBool());
  EXPECT_TRUE(root.Get("config.training.resume_from").Is(Kind::kNone));
  EXPECT_EQ(root.Get("config.loss.move_weight").AsDouble(), 5.0);
  EXPECT_EQ(root.Get("optimizer_state_dict.param_groups.0.betas").items().size(), 2);
  EXPECT_TRUE(root.Get("optimizer_state_dict.state.2.exp_avg").Is(Kind::kTensor));
  EXPECT_EQ(root.Get("scaler_state_dict"), Value::Dict({}));
  EXPECT_EQ(root.Get("model_state_dict.tok_embedding.weight").stored().shape.size(), 2);
  EXPECT_THROW(root.Get("config.nothing"), Error);
}

TEST(GoldenPt, TensorsPointIntoTheMappedFile) {
  const Value root = ReadPt(GoldenPath("decoder/checkpoint_layout/full.pt"));
  const Value& value = root.Get("model_state_dict.tok_embedding.weight");
  const Tensor first = value.AsTensor();
  const Tensor second = value.AsTensor();
  EXPECT_EQ(first.bytes.data(), second.bytes.data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.bytes.data()) % 64, 0);
}

TEST(GoldenPt, StripsTheNamesOfCompiledModels) {
  const std::string path = GoldenPath("policy/models/mlp_1968/checkpoint_bundle.pt");
  const StateDict weights = StateDict::From(ReadPt(path), path);
  EXPECT_NE(weights.Find("net.0.weight"), nullptr);
  EXPECT_EQ(weights.Find("_orig_mod.net.0.weight"), nullptr);
}

Tensor Numbers(DType type, std::vector<int64_t> shape) {
  std::vector<std::byte> bytes(*BytesOf(type, shape));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 11 + 1);
  return OwnedTensor(type, std::move(shape), std::move(bytes));
}

Value Everything() {
  Value::Pairs tensors;
  for (DType type :
       {DType::kBool, DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kU32, DType::kI32,
        DType::kU64, DType::kI64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    tensors.emplace_back(Value::String(std::string(NameOf(type))),
                         Value::Of(Numbers(type, {2, 3, 4})));
  }
  tensors.emplace_back(Value::String("scalar"), Value::Of(Numbers(DType::kF32, {})));
  tensors.emplace_back(Value::String("empty"), Value::Of(Numbers(DType::kF32, {0, 7})));
  const Value numbers =
      Value::List({Value::Int(0), Value::Int(255), Value::Int(256), Value::Int(65536),
                   Value::Int(-1), Value::Int(INT64_MIN), Value::Int(INT64_MAX), Value::Float(0.1),
                   Value::Float(-INFINITY), Value::Float(NAN)});
  const Value nested = Value::Tuple(
      {Value(), Value::Bool(true), Value::Bool(false), Value::String("ü\n"), Value::Tuple({}),
       Value::Bytes("\0\x7f\x80\xff"s), Value::Set({Value::Int(1)}), Value::List({})});
  const Value device = Value::Of(
      Opaque{.module = "torch", .name = "device", .called = true, .args = {Value::String("cpu")}});
  return Value::Dict(
      {{Value::String("tensors"), Value::Dict(std::move(tensors))},
       {Value::String("numbers"), numbers},
       {Value::String("nested"), nested},
       {Value::String("state"), Value::Dict({{Value::Int(0), Value::Dict({})}})},
       {Value::String("dtype"), Value::Of(Opaque{.module = "torch", .name = "bfloat16"})},
       {Value::String("device"), device}});
}

TEST(WritePt, ReadsBackEverything) {
  const TempFolder folder;
  for (uint64_t zip64_from : {uint64_t{0xffffffff}, uint64_t{0}, uint64_t{1000}}) {
    WritePt(folder.File("x.pt"), Everything(), zip64_from);
    EXPECT_EQ(ReadPt(folder.File("x.pt")), Everything());
  }
}

TEST(WritePt, IsTheSameEveryTime) {
  const TempFolder folder;
  WritePt(folder.File("a.pt"), Everything());
  WritePt(folder.File("b.pt"), Everything());
  EXPECT_EQ(testing::ReadWhole(folder.File("a.pt")), testing::ReadWhole(folder.File("b.pt")));
}

TEST(WritePt, PutsViewsInRowOrder) {
  const Tensor base = Numbers(DType::kI16, {2, 3});
  StoredTensor view = Stored(base);
  view.shape = {3, 2};
  view.strides = {1, 3};
  const TempFolder folder;
  WritePt(folder.File("x.pt"), Value::Dict({{Value::String("t"), Value::Of(view)}}));
  const Tensor read = ReadPt(folder.File("x.pt")).Get("t").AsTensor();
  EXPECT_EQ(read.shape, view.shape);
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 2; ++column) {
      EXPECT_EQ(
          std::memcmp(&read.bytes[2 * (row * 2 + column)], &base.bytes[2 * (column * 3 + row)], 2),
          0);
    }
  }
}

TEST(WritePt, RefusesWhatTorchWouldNotRead) {
  const TempFolder folder;
  const auto refused = [&](const Value& value) {
    EXPECT_THROW(WritePt(folder.File("x.pt"), value), Error);
    EXPECT_FALSE(testing::Exists(folder.File("x.pt")));
  };
  refused(Value::Of(Opaque{.module = "os", .name = "system", .called = true}));
  refused(Value::Of(Opaque{.module = "torch", .name = "nothing"}));
  refused(Value::String("\xff"));
  Value deep;
  for (int i = 0; i < 501; ++i) deep = Value::List({deep});
  refused(deep);
}

// --- Files made by hand.

// A .pt whose pickle is `body`, with the given entries beside it.
std::string FileWith(const std::string& body,
                     const std::vector<std::pair<std::string, std::string>>& entries = {}) {
  const TempFolder folder;
  ZipWriter zip(folder.File("x.pt"));
  zip.Add("x/data.pkl", "\x80\x02" + body + ".");
  for (const auto& [name, bytes] : entries) zip.Add("x/" + name, bytes);
  zip.Finish();
  return testing::ReadWhole(folder.File("x.pt"));
}

Value Parse(const std::string& file) {
  auto owner = std::make_shared<const std::string>(file);
  const auto bytes = std::as_bytes(std::span(*owner));
  return ParsePt(bytes, std::move(owner), "test.pt");
}

void ExpectError(const std::string& file, const std::string& part) {
  try {
    ADD_FAILURE() << "no error but " << Describe(Parse(file)) << ", expected " << part;
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

std::string Text(const std::string& text) {
  return "X" + std::string(1, static_cast<char>(text.size())) + std::string(3, '\0') + text;
}

std::string Storage(const std::string& type, const std::string& count) {
  return "(" + Text("storage") + "ctorch\n" + type + "\n" + Text("0") + Text("cpu") + count + "tQ";
}

// Elements 1, 2, ... of float32.
std::string Floats(int count) {
  std::string out(static_cast<size_t>(count) * 4, '\0');
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i + 1);
    std::memcpy(out.data() + static_cast<size_t>(i) * 4, &value, 4);
  }
  return out;
}

// _rebuild_tensor_v2 with opcodes for offset, sizes and strides, over ten floats.
std::string View(const std::string& offset, const std::string& sizes, const std::string& strides) {
  return FileWith("ctorch._utils\n_rebuild_tensor_v2\n(" + Storage("FloatStorage", "K\x0a") +
                      offset + sizes + strides + "\x89}tR",
                  {{"data/0", Floats(10)}});
}

TEST(Pt, ReadsViews) {
  EXPECT_EQ(ToFloats(Parse(View("K\x02", "K\x02K\x03\x86", "K\x03K\x01\x86")).AsTensor()),
            (std::vector<float>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(ToFloats(Parse(View("K\x01", "K\x02K\x03\x86", "K\x01K\x02\x86")).AsTensor()),
            (std::vector<float>{2, 4, 6, 3, 5, 7}));
  EXPECT_EQ(ToFloats(Parse(View("K\x09", "K\x03\x85", "K\x00\x85"s)).AsTensor()),
            (std::vector<float>{10, 10, 10}));
  EXPECT_EQ(
      ToFloats(Parse(View("K\x00"s, "K\x02K\x01K\x02\x87", "K\x05K\x63K\x01\x87")).AsTensor()),
      (std::vector<float>{1, 2, 6, 7}));
  EXPECT_EQ(ToFloats(Parse(View("K\x03", ")", ")")).AsTensor()), (std::vector<float>{4}));
  EXPECT_TRUE(Parse(View("K\x0a", "K\x00\x85"s, "K\x01\x85")).AsTensor().bytes.empty());
}

TEST(Pt, RefusesViewsBeyondTheirStorage) {
  ExpectError(View("K\x01", "K\x0a\x85", "K\x01\x85"), "reaches beyond its storage of 10");
  ExpectError(View("K\x0a", ")", ")"), "reaches beyond its storage");
  ExpectError(View("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", ")", ")"), "reaches beyond");
  ExpectError(View("K\x00"s, "K\x02\x85", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85"),
              "reaches beyond");
  ExpectError(View("J\xff\xff\xff\xff", ")", ")"),
              "found a tensor of sizes [], strides [], offset -1");
  ExpectError(View("K\x00"s, "K\x02\x85", ")"), "found a tensor of sizes [2], strides []");
  ExpectError(View("K\x00"s, "J\xff\xff\xff\xff\x85", "K\x01\x85"),
              "found -1 among a tensor's sizes");
  ExpectError(View("K\x00"s, "N\x85", "K\x01\x85"), "found None among a tensor's sizes");
  ExpectError(View("K\x00"s, "N", "K\x01\x85"), "found None as a tensor's sizes");
  ExpectError(View("K\x00"s, "(" + std::string(65, 'N') + "t", ")"), "tuple of 65 as a tensor's");
  const std::string big = "\x8a\x05\0\0\0\0\x01"s;  // 2^32
  ExpectError(View("K\x00"s, big + big + "\x86", "K\x00K\x00\x86"s), "found a tensor of sizes");
  ExpectError(View("K\x00"s, big + big + "\x86", "K\x01K\x01\x86"), "found a tensor of sizes");
}

// Strides of 0 say much with few bytes: reading is fine, a copy of 16 GB is not.
TEST(Pt, RefusesCopiesThatExplode) {
  const std::string big = "\x8a\x05\0\0\0\0\x01"s;
  const Value value = Parse(View("K\x00"s, big + "\x85", "K\x00\x85"s));
  EXPECT_FALSE(value.stored().IsContiguous());
  EXPECT_THROW(value.AsTensor(), Error);
}

TEST(Pt, ReadsStoragesOfTheirOwn) {
  const Value plain = Parse(FileWith(Storage("FloatStorage", "K\x02"), {{"data/0", Floats(2)}}));
  EXPECT_EQ(ToFloats(plain.AsTensor()), (std::vector<float>{1, 2}));
  const Value untyped =
      Parse(FileWith(Storage("UntypedStorage", "K\x08"), {{"data/0", Floats(2)}}));
  EXPECT_EQ(untyped.stored().type, DType::kU8);
  const Value complex =
      Parse(FileWith(Storage("ComplexFloatStorage", "K\x01"), {{"data/0", Floats(2)}}));
  EXPECT_EQ(complex.opaque().name, "ComplexFloatStorage");
}

TEST(Pt, RefusesStoragesThatLie) {
  ExpectError(FileWith(Storage("FloatStorage", "K\x02")), "found no entry 'x/data/0'");
  ExpectError(FileWith(Storage("FloatStorage", "K\x03"), {{"data/0", Floats(2)}}),
              "entry 'x/data/0' holds 8 bytes, expected 3 elements of float32");
  ExpectError(FileWith(Storage("FloatStorage", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"),
                       {{"data/0", Floats(2)}}),
              "holds 8 bytes, expected 9223372036854775807 elements");
  ExpectError(FileWith(Storage("FloatStorage", "J\xff\xff\xff\xff"), {{"data/0", Floats(2)}}),
              "expected -1 elements");
  ExpectError(FileWith("ctorch._utils\n_rebuild_tensor_v2\n)R"), "with 0 arguments, expected 4");
  ExpectError(FileWith("ctorch._utils\n_rebuild_tensor_v3\n)R"), "with 0 arguments, expected 7");
  ExpectError(FileWith("ctorch._utils\n_rebuild_parameter\n)R"), "without a tensor");
}

TEST(Pt, KeepsTensorsOfOtherTypesOpaque) {
  const std::string arguments = Storage("ComplexFloatStorage", "K\x01") + "K\0))\x89}tR"s;
  const Value value =
      Parse(FileWith("ctorch._utils\n_rebuild_tensor_v2\n(" + arguments, {{"data/0", Floats(2)}}));
  EXPECT_EQ(value.opaque().name, "_rebuild_tensor_v2");
  EXPECT_EQ(value.opaque().args.at(0).opaque().name, "ComplexFloatStorage");
}

TEST(Pt, ReadsTensorsWithAttributes) {
  const std::string tensor =
      "(" + Storage("FloatStorage", "K\x02") + "K\0K\x02\x85K\x01\x85\x89}t"s;
  const Value value =
      Parse(FileWith("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n"
                     "_rebuild_tensor_v2\nctorch\nTensor\n" +
                         tensor + "}tR",
                     {{"data/0", Floats(2)}}));
  EXPECT_EQ(ToFloats(value.AsTensor()), (std::vector<float>{1, 2}));
}

TEST(Pt, RefusesOtherFiles) {
  ExpectError("", "found no zip");
  ExpectError("hello", "found no zip");
  ExpectError("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", "before version 1.6");
  ExpectError("PK\x03\x04", "too short for a zip");
  ExpectError(FileWith("N", {{"constants.pkl", "x"}}), "found a TorchScript archive");
  ExpectError(FileWith("N", {{"byteorder", "big"}}), "most significant byte first");
  EXPECT_EQ(Parse(FileWith("N", {{"byteorder", "little"}})), Value());
  const TempFolder folder;
  ZipWriter zip(folder.File("x.pt"));
  zip.Add("x/other", "");
  zip.Add("plain", "");
  zip.Finish();
  ExpectError(testing::ReadWhole(folder.File("x.pt")), "found a zip without data.pkl");
  EXPECT_THROW(ReadPt(folder.File("none.pt")), Error);
}

TEST(Value, FindsPathsWithDotsInKeys) {
  const Value root = Value::Dict(
      {{Value::String("a"), Value::Dict({{Value::String("x"), Value::Int(1)}})},
       {Value::String("a.b"), Value::Dict({{Value::Int(3), Value::List({Value::Int(7)})}})}});
  EXPECT_EQ(root.Get("a.x"), Value::Int(1));
  EXPECT_EQ(root.Get("a.b.3.0"), Value::Int(7));
  EXPECT_EQ(root.Find("a.b.3.1"), nullptr);
  EXPECT_EQ(root.Find("a.b.3.x"), nullptr);
  EXPECT_EQ(root.Find("a.x.y"), nullptr);
  EXPECT_EQ(root.Find(""), &root);
}

TEST(Value, SaysWhatItIsWhenAskedForAnother) {
  const Value value = Value::String("text");
  EXPECT_THROW(value.AsInt(), Error);
  EXPECT_THROW(value.AsBool(), Error);
  EXPECT_THROW(value.AsDouble(), Error);
  EXPECT_THROW(value.AsBytes(), Error);
  EXPECT_THROW(value.items(), Error);
  EXPECT_THROW(value.pairs(), Error);
  EXPECT_THROW(value.AsTensor(), Error);
  EXPECT_THROW(value.opaque(), Error);
  EXPECT_THROW(Value::Int(1).AsText(), Error);
  try {
    value.AsInt();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "found 'text', expected a whole number");
  }
}

TEST(StateDict, CollectsNestedTensorsAndStripsWrappers) {
  const Value tensor = Value::Of(Numbers(DType::kF32, {1}));
  const auto dict = [&](const std::vector<std::string>& names) {
    Value::Pairs pairs;
    for (const std::string& name : names) pairs.emplace_back(Value::String(name), tensor);
    return Value::Dict(std::move(pairs));
  };
  const auto names = [](const Value& root) {
    std::vector<std::string> out;
    const StateDict weights = StateDict::From(root, "x.pt");
    for (const auto& named : weights.tensors()) out.push_back(named.name);
    return out;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(dict({"a", "b.c"})), (Names{"a", "b.c"}));
  EXPECT_EQ(names(dict({"module._orig_mod.a", "module.b"})), (Names{"a", "b"}));
  EXPECT_EQ(names(dict({"_orig_mod.module.a", "x._orig_mod.b"})), (Names{"module.a", "x.b"}));
  EXPECT_EQ(names(dict({"my_orig_mod.a"})), (Names{"my_orig_mod.a"}));
  for (const char* key : {"model_state_dict", "state_dict", "model"}) {
    EXPECT_EQ(
        names(Value::Dict({{Value::String("other"), tensor}, {Value::String(key), dict({"a"})}})),
        (Names{"a"}));
  }
  EXPECT_EQ(names(Value::Dict({{Value::String("enc"), dict({"a"})},
                               {Value::Int(0), tensor},
                               {Value::String("epoch"), Value::Int(1)}})),
            (Names{"enc.a", "0"}));
  EXPECT_THROW(StateDict::From(dict({"a", "_orig_mod.a"}), "x.pt"), Error);
  EXPECT_THROW(StateDict::From(dict({}), "x.pt"), Error);
  EXPECT_THROW(StateDict::From(tensor, "x.pt"), Error);
}

TEST(StateDict, NamesTheNearestTensor) {
  const Value tensor = Value::Of(Numbers(DType::kF32, {1}));
  const StateDict weights =
      StateDict::From(Value::Dict({{Value::String("head.weight"), tensor}}), "x.pt");
  EXPECT_EQ(weights.Find("nothing"), nullptr);
  try {
    weights.Get("head.wieght");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("the nearest is 'head.weight'"), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace kibitz::io
