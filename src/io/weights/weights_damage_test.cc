// Damaged .pt and safetensors files: every one is read or refused with an Error, and no lie makes
// us allocate much.
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "io/bytes/little_endian.h"
#include "io/bytes/zip_writer.h"
#include "io/weights/convert_weights.h"
#include "io/weights/safetensors.h"
#include "io/weights/torch_file.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using testing::GoldenPath;

const char* const kPt = "decoder/checkpoint_layout/full.pt";
const char* const kSafetensors = "policy/models/cnn_rmsnorm_flip/model.safetensors";

uint64_t g_touched = 0;  // Keeps the reads below from being optimised away.

void Touch(const Tensor& tensor) {
  for (std::byte byte : tensor.bytes) g_touched += static_cast<uint64_t>(byte);
}

void Walk(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kList:
    case Value::Kind::kTuple:
    case Value::Kind::kSet:
      for (const Value& item : value.items()) Walk(item);
      break;
    case Value::Kind::kDict:
      for (const auto& [key, item] : value.pairs()) Walk(item);
      break;
    case Value::Kind::kTensor:
      Touch(value.AsTensor());
      break;
    default:
      g_touched += Describe(value).size();
  }
}

// Reads the file in a buffer of exactly its size. Returns whether it was accepted; only Error may
// be thrown.
bool ReadsPt(const std::vector<char>& file) {
  try {
    Walk(ParsePt(std::as_bytes(std::span(file)), nullptr, "damaged.pt"));
    return true;
  } catch (const Error& error) {
    EXPECT_GT(error.message().size(), 10);
    return false;
  }
}

bool ReadsSafetensors(const std::vector<char>& file) {
  try {
    const Safetensors content =
        ParseSafetensors(std::as_bytes(std::span(file)), nullptr, "damaged.safetensors");
    for (const NamedTensor& tensor : content.tensors) Touch(tensor.tensor);
    return true;
  } catch (const Error& error) {
    EXPECT_GT(error.message().size(), 10);
    return false;
  }
}

std::vector<char> Load(const std::string& name) {
  const std::string whole = testing::ReadWhole(GoldenPath(name));
  return {whole.begin(), whole.end()};
}

// Cut at every byte of the first 4 KB and at 500 random places.
template <typename Reads>
void ExpectNoTruncationReads(const std::vector<char>& file, Reads reads) {
  ASSERT_TRUE(reads(file));
  Rng rng({.seed = 1, .purpose = Purpose("truncate")});
  const auto cut = [&](size_t size) {
    ASSERT_FALSE(reads(std::vector<char>(file.begin(), file.begin() + static_cast<long>(size))))
        << "cut at " << size;
  };
  for (size_t size = 0; size < std::min<size_t>(4096, file.size()); ++size) cut(size);
  for (int i = 0; i < 500; ++i) cut(rng.Below(file.size()));
}

// One bit flipped, `count` times, at places that `place` draws. Some flips change nothing that
// is checked (a name, a number): those files are read.
template <typename Reads, typename Place>
void FlipBits(std::vector<char> file, int count, Reads reads, Place place) {
  Rng rng({.seed = 2, .purpose = Purpose("flip")});
  int read = 0;
  for (int i = 0; i < count; ++i) {
    const size_t at = place(rng);
    const auto bit = static_cast<char>(1 << rng.Below(8));
    file[at] = static_cast<char>(file[at] ^ bit);
    read += reads(file) ? 1 : 0;
    file[at] = static_cast<char>(file[at] ^ bit);
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, count);
}

TEST(WeightsDamage, PtCutOff) { ExpectNoTruncationReads(Load(kPt), ReadsPt); }

TEST(WeightsDamage, SafetensorsCutOff) {
  ExpectNoTruncationReads(Load(kSafetensors), ReadsSafetensors);
}

TEST(WeightsDamage, PtBitsFlipped) {
  const std::vector<char> file = Load(kPt);
  const std::string_view text(file.data(), file.size());
  const size_t pickle_end = text.find("PK\x07\x08");  // The record after torch's first entry.
  const size_t directory = text.find("PK\x01\x02");
  ASSERT_LT(pickle_end, directory);
  FlipBits(file, 10000, ReadsPt, [&](Rng& rng) {
    const uint64_t at = rng.Below(pickle_end + (file.size() - directory));
    return at < pickle_end ? at : directory + (at - pickle_end);
  });
}

TEST(WeightsDamage, SafetensorsBitsFlipped) {
  const std::vector<char> file = Load(kSafetensors);
  const size_t header = 8 + LoadLittle<uint64_t>(std::as_bytes(std::span(file)));
  FlipBits(file, 10000, ReadsSafetensors, [&](Rng& rng) { return rng.Below(header); });
}

