#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "io/bytes/crc32c.h"
#include "io/bytes/mapped_file.h"
#include "io/bytes/zip_reader.h"
#include "io/bytes/zip_writer.h"
#include "io/weights/pickle.h"
#include "io/weights/run_checkpoints.h"
#include "io/weights/torch_file.h"
#include "io/weights/torch_types.h"

namespace kibitz::io {
namespace {

using NodeKind = PickleNode::Kind;
using Kind = Value::Kind;

constexpr int kMaxDepth = 500;
// Values that sharing may make of a pickle: so many, and so many more for each of its bytes.
constexpr uint64_t kFreeValues = uint64_t{1} << 19;
constexpr uint64_t kValuesPerByte = 4;
constexpr size_t kMaxDimensions = 64;

// Where tensors' bytes are: "<folder>/data/<key>" in the zip.
struct Storages {
  const ZipReader& zip;
  std::string folder;
  std::shared_ptr<const void> owner;
};

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

// Turns the graph of a pickle into values: plain ones for what we know, opaque ones for the rest.
// Depth-first, each node once; the limits make walking and freeing the tree safe for everyone.
class Resolver {
 public:
  Resolver(const PickleGraph& graph, const Storages* storages, const std::string& place)
      : graph_(graph), storages_(storages), place_(place), done_(graph.nodes.size()) {
    max_values_ = std::min(kFreeValues + kValuesPerByte * graph.pickle_size, Limits().values);
  }

  Value Run() { return Resolve(graph_.root); }

 private:
  struct Done {
    enum class State : uint8_t { kNew, kOpen, kDone } state = State::kNew;
    uint32_t size = 0;  // Values in this tree.
    Value value;
  };

  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error("{}: {}", place_, fmt::format(format, std::forward<Args>(args)...));
  }

  Value Resolve(uint32_t index) {
    Done& done = done_[index];
    if (done.state == Done::State::kOpen) Fail("found a value that contains itself");
    if (done.state == Done::State::kNew) {
      if (++depth_ > kMaxDepth) Fail("found values nested over {} deep", kMaxDepth);
      done.state = Done::State::kOpen;
      const uint64_t before = size_;
      size_ = 1;
      done.value = Make(graph_.nodes[index]);
      done.size = static_cast<uint32_t>(size_);
      done.state = Done::State::kDone;
      size_ = before;
      --depth_;
    }
    size_ += done.size;
    if (size_ > max_values_) {
      Fail("found over {} values in a pickle of {} bytes: one value is repeated too often; {}",
           max_values_, graph_.pickle_size, AllowHint("values", 2 * max_values_));
    }
    return done.value;
  }

  Value Make(const PickleNode& node) {
    switch (node.kind) {
      case NodeKind::kNone:
        return {};
      case NodeKind::kBool:
        return Value::Bool(node.number != 0);
      case NodeKind::kInt:
        return Value::Int(node.number);
      case NodeKind::kBigInt:
        return BigInt(node.text);
      case NodeKind::kFloat:
        return Value::Float(std::bit_cast<double>(node.number));
      case NodeKind::kString:
        return Value::String(std::string(node.text));
      case NodeKind::kBytes:
        return Value::Bytes(std::string(node.text));
      case NodeKind::kList:
        return Value::List(Items(node.children));
      case NodeKind::kTuple:
        return Value::Tuple(Items(node.children));
      case NodeKind::kSet:
        return Value::Set(Items(node.children));
      case NodeKind::kDict:
        return MakeDict(Pairs(node.children));
      case NodeKind::kGlobal:
        return Value::Of(Opaque{.module = std::string(graph_.nodes[node.children[0]].text),
                                .name = std::string(graph_.nodes[node.children[1]].text)});
      case NodeKind::kCall:
        return Call(node);
      case NodeKind::kPersistent:
        return Storage(Resolve(node.children[0]));
    }
    return {};
  }

  Value::Items Items(const std::vector<uint32_t>& children) {
    Value::Items items;
    items.reserve(children.size());
    for (uint32_t child : children) items.push_back(Resolve(child));
    return items;
  }

