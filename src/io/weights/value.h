// The content of a .pt file as a tree of plain values. Objects are never constructed: they stay
// opaque nodes that record what the file asks for.
//
//   const Value root = ReadPt("run.pt");
//   const int64_t width = root.Get("config.model.embed_dim").AsInt();
//   const Tensor weight = root.Get("model_state_dict.tok_embedding.weight").AsTensor();
//
// A Value is immutable and cheap to copy; copies share their children.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/weights/stored_tensor.h"

namespace kibitz::io {

class Value;
struct Opaque;

class Value {
 public:
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,  // UTF-8.
    kBytes,
    kList,
    kTuple,
    kSet,
    kDict,
    kTensor,
    kOpaque,
  };
  using Items = std::vector<Value>;
  using Pairs = std::vector<std::pair<Value, Value>>;

  Value() = default;  // None.
  static Value Bool(bool value);
  static Value Int(int64_t value);
  static Value Float(double value);
  static Value String(std::string text);
  static Value Bytes(std::string bytes);
  static Value List(Items items);
  static Value Tuple(Items items);
  static Value Set(Items items);
  static Value Dict(Pairs pairs);
  static Value Of(Tensor tensor);
  static Value Of(StoredTensor tensor);
  static Value Of(io::Opaque opaque);

  Kind kind() const { return kind_; }
  bool Is(Kind kind) const { return kind_ == kind; }

  // Each throws Error when the value is of another kind.
  bool AsBool() const;
  int64_t AsInt() const;
  double AsDouble() const;             // Floats and integers.
  const std::string& AsText() const;   // Strings.
  const std::string& AsBytes() const;  // Bytes.
  const Items& items() const;          // Lists, tuples, sets.
  const Pairs& pairs() const;          // Dicts, in the file's order.
  const StoredTensor& stored() const;
  Tensor AsTensor() const;  // stored().ToTensor()
  const io::Opaque& opaque() const;

  // The value at a dotted path, nullptr when there is none. A step is a dict's key (text or
  // integer) or an index of a list or tuple; keys that hold dots themselves are found too.
  const Value* Find(std::string_view path) const;
  // The same, or an Error that names what is there.
  const Value& Get(std::string_view path) const;

  // Same kinds, structure, texts and tensor contents. NaN equals NaN.
  friend bool operator==(const Value& a, const Value& b);

 private:
  template <typename T>
  const T& Expect(bool fits, std::string_view expected) const;

  Kind kind_ = Kind::kNone;
  std::variant<std::monostate, bool, int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const Items>, std::shared_ptr<const Pairs>,
               std::shared_ptr<const StoredTensor>, std::shared_ptr<const io::Opaque>>
      data_;
};

// An object of an unknown class or function, as the file describes it.
struct Opaque {
  std::string module;   // "numpy.core.multiarray"; empty when what is called is itself opaque, ...
  std::string name;     // ... and then the first of args.
  bool called = false;  // False: the bare class or function itself, such as torch.float32.
  Value::Items args = {};
  Value state = {};  // What the object would be told to restore.
  Value::Items items = {};
  Value::Pairs pairs = {};

  std::string FullName() const { return module + "." + name; }
};

// One line for people: "dict of 5", "float32 [3, 4]", "'text'", "object numpy.dtype".
std::string Describe(const Value& value);

// Whether text is UTF-8; `surrogates` also lets lone surrogates pass, as Python's pickles do.
bool IsUtf8(std::string_view text, bool surrogates = false);

}  // namespace kibitz::io
