// The same files through Debian's python3-torch: it reads what we write, we read what it writes.
// Skipped where it is not installed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "io/weights/state_dict.h"
#include "io/weights/torch_file.h"
#include "tests/support/test_data.h"

namespace kibitz::io {
namespace {

using Kind = Value::Kind;
using testing::TempFolder;

// Runs a script with the file's path as its only argument; returns what it prints.
std::string RunPython(const std::string& script, const std::string& path) {
  const auto ran = testing::RunCommand({testing::PythonWith("torch"), "-c", script, path});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.out;
}

std::string Shown(const std::vector<float>& values) {
  std::string out;
  for (float value : values) out += fmt::format("{} ", value);
  return out;
}

Tensor TensorOf(DType type, std::vector<int64_t> shape) {
  std::vector<std::byte> bytes(*BytesOf(type, shape));
  // Small patterns that are ordinary numbers in every type.
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(type == DType::kBool ? i % 2 : (i * 13 + 5) % 0x3f);
  }
  return OwnedTensor(type, std::move(shape), std::move(bytes));
}

const std::vector<DType>& TorchTypes() {
  static const std::vector<DType> types = {DType::kBool, DType::kU8,  DType::kI8,  DType::kI16,
                                           DType::kI32,  DType::kI64, DType::kF16, DType::kBF16,
                                           DType::kF32,  DType::kF64};
  return types;
}

Value TensorsOfAllTypes() {
  Value::Pairs pairs;
  for (DType type : TorchTypes()) {
    pairs.emplace_back(Value::String(std::string(NameOf(type))), Value::Of(TensorOf(type, {2, 3})));
  }
  pairs.emplace_back(Value::String("scalar"), Value::Of(TensorOf(DType::kF32, {})));
  pairs.emplace_back(Value::String("empty"), Value::Of(TensorOf(DType::kF32, {0, 3})));
  return Value::Dict(std::move(pairs));
}

// Each tensor as type, shape and bytes in hexadecimal, on a line of its own.
std::string Lines(const Value& tensors) {
  std::string out;
  for (const auto& [name, value] : tensors.pairs()) {
    const Tensor tensor = value.AsTensor();
    out +=
        fmt::format("{} torch.{} {} ", name.AsText(), NameOf(tensor.type), ShapeText(tensor.shape));
    for (std::byte byte : tensor.bytes) out += fmt::format("{:02x}", byte);
    out += '\n';
  }
  return out;
}

constexpr const char* kPrintTensors = R"(
def lines(tensors):
    for name, t in tensors.items():
        raw = b''.join(bytes([b]) for b in t.contiguous().reshape(-1).view(torch.uint8).tolist()) \
            if t.numel() and t.dim() and t.dtype != torch.bool else bytes(t.reshape(-1).to(torch.uint8).tolist()) \
            if t.dtype == torch.bool else bytes(t.reshape(1, -1).view(torch.uint8).reshape(-1).tolist())
        print(name, t.dtype, list(t.shape), raw.hex())
)";

TEST(TorchPython, ReadsTensorsThatWeWrite) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  const Value tensors = TensorsOfAllTypes();
  const std::string script =
      "import sys, torch\n" + std::string(kPrintTensors) + "lines(torch.load(sys.argv[1]))";
  for (uint64_t zip64_from : {uint64_t{0xffffffff}, uint64_t{0}}) {
    WritePt(folder.File("x.pt"), tensors, zip64_from);
    EXPECT_EQ(RunPython(script, folder.File("x.pt")), Lines(tensors)) << zip64_from;
  }
}

