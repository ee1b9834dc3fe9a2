#include "io/tables/npy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "tests/support/corruption.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using ::kibitz::testing::Cut;
using ::kibitz::testing::Flip;
using ::kibitz::testing::GoldenPath;
using ::kibitz::testing::MessageOf;
using ::kibitz::testing::ReadWhole;
using ::kibitz::testing::StaysWithin;
using ::kibitz::testing::TempFolder;

constexpr uint64_t kMaxForALie = 64 << 20;

// The rows of the golden 2048 packs.
struct StepRow {
  uint32_t run_id;
  uint32_t step_index;
  uint64_t board;
  int32_t board_eval;
  uint16_t tile_65536_mask;
  uint8_t move_dir;
  uint8_t valuation_type;
  uint8_t ev_legal;
  uint8_t max_rank;
  uint32_t seed;
  float branch_evs[4];
};
static_assert(sizeof(StepRow) == 48);

struct __attribute__((packed)) PackedStepRow {
  uint32_t run_id;
  uint32_t step_index;
  uint64_t board;
  int32_t board_eval;
  uint16_t tile_65536_mask;
  uint8_t move_dir;
  uint8_t valuation_type;
  uint8_t ev_legal;
  uint8_t max_rank;
  uint32_t seed;
  float branch_evs[4];
};
static_assert(sizeof(PackedStepRow) == 46);

std::vector<NpyField> StepFields() {
  return {
      {"run_id", DType::kU32},        {"step_index", DType::kU32},      {"board", DType::kU64},
      {"board_eval", DType::kI32},    {"tile_65536_mask", DType::kU16}, {"move_dir", DType::kU8},
      {"valuation_type", DType::kU8}, {"ev_legal", DType::kU8},         {"max_rank", DType::kU8},
      {"seed", DType::kU32},          {"branch_evs", DType::kF32, {4}}};
}

NpyFile Parse(std::string_view bytes) {
  return NpyFile::Parse(std::as_bytes(std::span(bytes)), "a.npy");
}

std::string ParseMessage(std::string_view bytes) {
  return MessageOf([&] { Parse(bytes); });
}

// A version 1 file with this header text.
std::string WithHeader(const std::string& text, const std::string& data = "") {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(text.size() & 0xff);
  file += static_cast<char>(text.size() >> 8);
  return file + text + data;
}
std::string WithShape(const std::string& descr, const std::string& shape,
                      const std::string& data = "") {
  return WithHeader(
      fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}\n", descr, shape), data);
}

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST(Npy, ReadsGoldenTypes) {
  const auto check = [](const std::string& name, DType type, std::vector<int64_t> shape) {
    const NpyFile file = NpyFile::Open(GoldenPath(name));
    const Tensor tensor = file.AsTensor();
    EXPECT_EQ(tensor.type, type) << name;
    EXPECT_EQ(tensor.shape.size(), shape.size()) << name;
    for (size_t i = 1; i < shape.size(); ++i) EXPECT_EQ(tensor.shape[i], shape[i]) << name;
    EXPECT_EQ(BytesOf(tensor.type, tensor.shape), tensor.bytes.size());
  };
  check("decoder/forward/fourier_input.npy", DType::kF32, {0});
  check("decoder/forward/board.ids.npy", DType::kI64, {0});
  check("decoder/forward/board.d_positions.npy", DType::kBool, {0});
  check("policy/expected/full/train_analysis_offsets.npy", DType::kU32, {0});
  check("policy/expected/full/train_meta.npy", DType::kI8, {0, 5});
  check("policy/expected/vocab.npy", DType::kU8, {0, 3});
  check("policy/expected/flip_table.npy", DType::kI32, {0});
  check("twenty48/model/action_policy/logits_f64.npy", DType::kF64, {0, 4});
}

TEST(Npy, FlippingTwiceIsNothing) {
  const auto flip =
      Values<int32_t>(NpyFile::Open(GoldenPath("policy/expected/flip_table.npy")).AsTensor());
  ASSERT_FALSE(flip.empty());
  for (size_t i = 0; i < flip.size(); ++i) {
    ASSERT_EQ(flip[static_cast<size_t>(flip[i])], static_cast<int32_t>(i));
  }
}

