#include "io/weights/pickle.h"

#include <array>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "io/bytes/little_endian.h"
#include "io/weights/value.h"

namespace kibitz::io {
namespace {

using Kind = PickleNode::Kind;

// Named as in Python's pickletools.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNoneOp = 'N',
  kBinPersid = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobalOp = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTupleOp = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& place)
      : bytes_(bytes), place_(place) {}

  PickleGraph Run() {
    if (bytes_.size() < 2 || Number<uint8_t>() != kProto) {
      Fail("found no protocol mark; expected a pickle of protocol 2 to 5");
    }
    const int protocol = Number<uint8_t>();
    if (protocol < 2 || protocol > 5) {
      Fail(fmt::format("found protocol {}, expected 2 to 5; save again with pickle_protocol=2",
                       protocol));
    }
    while (true) {
      op_at_ = at_;
      const auto op = Number<uint8_t>();
      if (op == kStop) break;
      if (!ReadNumber(op) && !ReadText(op) && !ReadContainer(op) && !FillContainer(op) &&
          !ReadCall(op) && !ReadMemo(op)) {
        Fail(
            fmt::format("found opcode 0x{:02x}, which protocols 2 to 5 of torch.save do not use; "
                        "save again with pickle_protocol=2",
                        op));
      }
    }
    if (!marks_.empty() || stack_.size() != 1) {
      Fail(fmt::format("the pickle ends with {} values, expected 1", stack_.size()));
    }
    if (at_ != bytes_.size()) Fail(fmt::format("{} bytes follow the end", bytes_.size() - at_));
    graph_.root = stack_.back();
    graph_.pickle_size = bytes_.size();
    return std::move(graph_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error("{}, byte {}: {}", place_, op_at_, what);
  }

  // --- The bytes.

  std::span<const std::byte> Take(uint64_t count) {
    if (count > bytes_.size() - at_) {
      Fail(fmt::format("found {} bytes to the end, expected {}; the file is cut off or damaged",
                       bytes_.size() - at_, count));
    }
    const auto out = bytes_.subspan(at_, count);
    at_ += count;
    return out;
  }

  template <typename T>
  T Number() {
    return LoadLittle<T>(Take(sizeof(T)));
  }

  std::string_view TakeText(uint64_t count) {
    const auto bytes = Take(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string_view TakeLine() {
    const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
    const size_t length = std::string_view(begin, bytes_.size() - at_).find('\n');
    if (length == std::string_view::npos) Fail("a name has no end");
    const std::string_view line = TakeText(length);
    ++at_;
    return line;
  }

  // --- The stack. Below a mark nothing can be reached.

  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }

  void Need(size_t count) const {
    if (stack_.size() - Floor() < count) {
      Fail(
          fmt::format("found {} values on the stack, expected {}", stack_.size() - Floor(), count));
    }
  }

  uint32_t Top() const {
    Need(1);
    return stack_.back();
  }

  uint32_t Pop() {
    const uint32_t node = Top();
    stack_.pop_back();
    return node;
  }

  std::vector<uint32_t> PopLast(size_t count) {
    Need(count);
    std::vector<uint32_t> out(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }

  std::vector<uint32_t> PopToMark() {
    if (marks_.empty()) Fail("found no mark on the stack");
    std::vector<uint32_t> out = PopLast(stack_.size() - marks_.back());
    marks_.pop_back();
    return out;
  }

  // --- Nodes.

  uint32_t New(PickleNode node) {
    CheckCount(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(graph_.nodes.size() - 1);
  }

  void CheckCount(size_t count) const {
    if (count < max_values_) return;
    Fail(fmt::format("found over {} values; keep large tables in tensors, or {}", max_values_,
                     AllowHint("values", 2 * max_values_)));
  }

  void PushIndex(uint32_t node) {
    CheckCount(stack_.size());
    stack_.push_back(node);
  }

  void Push(PickleNode node) { PushIndex(New(std::move(node))); }

  // Values that occur often and never change are kept once.
  void PushCommon(Kind kind, int64_t number) {
    const auto key = static_cast<size_t>(number) + (kind == Kind::kInt    ? 0
                                                    : kind == Kind::kBool ? 256
                                                    : kind == Kind::kNone ? 258
                                                                          : 259);
    uint32_t& node = common_[key];
    if (node == 0) node = New({.kind = kind, .number = number}) + 1;
    PushIndex(node - 1);
  }

  void PushString(std::string_view text) {
    if (!IsUtf8(text, true)) Fail(fmt::format("the text {} is not UTF-8", Quoted(text)));
    Push({.kind = Kind::kString, .text = text});
  }

  void PushLong(std::string_view digits) {
    if (digits.size() > 8) return Push({.kind = Kind::kBigInt, .text = digits});
    uint64_t value = !digits.empty() && (digits.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = digits.size(); i-- > 0;) {
      value = (value << 8) | static_cast<unsigned char>(digits[i]);
    }
    Push({.kind = Kind::kInt, .number = static_cast<int64_t>(value)});
  }

  // --- Opcodes, by group: each returns false for one of another group.

  bool ReadNumber(uint8_t op) {
    switch (op) {
      case kNoneOp:
        PushCommon(Kind::kNone, 0);
        return true;
      case kNewTrue:
      case kNewFalse:
        PushCommon(Kind::kBool, op == kNewTrue ? 1 : 0);
        return true;
      case kBinInt1:
        PushCommon(Kind::kInt, Number<uint8_t>());
        return true;
      case kBinInt2:
        Push({.kind = Kind::kInt, .number = Number<uint16_t>()});
        return true;
      case kBinInt:
        Push({.kind = Kind::kInt, .number = Number<int32_t>()});
        return true;
      case kLong1:
        PushLong(TakeText(Number<uint8_t>()));
        return true;
      case kLong4: {
        const auto size = Number<int32_t>();
        if (size < 0) Fail(fmt::format("found a whole number of {} bytes", size));
        PushLong(TakeText(static_cast<uint64_t>(size)));
        return true;
      }
      case kBinFloat: {  // The one number with its most significant byte first.
        const uint64_t bits = __builtin_bswap64(Number<uint64_t>());
        Push({.kind = Kind::kFloat, .number = static_cast<int64_t>(bits)});
        return true;
      }
      default:
        return false;
    }
  }

  bool ReadText(uint8_t op) {
    switch (op) {
      case kBinUnicode:
        PushString(TakeText(Number<uint32_t>()));
        return true;
      case kShortBinUnicode:
      case kShortBinString:  // Python 2's str.
        PushString(TakeText(Number<uint8_t>()));
        return true;
      case kBinString: {
        const auto size = Number<int32_t>();
        if (size < 0) Fail(fmt::format("found a text of {} bytes", size));
        PushString(TakeText(static_cast<uint64_t>(size)));
        return true;
      }
      case kBinUnicode8:
        PushString(TakeText(Number<uint64_t>()));
        return true;
      case kBinBytes:
        Push({.kind = Kind::kBytes, .text = TakeText(Number<uint32_t>())});
        return true;
      case kShortBinBytes:
        Push({.kind = Kind::kBytes, .text = TakeText(Number<uint8_t>())});
        return true;
      case kBinBytes8:
      case kByteArray8:
        Push({.kind = Kind::kBytes, .text = TakeText(Number<uint64_t>())});
        return true;
      default:
        return false;
    }
  }

  bool ReadContainer(uint8_t op) {
    switch (op) {
      case kMark:
        CheckCount(marks_.size());
        marks_.push_back(stack_.size());
        return true;
      case kEmptyList:
        Push({.kind = Kind::kList});
        return true;
      case kEmptyDict:
        Push({.kind = Kind::kDict});
        return true;
      case kEmptySet:
        Push({.kind = Kind::kSet});
        return true;
      case kEmptyTuple:
        PushCommon(Kind::kTuple, 0);
        return true;
      case kTupleOp:
        Push({.kind = Kind::kTuple, .children = PopToMark()});
        return true;
      case kTuple1:
      case kTuple2:
      case kTuple3:
        Push({.kind = Kind::kTuple, .children = PopLast(size_t{op} - kTuple1 + 1)});
        return true;
      case kFrozenSet:
        Push({.kind = Kind::kSet, .children = PopToMark()});
        return true;
      default:
        return false;
    }
  }

  bool FillContainer(uint8_t op) {
    switch (op) {
      case kAppend:
        Extend(Kind::kList, PopLast(1));
        return true;
      case kAppends:
        Extend(Kind::kList, PopToMark());
        return true;
      case kAddItems:
        Extend(Kind::kSet, PopToMark());
        return true;
      case kSetItem:
        Extend(Kind::kDict, PopLast(2));
        return true;
      case kSetItems: {
        const auto pairs = PopToMark();
        if (pairs.size() % 2 != 0) Fail("a key has no value");
        Extend(Kind::kDict, pairs);
        return true;
      }
      default:
        return false;
    }
  }

  // Adds to the container on top, or to the object that stands for one.
  void Extend(Kind kind, const std::vector<uint32_t>& values) {
    PickleNode& node = graph_.nodes[Top()];
    std::vector<uint32_t>* to = nullptr;
    if (node.kind == kind) {
      to = &node.children;
    } else if (node.kind == Kind::kCall) {
      PickleGraph::Extra& extra = ExtraOf(node);
      to = kind == Kind::kDict ? &extra.pairs : &extra.items;
    } else {
      Fail("found values added to something that is not a container");
    }
    to->insert(to->end(), values.begin(), values.end());
  }

  PickleGraph::Extra& ExtraOf(PickleNode& call) {
    if (call.number == 0) {
      graph_.extras.emplace_back();
      call.number = static_cast<int64_t>(graph_.extras.size());
    }
    return graph_.extras[static_cast<size_t>(call.number - 1)];
  }

  bool ReadCall(uint8_t op) {
    switch (op) {
      case kGlobalOp: {
        const std::string_view module = TakeLine();
        const std::string_view name = TakeLine();
        if (!IsUtf8(module) || !IsUtf8(name)) Fail("the name of a class is not UTF-8");
        const uint32_t module_node = New({.kind = Kind::kString, .text = module});
        const uint32_t name_node = New({.kind = Kind::kString, .text = name});
        Push({.kind = Kind::kGlobal, .children = {module_node, name_node}});
        return true;
      }
      case kStackGlobal: {
        auto names = PopLast(2);
        for (uint32_t node : names) {
          if (graph_.nodes[node].kind != Kind::kString) Fail("the name of a class is not a string");
        }
        Push({.kind = Kind::kGlobal, .children = std::move(names)});
        return true;
      }
      case kReduce:
      case kNewObj:
        Push({.kind = Kind::kCall, .children = PopLast(2)});
        return true;
      case kNewObjEx:
        Push({.kind = Kind::kCall, .children = PopLast(3)});
        return true;
      case kBuild: {
        const uint32_t state = Pop();
        PickleNode& node = graph_.nodes[Top()];
        if (node.kind != Kind::kCall) Fail("found a state for something that is not an object");
        ExtraOf(node).state = state;
        return true;
      }
      case kBinPersid:
        Push({.kind = Kind::kPersistent, .children = PopLast(1)});
        return true;
      default:
        return false;
    }
  }

  bool ReadMemo(uint8_t op) {
    switch (op) {
      case kBinPut:
        SetMemo(Number<uint8_t>());
        return true;
      case kLongBinPut:
        SetMemo(Number<uint32_t>());
        return true;
      case kMemoize:
        SetMemo(static_cast<uint32_t>(memo_.size()));
        return true;
      case kBinGet:
        PushMemo(Number<uint8_t>());
        return true;
      case kLongBinGet:
        PushMemo(Number<uint32_t>());
        return true;
      case kPop:
        Pop();
        return true;
      case kPopMark:
        PopToMark();
        return true;
      case kDup:
        PushIndex(Top());
        return true;
      case kFrame:
        if (const auto size = Number<uint64_t>(); size > bytes_.size() - at_) {
          Fail(fmt::format("found a frame of {} bytes, expected at most {}", size,
                           bytes_.size() - at_));
        }
        return true;
      default:
        return false;
    }
  }

  void PushMemo(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) Fail(fmt::format("memo {} was never set", index));
    PushIndex(found->second);
  }

  void SetMemo(uint32_t index) {
    CheckCount(memo_.size());
    memo_[index] = Top();
  }

  std::span<const std::byte> bytes_;
  const std::string& place_;
  size_t at_ = 0;
  size_t op_at_ = 0;  // Where the current opcode began.
  PickleGraph graph_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, uint32_t> memo_;
  const size_t max_values_ = Limits().values;
  std::array<uint32_t, 260> common_{};  // Node + 1: integers 0..255, False, True, None, ().
};

}  // namespace

PickleGraph ReadPickle(std::span<const std::byte> bytes, const std::string& place) {
  return Machine(bytes, place).Run();
}

}  // namespace kibitz::io