// The most address space this process ever used, in bytes.
uint64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmPeak:")) return std::stoull(line.substr(7)) * 1024;
  }
  return 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasurable = false;  // Sanitizers keep freed memory for a while.
#else
constexpr bool kMeasurable = true;
#endif

template <typename Reads>
void ExpectRefusedInLittleMemory(const std::string& file, Reads reads) {
  const std::vector<char> bytes(file.begin(), file.end());
  const uint64_t before = PeakBytes();
  EXPECT_FALSE(reads(bytes));
  if (kMeasurable) {
    EXPECT_LT(PeakBytes() - before, uint64_t{64} << 20);
  }
}

std::string PtWith(const std::string& pickle_body, const std::string& storage) {
  const testing::TempFolder folder;
  ZipWriter zip(folder.File("x.pt"));
  zip.Add("x/data.pkl", "\x80\x02" + pickle_body + ".");
  zip.Add("x/data/0", storage);
  zip.Finish();
  return testing::ReadWhole(folder.File("x.pt"));
}

TEST(WeightsDamage, LiesCostNoMemory) {
  ASSERT_GT(PeakBytes(), 0);
  using namespace std::string_literals;
  const std::string huge = "\xff\xff\xff\xff\xff\xff\xff\x7f"s;
  for (const std::string& body :
       {"X\xff\xff\xff\xff"s, "B\xff\xff\xff\xff"s, "\x8d" + huge, "\x8e" + huge, "\x96" + huge,
        "\x95" + huge, "\x8b\xff\xff\xff\x7f"s,
        "Nr\xff\xff\xff\xff"
        "00"s,
        std::string(1 << 18, '(') + "t"s, std::string(1 << 18, ']')}) {
    ExpectRefusedInLittleMemory(PtWith(body, ""), ReadsPt);
  }
  // A tensor of 2^32 x 2^31 bytes, with strides of 0: every element is in the storage.
  const std::string tensor =
      "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nByteStorage\nX\1\0\0\0"
      "0X\3\0\0\0cpuK\1tQK\0\x8a\5\0\0\0\0\1\x8a\5\0\0\0\x80\0\x86K\0K\0\x86\x89}tR"s;
  ExpectRefusedInLittleMemory(PtWith(tensor, "x"), ReadsPt);
  for (const char* shape :
       {"[4294967296,4294967296]", "[9223372036854775807]", "[1099511627776]"}) {
    const std::string header =
        fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":[0,4]}}}})", shape);
    std::string file;
    AppendLittle(file, uint64_t{header.size()});
    ExpectRefusedInLittleMemory(file + header + "1234", ReadsSafetensors);
  }
  ExpectRefusedInLittleMemory(huge + "{}", ReadsSafetensors);
}

TEST(WeightsDamage, NamedProgramsAreNotRun) {
  const testing::TempFolder folder;
  const std::string mark = folder.File("was-run");
  const std::string command = "touch " + mark;
  std::string body = "cos\nsystem\nX";
  AppendLittle(body, static_cast<uint32_t>(command.size()));
  const std::string file = PtWith(body + command + "\x85R", "");
  const Value value = ParsePt(std::as_bytes(std::span(file)), nullptr, "evil.pt");
  EXPECT_EQ(value.opaque().FullName(), "os.system");
  EXPECT_FALSE(testing::Exists(mark));
  EXPECT_THROW(WritePt(folder.File("again.pt"), value), Error);
}

// Ten thousand copies with one bit flipped anywhere: the checksum finds them all.
template <typename Reads>
void ExpectEveryFlipIsFound(const std::string& path, const Reads& reads) {
  const std::string whole = testing::ReadWhole(path);
  std::vector<char> file(whole.begin(), whole.end());
  ASSERT_TRUE(reads(file));
  Rng rng({.seed = 8, .purpose = Purpose("flips")});
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t bit = rng.Below(8 * file.size());
    const auto mask = static_cast<char>(1 << (bit % 8));
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ mask);
    EXPECT_FALSE(reads(file)) << "bit " << bit;
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ mask);
  }
}

TEST(WeightsDamage, ChecksumsFindEveryFlippedBit) {
  const testing::TempFolder folder;
  const Tensor tensor =
      OwnedTensor(DType::kF32, {64}, std::vector<std::byte>(256, std::byte{0x3f}));
  WritePt(folder.File("a.pt"), Value::Dict({{Value::String("weight"), Value::Of(tensor)},
                                            {Value::String("step"), Value::Int(7)}}));
  ExpectEveryFlipIsFound(folder.File("a.pt"), ReadsPt);
  WriteSafetensors(folder.File("a.safetensors"),
                   {.tensors = {{"weight", tensor}}, .metadata = {{"format", "pt"}}});
  ExpectEveryFlipIsFound(folder.File("a.safetensors"), ReadsSafetensors);
}

}  // namespace
}  // namespace kibitz::io