TEST(Npy, ReadsTheSameStepsAlignedAndPacked) {
  const NpyLayout aligned = NpyLayout::Aligned(StepFields());
  const NpyLayout packed = NpyLayout::Packed(StepFields());
  EXPECT_EQ(aligned.row_bytes, 48U);
  EXPECT_EQ(packed.row_bytes, 46U);
  const NpyFile steps = NpyFile::Open(GoldenPath("twenty48/pack/steps.npy"));
  const NpyFile steps46 = NpyFile::Open(GoldenPath("twenty48/pack/steps_packed46.npy"));
  const auto rows = steps.Rows<StepRow>(aligned);
  const auto rows46 = steps46.Rows<PackedStepRow>(packed);
  ASSERT_EQ(rows.size(), rows46.size());
  ASSERT_EQ(rows.size(), steps.rows());
  ASSERT_GT(rows.size(), 0U);
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].board, uint64_t{rows46[i].board});
    ASSERT_EQ(rows[i].seed, uint32_t{rows46[i].seed});
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the very bits.
    ASSERT_EQ(std::memcmp(rows[i].branch_evs, rows46[i].branch_evs, 16), 0);
  }
  for (const NpyField& field : aligned.fields) {
    const Tensor a = steps.CopyField(field.name);
    EXPECT_EQ(Values<uint8_t>(a), Values<uint8_t>(steps46.CopyField(field.name))) << field.name;
    EXPECT_EQ(a.shape.size(), field.name == "branch_evs" ? 2U : 1U);
  }
}

TEST(Npy, WritesTheGoldenStepsAsTheyWere) {
  const TempFolder folder;
  for (const std::string name : {"twenty48/pack/steps.npy", "twenty48/pack/steps_packed46.npy"}) {
    const NpyFile steps = NpyFile::Open(GoldenPath(name));
    const std::string path = folder.File("steps.npy");
    NpyWriter writer(path, steps.layout());
    const size_t row = steps.layout().row_bytes;
    writer.Append(steps.bytes().first(row));
    writer.Append(steps.bytes().subspan(row));
    EXPECT_EQ(writer.rows(), steps.rows());
    writer.Commit();
    const NpyFile again = NpyFile::Open(path);
    EXPECT_EQ(again.layout(), steps.layout());
    EXPECT_EQ(again.shape(), steps.shape());
    EXPECT_TRUE(std::ranges::equal(again.bytes(), steps.bytes()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(again.bytes().data()) % 64, 0U);
  }
}

TEST(Npy, RoundTripsEveryType) {
  const TempFolder folder;
  for (int i = 0; i <= static_cast<int>(DType::kF64); ++i) {
    const auto type = static_cast<DType>(i);
    if (type == DType::kBF16) continue;
    std::vector<std::byte> bytes(SizeOf(type) * 6);
    for (size_t b = 0; b < bytes.size(); ++b) bytes[b] = static_cast<std::byte>(b * 37 % 2);
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{6}, {2, 3}, {1, 6, 1}}) {
      const Tensor tensor = OwnedTensor(type, shape, bytes);
      WriteNpy(folder.File("a.npy"), tensor);
      const Tensor again = NpyFile::Open(folder.File("a.npy")).AsTensor();
      EXPECT_EQ(again.type, type);
      EXPECT_EQ(again.shape, shape);
      EXPECT_TRUE(std::ranges::equal(again.bytes, tensor.bytes));
    }
  }
  EXPECT_EQ(MessageOf([&] { WriteNpy(folder.File("b"), OwnedTensor(DType::kBF16, {0}, {})); }),
            "numpy has no bfloat16; convert it to float32 first");
}

TEST(Npy, ReadsNumbersAndEmptyArrays) {
  const std::string three = WithShape("'<f4'", "()", std::string("\0\0\x40\x40", 4));
  const NpyFile number = Parse(three);
  EXPECT_EQ(number.rows(), 1U);
  EXPECT_EQ(ToFloats(number.AsTensor()), std::vector<float>{3.0F});
  EXPECT_TRUE(Parse(WithShape("'|u1'", "(0, 7)")).bytes().empty());
  EXPECT_EQ(Parse(WithShape("'|i1'", "(3L,)", "abc")).rows(), 3U) << "as Python 2 wrote it";
}