// Torch 1.13 has this option but does not know floats there yet: tensors, texts and integers.
TEST(TorchPython, ReadsThemWithWeightsOnly) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  const Value root =
      Value::Dict({{Value::String("model"), TensorsOfAllTypes()},
                   {Value::String("step"), Value::Int(1)},
                   {Value::String("big"), Value::Int(int64_t{1} << 40)},
                   {Value::String("list"), Value::List({Value(), Value::Bool(true)})},
                   {Value::String("tuple"), Value::Tuple({Value::String("a")})}});
  WritePt(folder.File("x.pt"), root);
  const std::string script = "import sys, torch\n" + std::string(kPrintTensors) +
                             "d = torch.load(sys.argv[1], weights_only=True)\nlines(d['model'])\n"
                             "print(d['step'], d['big'], d['list'], d['tuple'], type(d))";
  EXPECT_EQ(RunPython(script, folder.File("x.pt")),
            Lines(root.Get("model")) + "1 1099511627776 [None, True] ('a',) <class 'dict'>\n");
}

// What current versions of torch accept with weights_only=True: opcodes and globals on their list.
TEST(TorchPython, WritesOnlyWhatIsOnTheAllowlist) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  Value::Pairs pairs = TensorsOfAllTypes().pairs();
  pairs.emplace_back(Value::String("u16"), Value::Of(TensorOf(DType::kU16, {2})));
  pairs.emplace_back(Value::String("u32"), Value::Of(TensorOf(DType::kU32, {2})));
  pairs.emplace_back(Value::String("u64"), Value::Of(TensorOf(DType::kU64, {2})));
  pairs.emplace_back(Value::Int(-70000), Value::Float(0.5));
  pairs.emplace_back(Value::String("bytes"), Value::Bytes("\xff"));
  pairs.emplace_back(Value::String("set"), Value::Set({Value::Int(1)}));
  pairs.emplace_back(Value::String("dtype"),
                     Value::Of(Opaque{.module = "torch", .name = "float32"}));
  WritePt(folder.File("x.pt"), Value::Dict(std::move(pairs)));
  const std::string script = R"(
import sys, zipfile, pickletools
opcodes = set('''APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPERSID BINPUT BINUNICODE
    BUILD EMPTY_DICT EMPTY_LIST EMPTY_SET EMPTY_TUPLE GLOBAL LONG1 LONG_BINGET LONG_BINPUT MARK
    NEWFALSE NEWOBJ NEWTRUE NONE PROTO REDUCE SETITEM SETITEMS SHORT_BINSTRING STOP TUPLE TUPLE1
    TUPLE2 TUPLE3'''.split())
types = 'Bool Byte Char Short Int Long Half BFloat16 Float Double'.split()
known = {'collections OrderedDict', '_codecs encode', '__builtin__ set', 'torch device',
    'torch._utils _rebuild_tensor_v2', 'torch._utils _rebuild_tensor_v3',
    'torch.storage UntypedStorage', 'torch float32', 'torch uint16', 'torch uint32',
    'torch uint64'} | {f'torch {t}Storage' for t in types}
pickle = zipfile.ZipFile(sys.argv[1]).read('archive/data.pkl')
for op, argument, _ in pickletools.genops(pickle):
    assert op.name in opcodes, op.name
    assert op.name != 'GLOBAL' or argument in known, argument
print('clean')
)";
  EXPECT_EQ(RunPython(script, folder.File("x.pt")), "clean\n");
}

TEST(TorchPython, ReadsPlainValuesThatWeWrite) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  const Value root = Value::Dict(
      {{Value::String("i"), Value::List({Value::Int(-1), Value::Int(300), Value::Int(70000),
                                         Value::Int(INT64_MIN), Value::Int(INT64_MAX)})},
       {Value::String("f"), Value::Tuple({Value::Float(0.1), Value::Float(INFINITY)})},
       {Value::Int(7), Value::Dict({{Value::String("ü"), Value()}})},
       {Value::String("b"), Value::Bytes(std::string("\0\x7f\x80\xff", 4))},
       {Value::String("s"), Value::Set({Value::Int(5)})},
       {Value::String("t"), Value::Of(Opaque{.module = "torch", .name = "bfloat16"})},
       {Value::String("d"), Value::Of(Opaque{.module = "torch",
                                             .name = "device",
                                             .called = true,
                                             .args = {Value::String("cuda"), Value::Int(1)}})}});
  WritePt(folder.File("x.pt"), root);
  EXPECT_EQ(RunPython("import sys, torch\nprint(torch.load(sys.argv[1]))", folder.File("x.pt")),
            "{'i': [-1, 300, 70000, -9223372036854775808, 9223372036854775807], "
            "'f': (0.1, inf), 7: {'ü': None}, 'b': b'\\x00\\x7f\\x80\\xff', 's': {5}, "
            "'t': torch.bfloat16, 'd': device(type='cuda', index=1)}\n");
}

