#include <bit>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "io/bytes/little_endian.h"
#include "io/bytes/zip_writer.h"
#include "io/weights/torch_file.h"
#include "io/weights/torch_types.h"

namespace kibitz::io {
namespace {

using Kind = Value::Kind;

constexpr int kMaxDepth = 500;  // As the reader.

// Writes protocol 2 with the opcodes and globals that torch's weights_only unpickler knows:
// no frames, no long strings, every class by the name on its list.
class Pickler {
 public:
  std::string Run(const Value& root) {
    out_ = "\x80\x02";
    Write(root);
    out_ += '.';
    return std::move(out_);
  }

  // In the order of their keys: "data/0", "data/1", ...
  const std::vector<const StoredTensor*>& tensors() const { return tensors_; }

 private:
  void Write(const Value& value) {
    if (++depth_ > kMaxDepth) throw Error("cannot write values nested over {} deep", kMaxDepth);
    switch (value.kind()) {
      case Kind::kNone:
        out_ += 'N';
        break;
      case Kind::kBool:
        out_ += value.AsBool() ? '\x88' : '\x89';
        break;
      case Kind::kInt:
        WriteInt(value.AsInt());
        break;
      case Kind::kFloat:
        out_ += 'G';
        AppendLittle(out_, __builtin_bswap64(std::bit_cast<uint64_t>(value.AsDouble())));
        break;
      case Kind::kString:
        WriteText(value.AsText());
        break;
      case Kind::kBytes:
        WriteBytes(value.AsBytes());
        break;
      case Kind::kList:
        WriteList(value.items());
        break;
      case Kind::kTuple:
        WriteTuple(value.items());
        break;
      case Kind::kSet:
        WriteGlobal("__builtin__", "set");
        WriteList(value.items());
        out_ += "\x85R";  // A tuple of one, call.
        break;
      case Kind::kDict:
        WriteDict(value.pairs());
        break;
      case Kind::kTensor:
        WriteTensor(value.stored());
        break;
      case Kind::kOpaque:
        WriteOpaque(value.opaque());
        break;
    }
    --depth_;
  }

  void WriteInt(int64_t value) {
    if (value >= 0 && value <= 0xff) {
      out_ += 'K';
      AppendLittle(out_, static_cast<uint8_t>(value));
    } else if (value >= 0 && value <= 0xffff) {
      out_ += 'M';
      AppendLittle(out_, static_cast<uint16_t>(value));
    } else if (value == static_cast<int32_t>(value)) {
      out_ += 'J';
      AppendLittle(out_, static_cast<int32_t>(value));
    } else {
      out_ += "\x8a\x08";
      AppendLittle(out_, value);
    }
  }

  void WriteText(const std::string& text) {
    if (!IsUtf8(text, true)) throw Error("cannot write the text {}: it is not UTF-8", Quoted(text));
    if (text.size() > 0xffffffff) throw Error("cannot write a text of {} bytes", text.size());
    out_ += 'X';
    AppendLittle(out_, static_cast<uint32_t>(text.size()));
    out_ += text;
  }

  // Protocol 2 has no bytes: text of the code points 0 to 255, encoded when read.
  void WriteBytes(const std::string& bytes) {
    std::string text;
    for (char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80) {
        text += c;
      } else {
        text += static_cast<char>(0xc0 | (byte >> 6));
        text += static_cast<char>(0x80 | (byte & 0x3f));
      }
    }
    WriteGlobal("_codecs", "encode");
    WriteText(text);
    WriteText("latin1");
    out_ += "\x86R";  // A tuple of two, call.
  }

  void WriteList(const Value::Items& items) {
    out_ += ']';
    if (items.empty()) return;
    out_ += '(';
    for (const Value& item : items) Write(item);
    out_ += 'e';
  }

  void WriteTuple(const Value::Items& items) {
    if (items.empty()) {
      out_ += ')';
      return;
    }
    out_ += '(';
    for (const Value& item : items) Write(item);
    out_ += 't';
  }

  void WriteDict(const Value::Pairs& pairs) {
    out_ += '}';
    if (pairs.empty()) return;
    out_ += '(';
    for (const auto& [key, value] : pairs) {
      Write(key);
      Write(value);
    }
    out_ += 'u';
  }

  // Written in full the first time, then from the memo.
  void WriteGlobal(std::string_view module, std::string_view name) {
    const std::string line = fmt::format("c{}\n{}\n", module, name);
    const auto [known, added] = memo_.emplace(line, memo_.size());
    if (added) out_ += line;
    out_ += added ? 'q' : 'h';
    CHECK(known->second <= 0xff);  // A few classes and types, no more.
    AppendLittle(out_, static_cast<uint8_t>(known->second));
  }

  // _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks). The unsigned types
  // wider than a byte have no storage class: v3 names the type after the same arguments.
  void WriteTensor(const StoredTensor& tensor) {
    const std::string_view storage = StorageOf(tensor.type);
    const uint64_t count = *CountOf(tensor.shape);
    WriteGlobal("torch._utils", storage.empty() ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
    out_ += "((";
    WriteText("storage");
    if (storage.empty()) {
      WriteGlobal("torch.storage", "UntypedStorage");
    } else {
      WriteGlobal("torch", storage);
    }
    WriteText(fmt::format("{}", tensors_.size()));
    WriteText("cpu");
    WriteInt(static_cast<int64_t>(storage.empty() ? count * SizeOf(tensor.type) : count));
    out_ += "tQ";  // The tuple names something outside of the pickle.
    WriteInt(0);
    WriteNumbers(tensor.shape);
    WriteNumbers(RowStrides(tensor.shape));
    out_ += '\x89';
    WriteGlobal("collections", "OrderedDict");
    out_ += ")R";
    if (storage.empty()) WriteGlobal("torch", NameOf(tensor.type));
    out_ += "tR";
    tensors_.push_back(&tensor);
  }

  void WriteNumbers(const std::vector<int64_t>& numbers) {
    Value::Items items;
    for (int64_t number : numbers) items.push_back(Value::Int(number));
    WriteTuple(items);
  }

  void WriteOpaque(const Opaque& opaque) {
    if (opaque.module == "torch" && !opaque.called && TypeOfTorchName(opaque.name)) {
      WriteGlobal("torch", NameOf(*TypeOfTorchName(opaque.name)));
      return;
    }
    if (opaque.FullName() == "torch.device" && opaque.called) {
      WriteGlobal("torch", "device");
      WriteTuple(opaque.args);
      out_ += 'R';
      return;
    }
    throw Error(
        "cannot write an object of {}; only numbers, texts, lists, dicts, sets and tensors: leave "
        "it out or write its content",
        Quoted(opaque.FullName()));
  }

  std::string out_;
  std::unordered_map<std::string, size_t> memo_;
  std::vector<const StoredTensor*> tensors_;
  int depth_ = 0;
};

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void WritePt(const std::string& path, const Value& root, uint64_t zip64_from) {
  Pickler pickler;
  const std::string pickle = pickler.Run(root);
  ZipWriter zip(path, zip64_from);
  zip.Add("archive/data.pkl", pickle);
  zip.Add("archive/byteorder", "little");
  for (size_t i = 0; i < pickler.tensors().size(); ++i) {
    const Tensor tensor = pickler.tensors()[i]->ToTensor();
    zip.Add(fmt::format("archive/data/{}", i), Text(tensor.bytes));
  }
  zip.Add("archive/version", "3\n");  // Of torch's layout; every torch since 1.6 reads it.
  zip.Add(kChecksumEntry, "crc32c");
  zip.Finish(/*checksum=*/true);
}

}  // namespace kibitz::io