  Value::Pairs Pairs(const std::vector<uint32_t>& children) {
    Value::Pairs pairs;
    pairs.reserve(children.size() / 2);
    for (size_t i = 0; i < children.size(); i += 2) {
      Value key = Resolve(children[i]);
      pairs.emplace_back(std::move(key), Resolve(children[i + 1]));
    }
    return pairs;
  }

  Value MakeDict(Value::Pairs pairs) const {
    std::unordered_set<std::string_view> texts;
    std::unordered_set<int64_t> numbers;
    for (const auto& [key, value] : pairs) {
      if ((key.Is(Kind::kString) && !texts.insert(key.AsText()).second) ||
          (key.Is(Kind::kInt) && !numbers.insert(key.AsInt()).second)) {
        Fail("found key {} twice in one dict", Describe(key));
      }
    }
    return Value::Dict(std::move(pairs));
  }

  // Integers beyond 64 bits stay text, in hexadecimal: int(text, 0) in Python.
  static Value BigInt(std::string_view digits) {
    const bool negative = (digits.back() & 0x80) != 0;
    std::string magnitude;
    int carry = negative ? 1 : 0;
    for (char digit : digits) {
      const int value = (negative ? ~digit & 0xff : digit & 0xff) + carry;
      carry = value >> 8;
      magnitude.push_back(static_cast<char>(value & 0xff));
    }
    std::string text = negative ? "-0x" : "0x";
    if (carry != 0) text += "01";
    for (size_t i = magnitude.size(); i-- > 0;) {
      text += fmt::format("{:02x}", static_cast<unsigned char>(magnitude[i]));
    }
    return Value::Of(
        Opaque{.module = "builtins", .name = "int", .called = true, .args = {Value::String(text)}});
  }

  // --- Calls: what torch.save writes for values other than plain literals.

  Value Call(const PickleNode& node) {
    const Value callee = Resolve(node.children[0]);
    Opaque call = {.module = "", .name = "", .called = true};
    if (callee.Is(Kind::kOpaque) && !callee.opaque().called) {
      call.module = callee.opaque().module;
      call.name = callee.opaque().name;
    } else {
      call.args.push_back(callee);
    }
    for (size_t i = 1; i < node.children.size(); ++i) {
      const Value arguments = Resolve(node.children[i]);
      if (i == 1 && arguments.Is(Kind::kTuple)) {
        call.args.insert(call.args.end(), arguments.items().begin(), arguments.items().end());
      } else {
        call.args.push_back(arguments);
      }
    }
    if (node.number != 0) {
      const PickleGraph::Extra& extra = graph_.extras[static_cast<size_t>(node.number - 1)];
      if (extra.state != PickleGraph::kNothing) call.state = Resolve(extra.state);
      call.items = Items(extra.items);
      call.pairs = Pairs(extra.pairs);
    }
    if (auto known = PlainValue(call)) return *std::move(known);
    if (auto known = RebuiltTensor(call.FullName(), call.args)) return *std::move(known);
    return Value::Of(std::move(call));
  }

  // Python's own types, where a pickle writes them as calls.
  std::optional<Value> PlainValue(const Opaque& call) {
    const std::string name = call.FullName();
    if (IsOneOf(name, {"collections.OrderedDict", "collections.defaultdict", "collections.Counter",
                       "builtins.dict", "__builtin__.dict"})) {
      return DictLike(call);
    }
    if (IsOneOf(name, {"builtins.set", "__builtin__.set", "builtins.frozenset",
                       "__builtin__.frozenset"})) {
      if (call.args.empty()) return Value::Set({});
      if (call.args.size() == 1 && call.args[0].Is(Kind::kList)) {
        return Value::Set(call.args[0].items());
      }
    }
    if (name == "torch.Size" && call.args.size() == 1 && call.args[0].Is(Kind::kTuple)) {
      return call.args[0];
    }
    if (IsOneOf(name, {"_codecs.encode", "builtins.bytes", "__builtin__.bytes",
                       "builtins.bytearray", "__builtin__.bytearray"})) {
      return BytesLike(call.args);
    }
    return std::nullopt;
  }