// --- The other way.

TEST(TorchPython, WeReadViewsAndSharedStorage) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  const std::string script = R"(
import sys, torch
base = torch.arange(24, dtype=torch.float32)
x = base.reshape(2, 3, 4)
torch.save({'base': base, 'row': x[1], 'transposed': x.transpose(0, 2), 'column': x[:, 1, ::2],
    'expanded': torch.tensor([5.]).expand(2, 2), 'channels': torch.arange(16.).reshape(1, 2, 2, 4)
    .to(memory_format=torch.channels_last), 'slice': base[20:], 'none': base[3:3],
    'parameter': torch.nn.Parameter(base[:2]), 'scalar': torch.tensor(2.5)}, sys.argv[1])
for name, t in torch.load(sys.argv[1]).items():
    print(name, list(t.shape), *[int(2 * v) for v in t.reshape(-1).tolist()])
)";
  const std::string expected = RunPython(script, folder.File("x.pt"));
  const Value root = ReadPt(folder.File("x.pt"));
  std::string found;
  for (const auto& [name, value] : root.pairs()) {
    const Tensor tensor = value.AsTensor();
    found += fmt::format("{} {}", name.AsText(), ShapeText(tensor.shape));
    for (float number : ToFloats(tensor)) found += fmt::format(" {}", static_cast<int>(2 * number));
    found += '\n';
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(root.Get("base").AsTensor().bytes.data() + 80,
            root.Get("slice").AsTensor().bytes.data())
      << "one storage in the file, one in memory";
}

TEST(TorchPython, WeReadEveryType) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  const std::string script = std::string("import sys, torch\n") + kPrintTensors + R"(
names = 'bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64'.split()
d = {n: (torch.arange(6).reshape(2, 3) * 3 % 7).to(getattr(torch, n)) for n in names}
torch.save(d, sys.argv[1])
lines(d)
)";
  const std::string expected = RunPython(script, folder.File("x.pt"));
  EXPECT_EQ(Lines(ReadPt(folder.File("x.pt"))), expected);
}

TEST(TorchPython, WeReadEveryProtocol) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  const std::string script = R"(
import sys, torch, collections
for protocol in range(2, 6):
    torch.save({'i': [0, 255, 256, -1, 2**31, -2**63, 2**63], 'f': 0.1, 's': 'ü' * 300, 'b': b'\x00\xff',
        'a': bytearray(b'xy'), 't': (1, (2,), ()), 'set': {3}, 'frozen': frozenset([4]), 'none': None,
        'bool': True, 'od': collections.OrderedDict(a=1), 'dd': collections.defaultdict(list, b=[2]),
        'size': torch.Size([2, 3]), 'device': torch.device('cpu'), 'dtype': torch.float16,
        'tensor': torch.ones(2), 5: 'int key'}, sys.argv[1] + str(protocol), pickle_protocol=protocol)
)";
  RunPython(script, folder.File("x"));
  for (const char* protocol : {"2", "3", "4", "5"}) {
    const Value root = ReadPt(folder.File("x") + protocol);
    EXPECT_EQ(root.Get("i.5"), Value::Int(INT64_MIN));
    EXPECT_EQ(root.Get("i.4"), Value::Int(int64_t{1} << 31));
    EXPECT_EQ(root.Get("i.6").opaque().args.at(0), Value::String("0x008000000000000000"));
    EXPECT_EQ(root.Get("f"), Value::Float(0.1));
    EXPECT_EQ(root.Get("s").AsText().size(), 600);
    EXPECT_EQ(root.Get("b"), Value::Bytes(std::string("\0\xff", 2)));
    EXPECT_EQ(root.Get("a"), Value::Bytes("xy"));
    EXPECT_EQ(root.Get("t.1"), Value::Tuple({Value::Int(2)}));
    EXPECT_EQ(root.Get("set"), Value::Set({Value::Int(3)}));
    EXPECT_EQ(root.Get("frozen"), Value::Set({Value::Int(4)}));
    EXPECT_EQ(root.Get("none"), Value());
    EXPECT_EQ(root.Get("od"), Value::Dict({{Value::String("a"), Value::Int(1)}}));
    EXPECT_EQ(root.Get("dd.b.0"), Value::Int(2));
    EXPECT_EQ(root.Get("size"), Value::Tuple({Value::Int(2), Value::Int(3)}));
    EXPECT_EQ(root.Get("device").opaque().args.at(0), Value::String("cpu"));
    EXPECT_EQ(root.Get("dtype").opaque().FullName(), "torch.float16");
    EXPECT_EQ(Shown(ToFloats(root.Get("tensor").AsTensor())), "1 1 ");
    EXPECT_EQ(root.Get("5"), Value::String("int key"));
  }
}