TEST(Npy, ReadsVersions2And3) {
  const std::string text =
      "{'descr': [('\xc3\xa9', '|u1')], 'fortran_order': False, 'shape': (1,)}";
  const auto file = [&](char version) {
    std::string bytes("\x93NUMPY\x00\x00", 8);
    bytes[6] = version;
    bytes += static_cast<char>(text.size());
    return bytes + std::string(3, '\0') + text + "x";
  };
  EXPECT_EQ(Parse(file(2)).layout().fields[0].name, "\xc3\x83\xc2\xa9") << "Latin-1";
  EXPECT_EQ(Parse(file(3)).layout().fields[0].name, "\xc3\xa9") << "UTF-8";
  std::string broken = file(3);
  broken[broken.find('\xc3')] = '\xff';
  EXPECT_EQ(ParseMessage(broken), "a.npy: found a header that is not UTF-8");
  EXPECT_EQ(ParseMessage(file(4)), "a.npy: found version 4.0, expected 1.0, 2.0 or 3.0");
}

TEST(Npy, ReadsFieldsInEachForm) {
  const NpyLayout expected = {{{"a", DType::kU8, {}, 0}, {"b", DType::kF32, {2, 3}, 4}}, 32};
  const std::string data(32, 'x');
  for (const std::string descr :
       {"[('a', '|u1'), ('', '|V3'), ('b', '<f4', (2, 3)), ('', '|V4')]",
        "[(('title', 'a'), '|u1'), ('', '|V3'), (\"b\", '<f4', (2, 3)), ('', '|V4')]",
        "{'names': ['a', 'b'], 'formats': ['|u1', ('<f4', (2, 3))], 'offsets': [0, 4], "
        "'itemsize': 32}",
        "{'names': ['b', 'a'], 'formats': [('<f4', (2, 3)), '|u1'], 'offsets': [4, 0], "
        "'itemsize': 32}"}) {
    EXPECT_EQ(Parse(WithShape(descr, "(1,)", data)).layout(), expected) << descr;
  }
  const NpyLayout aligned = {{{"a", DType::kU8, {}, 0}, {"b", DType::kI64, {}, 8}}, 16};
  EXPECT_EQ(Parse(WithShape("{'names': ['a', 'b'], 'formats': ['|u1', '<i8'], 'aligned': True}",
                            "(2,)", data))
                .layout(),
            aligned);
  EXPECT_EQ(aligned.Text(), "{a uint8 @0, b int64 @8; 16 bytes}");
}

// Files and what is wrong with them.
using Refusals = std::vector<std::pair<std::string, std::string>>;

void ExpectRefusals(const Refusals& cases) {
  for (const auto& [bytes, message] : cases) {
    EXPECT_EQ(ParseMessage(bytes), "a.npy: found " + message);
    EXPECT_TRUE(StaysWithin(kMaxForALie, [&file = bytes] { Parse(file); })) << message;
  }
}

TEST(Npy, RefusesHeadersWithAReason) {
  ExpectRefusals({
      {"PK\x03\x04 zip", "'PK\\x03\\x04 z', expected \\x93NUMPY; this is not an .npy file"},
      {"\x93NUMPY", "6 bytes, expected a header; the file was cut short"},
      {std::string("\x93NUMPY\x01\x00\x10", 9),
       "9 bytes, expected a header; the file was cut short"},
      {std::string("\x93NUMPY\x01\x00\x10\x00 ", 11),
       "11 bytes, expected a header of 16; the file was cut short"},
      {std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12),
       "a header of 4294967295 bytes, expected at most 262144"},
      {WithHeader("import os"),
       "a header with something else than a string, a number, a tuple, a list, a dict or a bool "
       "at character 1"},
      {WithHeader("{'descr': '<f4', 'shape': (3,)}"),
       "a header that is not a dict of 'descr', 'fortran_order' and 'shape'"},
      {WithHeader("('descr',)"),
       "a header that is not a dict of 'descr', 'fortran_order' and 'shape'"},
      {WithHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 3)}"),
       "columns first (fortran_order); save np.ascontiguousarray(a) instead"},
      {WithHeader("{'descr': '<f4', 'fortran_order': 1, 'shape': (3, 3)}"),
       "a 'fortran_order' that is neither True nor False"},
      {WithShape("'>i4'", "(1,)"),
       "big-endian numbers (>i4); save a.astype(a.dtype.newbyteorder('<')) instead"},
      {WithShape("'|O'", "(1,)"),
       "Python objects (|O), which are never loaded; save arrays of numbers"},
      {WithShape("'<U4'", "(1,)"),
       "elements of type '<U4', expected bool, int, uint or float numbers"},
  });
}