  std::optional<Value> DictLike(const Opaque& call) const {
    Value::Pairs pairs;
    if (!call.args.empty() && call.args[0].Is(Kind::kDict)) pairs = call.args[0].pairs();
    if (!call.args.empty() && call.args[0].Is(Kind::kList)) {
      for (const Value& item : call.args[0].items()) {
        const bool pair =
            (item.Is(Kind::kList) || item.Is(Kind::kTuple)) && item.items().size() == 2;
        if (!pair) return std::nullopt;
        pairs.emplace_back(item.items()[0], item.items()[1]);
      }
    }
    pairs.insert(pairs.end(), call.pairs.begin(), call.pairs.end());
    return MakeDict(std::move(pairs));
  }

  // Protocol 2 has no bytes: Python writes text of the code points 0 to 255.
  static std::optional<Value> BytesLike(const Value::Items& args) {
    if (args.empty()) return Value::Bytes("");
    if (args[0].Is(Kind::kBytes)) return args[0];
    if (!args[0].Is(Kind::kString) || args.size() != 2 || !args[1].Is(Kind::kString) ||
        !IsOneOf(args[1].AsText(), {"latin1", "latin-1"})) {
      return std::nullopt;
    }
    std::string out;
    const std::string& text = args[0].AsText();
    for (size_t i = 0; i < text.size(); ++i) {
      const auto lead = static_cast<unsigned char>(text[i]);
      if (lead < 0x80) {
        out.push_back(text[i]);
      } else if (lead < 0xc4) {  // The text is UTF-8, so one byte follows.
        out.push_back(static_cast<char>((lead << 6) | (text[++i] & 0x3f)));
      } else {
        return std::nullopt;
      }
    }
    return Value::Bytes(std::move(out));
  }

  // --- Tensors.

  // Nothing for other values and for unknown element types.
  std::optional<Value> RebuiltTensor(const std::string& name, const Value::Items& args) const {
    if (IsOneOf(name, {"torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2"})) {
      if (args.size() < 4) Fail("found {} with {} arguments, expected 4", name, args.size());
      return args[0].Is(Kind::kTensor) ? View(args, args[0].stored().type) : std::nullopt;
    }
    if (name == "torch._utils._rebuild_tensor_v3") {
      if (args.size() < 7) Fail("found {} with {} arguments, expected 7", name, args.size());
      if (!args[0].Is(Kind::kTensor) || !args[6].Is(Kind::kOpaque)) return std::nullopt;
      const auto type = TypeOfTorchName(args[6].opaque().name);
      return type ? View(args, *type) : std::nullopt;
    }
    if (IsOneOf(name, {"torch._utils._rebuild_parameter",
                       "torch._utils._rebuild_parameter_with_state"})) {
      if (args.empty()) Fail("found {} without a tensor", name);
      return args[0].Is(Kind::kTensor) ? std::optional(args[0]) : std::nullopt;
    }
    // A tensor with attributes or of a subclass: (function, class, arguments, state).
    if (IsOneOf(name,
                {"torch._tensor._rebuild_from_type", "torch._tensor._rebuild_from_type_v2"}) &&
        args.size() >= 3 && args[0].Is(Kind::kOpaque) && args[2].Is(Kind::kTuple) &&
        !args[0].opaque().FullName().starts_with("torch._tensor.")) {
      return RebuiltTensor(args[0].opaque().FullName(), args[2].items());
    }
    return std::nullopt;
  }