TEST(TorchPython, WeReadModelsAndOptimizers) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  const std::string script = R"(
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
model(torch.ones(4, 3)).sum().backward()
optimizer.step()
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
torch.save({'model': {'module.' + k: v for k, v in model.state_dict().items()},
    'optimizer': optimizer.state_dict(), 'schedule': schedule.state_dict(),
    'parameters': list(model.parameters()), 'whole': model}, sys.argv[1])
torch.save(model.state_dict(), sys.argv[1] + 'plain')
print(*[f'{v:.9g}' for v in model[0].weight.reshape(-1).tolist()])
)";
  const std::string weights = RunPython(script, folder.File("x.pt"));
  const Value root = ReadPt(folder.File("x.pt"));
  const StateDict model = StateDict::From(root, "x.pt");
  std::string found;
  for (float value : ToFloats(model.Get("0.weight"))) found += fmt::format("{:.9g} ", value);
  found.back() = '\n';
  EXPECT_EQ(found, weights);
  EXPECT_EQ(model.Get("1.num_batches_tracked").type, DType::kI64);
  EXPECT_EQ(root.Get("optimizer.state.0.exp_avg").stored().shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(root.Get("optimizer.param_groups.0.lr"), Value::Float(0.01));
  EXPECT_TRUE(root.Get("schedule").Is(Kind::kDict));
  EXPECT_EQ(ToFloats(root.Get("parameters.0").AsTensor()), ToFloats(model.Get("0.weight")));
  // A module pickled whole is an object of its class; its tensors are in its state.
  EXPECT_EQ(root.Get("whole").opaque().name, "Sequential");
  EXPECT_TRUE(root.Get("whole").opaque().state.Is(Kind::kDict));
  EXPECT_EQ(StateDict::From(ReadPt(folder.File("x.pt") + "plain"), "plain").tensors().size(), 7);
}

TEST(TorchPython, OtherFormsAreRefusedWithARemedy) {
  SKIP_WITHOUT_PYTHON("torch");
  const TempFolder folder;
  const std::string script = R"(
import sys, torch
torch.save({'a': torch.ones(2)}, sys.argv[1] + 'old', _use_new_zipfile_serialization=False)
torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), sys.argv[1] + 'script')
torch.save({'c': torch.ones(2, dtype=torch.complex64), 's': torch.eye(2).to_sparse()}, sys.argv[1] + 'odd')
)";
  RunPython(script, folder.File("x"));
  const auto message = [&](const std::string& name) -> std::string {
    try {
      ReadPt(folder.File("x" + name));
      return "no error";
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_NE(message("old").find("torch.save(torch.load("), std::string::npos) << message("old");
  EXPECT_NE(message("script").find("TorchScript"), std::string::npos) << message("script");
  const Value odd = ReadPt(folder.File("xodd"));
  EXPECT_TRUE(odd.Get("c").Is(Kind::kOpaque));
  EXPECT_TRUE(odd.Get("s").Is(Kind::kOpaque));
}

}  // namespace
}  // namespace kibitz::io