TEST(Npy, RefusesFieldsWithAReason) {
  ExpectRefusals({
      {WithShape("3", "(1,)"), "a 'descr' that is neither a type nor fields"},
      {WithShape("[]", "(1,)"), "elements without any bytes"},
      {WithShape("[('', '|V8')]", "(1,)"), "elements without any bytes"},
      {WithShape("['a']", "(1,)"), "a field that is not a tuple"},
      {WithShape("[(1, '<f4')]", "(1,)"), "a field whose name is not a string"},
      {WithShape("[('', '<f4')]", "(1,)"), "a field without a name"},
      {WithShape("[('a', [('b', '<f4')])]", "(1,)"),
       "the field 'a' with fields of its own; save it flat"},
      {WithShape("[('a', '<f4'), ('a', '<f4')]", "(1,)"), "two fields named 'a'"},
      {WithShape("[('a', '<f4', (4294967296, 4294967296))]", "(1,)"),
       "the field 'a' of shape [4294967296, 4294967296], which is too large"},
      {WithShape("[('a', '<f4'), ('', '|V99999999999')]", "(1,)"), "padding of '|V99999999999'"},
      {WithShape("[('a', '|u1', 999999999), ('b', '|u1', 999999999)]", "(1,)"),
       "rows of over 1073741824 bytes"},
      {WithShape("{'names': ['a']}", "(1,)"), "fields without a list of 'formats'"},
      {WithShape("{'names': ['a'], 'formats': []}", "(1,)"), "fields whose lists differ in length"},
      {WithShape("{'names': [1], 'formats': ['<f4']}", "(1,)"),
       "a field whose name is not a string"},
      {WithShape("{'names': ['a'], 'formats': ['<f4'], 'offsets': [-1]}", "(1,)"),
       "a field whose offset is outside the row"},
      {WithShape("{'names': ['a'], 'formats': ['<f4'], 'itemsize': 3}", "(1,)"),
       "rows that are shorter than their fields"},
      {WithShape("{'names': ['a', 'b'], 'formats': ['<f4', '<f4'], 'offsets': [0, 2]}", "(1,)"),
       "the field 'b' overlapping another"},
  });
}

TEST(Npy, RefusesShapesWithAReason) {
  ExpectRefusals({
      {WithShape("'<f4'", "3"), "a shape that is not a tuple"},
      {WithShape("'<f4'", "(-1,)"), "a shape with something but sizes"},
      {WithShape("'<f4'", "('a',)"), "a shape with something but sizes"},
      {WithShape("'<f4'", "(4294967296, 4294967296)"),
       "the shape [4294967296, 4294967296], which is larger than any file"},
      {WithShape("'<f8'", "(4611686018427387904,)"),
       "the shape [4611686018427387904], which is larger than any file"},
      {WithShape("[('a', '<f8', (256, 256))]", "(0, 4611686018427387904)"),
       "the shape [0, 4611686018427387904], which is larger than any file"},
      {WithShape("'<f4'", "(18446744073709551615,)"),
       "a header with a number that does not fit 64 bits at character 52"},
      {WithShape("'<f4'", "(2,)", "1234"),
       "4 bytes of data, expected 8 for the shape [2]; the file is cut short"},
      {WithShape("'<f4'", "(1,)", "12345"),
       "5 bytes of data, expected 4 for the shape [1]; the file is too long"},
  });
  std::string axes = "(";
  for (int i = 0; i < 65; ++i) axes += "1,";
  EXPECT_EQ(ParseMessage(WithShape("'<f4'", axes + ")")),
            "a.npy: found a shape of more than 64 axes");
}