  // (storage, offset, sizes, strides, ...) as a view of the storage.
  std::optional<Value> View(const Value::Items& args, DType type) const {
    const StoredTensor& storage = args[0].stored();
    StoredTensor view = {.type = type,
                         .shape = Numbers(args[2], "sizes"),
                         .strides = Numbers(args[3], "strides"),
                         .bytes = storage.bytes,
                         .owner = storage.owner};
    const auto count = CountOf(view.shape);
    if (!args[1].Is(Kind::kInt) || args[1].AsInt() < 0 || !count ||
        view.shape.size() != view.strides.size()) {
      Fail("found a tensor of sizes {}, strides {}, offset {}", ShapeText(view.shape),
           ShapeText(view.strides), Describe(args[1]));
    }
    if (*count == 0) {
      view.bytes = {};
      return Value::Of(std::move(view));
    }
    // 128 bits: each term is below 2^126, and there are at most 64.
    unsigned __int128 last = static_cast<uint64_t>(args[1].AsInt());
    const uint64_t held = storage.bytes.size() / SizeOf(type);
    for (size_t d = 0; d < view.shape.size() && last < held; ++d) {
      last += static_cast<unsigned __int128>(view.shape[d] - 1) *
              static_cast<uint64_t>(view.strides[d]);
    }
    if (last >= held) {
      Fail("tensor {} with strides {} and offset {} reaches beyond its storage of {} elements",
           ShapeText(view.shape), ShapeText(view.strides), args[1].AsInt(), held);
    }
    const size_t first_byte = static_cast<size_t>(args[1].AsInt()) * SizeOf(type);
    const size_t end_byte = (static_cast<size_t>(last) + 1) * SizeOf(type);
    view.bytes = storage.bytes.subspan(first_byte, end_byte - first_byte);
    return Value::Of(std::move(view));
  }

  std::vector<int64_t> Numbers(const Value& tuple, std::string_view what) const {
    std::vector<int64_t> out;
    const bool fits =
        (tuple.Is(Kind::kTuple) || tuple.Is(Kind::kList)) && tuple.items().size() <= kMaxDimensions;
    if (!fits) Fail("found {} as a tensor's {}", Describe(tuple), what);
    for (const Value& item : tuple.items()) {
      if (!item.Is(Kind::kInt) || item.AsInt() < 0) {
        Fail("found {} among a tensor's {}", Describe(item), what);
      }
      out.push_back(item.AsInt());
    }
    return out;
  }

  // ("storage", its class, key, device, elements): a one-dimensional tensor over the entry.
  Value Storage(const Value& id) const {
    const bool fits = id.Is(Kind::kTuple) && id.items().size() == 5 &&
                      id.items()[0] == Value::String("storage") &&
                      id.items()[1].Is(Kind::kOpaque) && id.items()[2].Is(Kind::kString) &&
                      id.items()[4].Is(Kind::kInt);
    if (!fits) Fail("found {} as the name of a storage", Describe(id));
    if (storages_ == nullptr) Fail("found a tensor in a pickle without a zip");
    const std::string& key = id.items()[2].AsText();
    const std::string name = storages_->folder + "data/" + key;
    const ZipReader::Entry* entry = storages_->zip.Find(name);
    if (entry == nullptr) Fail("found no entry {} for a tensor", Quoted(name));
    const auto bytes = storages_->zip.Content(*entry);
    const auto type = TypeOfStorage(id.items()[1].opaque().name);
    if (!type) {  // Complex or quantised numbers: named, with their bytes.
      Opaque unknown = id.items()[1].opaque();
      unknown.called = true;
      unknown.args = {id.items()[2], id.items()[4], Bytes(bytes, DType::kU8, bytes.size())};
      return Value::Of(std::move(unknown));
    }
    const int64_t count = id.items()[4].AsInt();
    if (count < 0 || static_cast<uint64_t>(count) > bytes.size() / SizeOf(*type)) {
      Fail("entry {} holds {} bytes, expected {} elements of {}", Quoted(name), bytes.size(), count,
           NameOf(*type));
    }
    return Bytes(bytes, *type, static_cast<size_t>(count));
  }

  Value Bytes(std::span<const std::byte> bytes, DType type, size_t count) const {
    return Value::Of(StoredTensor{.type = type,
                                  .shape = {static_cast<int64_t>(count)},
                                  .strides = {1},
                                  .bytes = bytes.first(count * SizeOf(type)),
                                  .owner = storages_->owner});
  }

  const PickleGraph& graph_;
  const Storages* storages_;
  const std::string& place_;
  std::vector<Done> done_;
  int depth_ = 0;
  uint64_t size_ = 0;  // Values made below the node being made.
  uint64_t max_values_ = 0;
};

bool StartsWith(std::span<const std::byte> bytes, std::string_view start) {
  return bytes.size() >= start.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()), start.size()) == start;
}