TEST(Npy, LongHeadersStayWithinMemory) {
  for (const std::string item : {"(", "1,", "[],", "'a',", "{", "{'a':", "('a','<f4'),"}) {
    std::string text = "{'descr': [";
    while (text.size() + item.size() < 60'000) text += item;
    EXPECT_NE(ParseMessage(WithHeader(text)), "");
    std::string file("\x93NUMPY\x02\x00\x00\x00\x04\x00", 12);  // The longest allowed.
    file += "{'descr': [";
    while (file.size() < (256 << 10) + 12) file += item;
    file.resize((256 << 10) + 12);
    EXPECT_TRUE(StaysWithin(kMaxForALie, [&] { Parse(file); })) << item;
  }
}

TEST(Npy, ChecksRowsAgainstTheStruct) {
  struct Row {
    uint32_t a;
  };
  const NpyLayout layout = NpyLayout::Packed({{"a", DType::kU32}});
  const std::string file = WithShape("[('a', '<u4')]", "(1,)", "1234");
  const size_t misplaced = (file.size() - 4) % 4;
  std::vector<std::byte> buffer(file.size() + 8);
  for (size_t shift = 0; shift < 4; ++shift) {
    std::memcpy(buffer.data() + shift, file.data(), file.size());
    const NpyFile npy = NpyFile::Parse(std::span(buffer).subspan(shift, file.size()), "a.npy");
    const std::string message = MessageOf([&] { npy.Rows<Row>(layout); });
    EXPECT_EQ(message, (misplaced + shift) % 4 == 0
                           ? ""
                           : "a.npy: the data does not start at a multiple of 4 bytes; save it "
                             "with numpy again");
  }
  const NpyFile npy = Parse(file);
  EXPECT_EQ(MessageOf([&] {
              npy.Rows<Row>(NpyLayout::Packed({{"b", DType::kU32}}));
            }),
            "a.npy: found {a uint32 @0; 4 bytes}, expected {b uint32 @0; 4 bytes}");
  EXPECT_EQ(MessageOf([&] { npy.AsTensor(); }),
            "a.npy: found rows {a uint32 @0; 4 bytes}, expected numbers");
  EXPECT_EQ(MessageOf([&] { npy.CopyField("c"); }),
            "a.npy: found no field 'c' in {a uint32 @0; 4 bytes}");
  const std::string square = WithShape("[('a', '<u4')]", "(1, 1)", "1234");
  EXPECT_EQ(MessageOf([&] { Parse(square).Rows<Row>(layout); }),
            "a.npy: found the shape [1, 1], expected one axis");
}

TEST(Npy, HeadersKeepTheirLength) {
  for (const std::vector<int64_t>& row : std::vector<std::vector<int64_t>>{{}, {13, 8, 8}}) {
    const auto header = [&](int64_t rows) {
      std::vector<int64_t> shape = {rows};
      shape.insert(shape.end(), row.begin(), row.end());
      return NpyHeader(NpyLayout::Aligned(StepFields()), shape);
    };
    EXPECT_EQ(header(0).size() % 64, 0U);
    EXPECT_EQ(header(0).size(), header(5'000'000'000).size());
    EXPECT_EQ(header(0).size(), header(std::numeric_limits<int64_t>::max()).size());
  }
  std::vector<NpyField> fields;
  fields.reserve(4000);
  for (int i = 0; i < 4000; ++i) fields.push_back({fmt::format("field_{}", i), DType::kU8});
  const std::vector<int64_t> none = {0};
  const std::string wide = NpyHeader(NpyLayout::Packed(fields), none);
  EXPECT_EQ(wide[6], 2) << "longer than version 1 can tell";
  EXPECT_EQ(Parse(wide).layout(), NpyLayout::Packed(fields));
  const NpyLayout odd = NpyLayout::Packed({{"\xc3\xa9 'quoted' \\ \n", DType::kU8}});
  EXPECT_EQ(NpyHeader(odd, none)[6], 3);
  EXPECT_EQ(Parse(NpyHeader(odd, none)).layout(), odd);
}

TEST(Npy, ReadsBeyondFourGigabytes) {
  const TempFolder folder;
  const std::string path = folder.File("large.npy");
  constexpr int64_t kRows = 5'000'000'000;  // A hole in the file, but for the last row.
  const std::vector<int64_t> shape = {kRows};
  const std::string header = NpyHeader(NpyLayout::Of(DType::kU8), shape);
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(pwrite(descriptor, header.data(), header.size(), 0),
            static_cast<ssize_t>(header.size()));
  ASSERT_EQ(pwrite(descriptor, "x", 1, static_cast<off_t>(header.size()) + kRows - 1), 1);
  close(descriptor);
  const NpyFile file = NpyFile::Open(path);
  EXPECT_EQ(file.rows(), static_cast<uint64_t>(kRows));
  EXPECT_EQ(file.bytes().back(), std::byte{'x'});
}

TEST(Npy, NothingStaysWithoutCommit) {
  const TempFolder folder;
  {
    NpyWriter writer(folder.File("a.npy"), NpyLayout::Of(DType::kU8));
    writer.Append(std::vector<std::byte>(100));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Npy, SurvivesDamage) {
  for (const std::string name : {"twenty48/pack/steps.npy", "twenty48/pack/steps_packed46.npy",
                                 "policy/expected/full/train_meta.npy"}) {
    const std::string bytes = ReadWhole(GoldenPath(name));
    const auto read = [](std::string_view damaged) {
      const NpyFile file = Parse(damaged);
      for (const NpyField& field : file.layout().fields) file.CopyField(field.name);
    };
    EXPECT_EQ(Cut(bytes, {}, read).reads, 0) << name;
    const size_t header = NpyHeader(Parse(bytes).layout(), Parse(bytes).shape()).size();
    const auto flips = Flip(bytes, {.flip_within = header}, read);
    EXPECT_GT(flips.errors, 5000) << name;
  }
}

TEST(Npy, NumpyReadsWhatIsWritten) {
  SKIP_WITHOUT_PYTHON("numpy");
  const std::string python = testing::PythonWith("numpy");
  const TempFolder folder;
  NpyWriter writer(folder.File("steps.npy"), NpyLayout::Aligned(StepFields()));
  for (uint32_t i = 0; i < 3; ++i) {
    const StepRow row = {i, 10 + i, 0x123456789abcdef0, -5, 7, 1, 2, 15, 11, 99, {0, 1, 2, 0.5F}};
    writer.Append(std::as_bytes(std::span(&row, 1)));
  }
  writer.Commit();
  NpyWriter planes(folder.File("planes.npy"), NpyLayout::Of(DType::kI16), {2, 3});
  std::vector<int16_t> values(24);
  std::iota(values.begin(), values.end(), int16_t{-3});
  planes.Append(std::as_bytes(std::span(values)));
  planes.Commit();
  WriteNpy(folder.File("number.npy"), OwnedTensor(DType::kU8, {}, {std::byte{42}}));
  const std::string script =
      "import numpy as np, os, sys\n"
      "os.chdir(sys.argv[1])\n"
      "s = np.load('steps.npy')\n"
      "print(s.dtype.itemsize, s['step_index'].tolist(), hex(s['board'][2]))\n"
      "print(s['branch_evs'][1].tolist(), s['seed'][0], s['board_eval'][0])\n"
      "p = np.load('planes.npy', mmap_mode='r')\n"
      "print(p.shape, p.dtype, p[3, 1].tolist())\n"
      "print(np.load('number.npy'))\n"
      "d = np.dtype([('a', 'u1'), ('b', '<f8', (2,)), ('c', '?')], align=True)\n"
      "np.save('back.npy', np.array([(1, (2.5, 3.5), True)], d))\n"
      "np.save('half.npy', np.array([[1.5, -2]], 'f2'))\n"
      "np.save('columns.npy', np.zeros((2, 3)).T)\n";
  const auto ran = testing::RunCommand({python, "-c", script, folder.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "48 [10, 11, 12] 0x123456789abcdef0\n[0.0, 1.0, 2.0, 0.5] 99 -5\n"
            "(4, 2, 3) int16 [18, 19, 20]\n42\n");

  const NpyFile back = NpyFile::Open(folder.File("back.npy"));
  EXPECT_EQ(back.layout(),
            NpyLayout::Aligned({{"a", DType::kU8}, {"b", DType::kF64, {2}}, {"c", DType::kBool}}));
  EXPECT_EQ(ToFloats(back.CopyField("b")), (std::vector<float>{2.5F, 3.5F}));
  const Tensor half = NpyFile::Open(folder.File("half.npy")).AsTensor();
  EXPECT_EQ(ToFloats(half), (std::vector<float>{1.5F, -2.0F}));
  EXPECT_NE(MessageOf([&] { NpyFile::Open(folder.File("columns.npy")); }).find("columns first"),
            std::string::npos);
}

}  // namespace
}  // namespace kibitz::io