void CheckIsZip(std::span<const std::byte> bytes, const std::string& place) {
  if (StartsWith(bytes, std::string_view("PK\x03\x04", 4))) return;
  constexpr std::string_view kLegacy = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  if (StartsWith(bytes, kLegacy)) {
    throw Error(
        "{}: found the form that torch.save wrote before version 1.6, expected a zip; convert it "
        "in Python: torch.save(torch.load('old.pt'), 'new.pt')",
        place);
  }
  throw Error("{}: found no zip; expected a file that torch.save wrote (version 1.6 or later)",
              place);
}

// The folder that all entries are in, with its slash.
std::string FolderOf(const ZipReader& zip, const std::string& place) {
  for (const ZipReader::Entry& entry : zip.entries()) {
    const size_t slash = entry.name.find('/');
    if (slash == std::string_view::npos) continue;
    std::string folder(entry.name.substr(0, slash + 1));
    if (zip.Find(folder + "constants.pkl") != nullptr) {
      throw Error(
          "{}: found a TorchScript archive, expected what torch.save writes; convert it in "
          "Python: torch.save(torch.jit.load('script.pt').state_dict(), 'weights.pt')",
          place);
    }
    if (zip.Find(folder + "data.pkl") != nullptr) return folder;
  }
  throw Error("{}: found a zip without data.pkl; expected a file that torch.save wrote", place);
}

void CheckByteOrder(const ZipReader& zip, const std::string& folder, const std::string& place) {
  const ZipReader::Entry* order = zip.Find(folder + "byteorder");
  if (order == nullptr || StartsWith(zip.Content(*order), "little")) return;
  throw Error(
      "{}: found numbers with their most significant byte first; expected little-endian: load "
      "and save the file with torch on an ordinary machine",
      place);
}

// Files of ours end with a checksum of all bytes before it, and an entry says that it is there:
// one flipped bit cannot hide both. Whether there is one. Throws Error when it is wrong.
bool CheckSum(std::span<const std::byte> bytes, const ZipReader& zip, const std::string& place) {
  constexpr size_t kDigits = 8;
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t before = all.size() - std::min(all.size(), kDigits);
  const bool labelled = all.substr(0, before).ends_with(kZipSumLabel);
  if (!labelled && zip.Find(kChecksumEntry) == nullptr) return false;
  if (labelled && fmt::format("{:08x}", Crc32c(all.substr(0, before))) == all.substr(before)) {
    return true;
  }
  throw Error(
      "{}: its checksum is wrong: the file is damaged; copy it again or use another checkpoint",
      place);
}

}  // namespace

bool HasChecksum(std::span<const std::byte> bytes, const std::string& place) {
  return CheckSum(bytes, ZipReader(bytes, place), place);
}

Value ParsePt(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
              const std::string& place) {
  CheckIsZip(bytes, place);
  const ZipReader zip(bytes, place);
  CheckSum(bytes, zip, place);
  const Storages storages = {zip, FolderOf(zip, place), std::move(owner)};
  CheckByteOrder(zip, storages.folder, place);
  const std::string pickle_place = place + ", data.pkl";
  const ZipReader::Entry& pickle = *zip.Find(storages.folder + "data.pkl");
  const PickleGraph graph = ReadPickle(zip.Content(pickle), pickle_place);
  return Resolver(graph, &storages, pickle_place).Run();
}

Value ReadPt(const std::string& path) {
  CheckCheckpointExists(path);
  const auto file = MappedFile::Open(path);
  const auto bytes = file->bytes();
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr size_t kTail = 64;
  const bool whole =
      all.substr(all.size() - std::min(all.size(), kTail)).find(kZipSumLabel) != all.npos;
  // Without a checksum only the directory, the pickle and a header before each tensor are read
  // here.
  if (!whole) file->BeginScatteredReads();
  Value root = ParsePt(bytes, file, path);
  if (!whole) file->EndScatteredReads();
  return root;
}

Value ParsePickle(std::span<const std::byte> bytes, const std::string& place) {
  const PickleGraph graph = ReadPickle(bytes, place);
  return Resolver(graph, nullptr, place).Run();
}

}  // namespace kibitz::io
