// The opcodes of a pickle (protocols 2 to 5), read into a graph of plain nodes. Nothing is looked
// up, made or called here: a class is its name, a call is "this, with these arguments".
//
//   const PickleGraph graph = ReadPickle(bytes, "run.pt, data.pkl");
//   const PickleNode& root = graph.nodes[graph.root];
//
// A pickle is a program for a stack machine; its memo lets nodes be shared and even contain
// themselves. The graph keeps that, by index; who walks it must limit depth and repetition
// (torch_file.cc does).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kibitz::io {

struct PickleNode {
  enum class Kind : uint8_t {
    kNone,
    kBool,        // number
    kInt,         // number
    kBigInt,      // text: two's complement, least significant byte first, over 8 bytes
    kFloat,       // number: the bits of a double
    kString,      // text: UTF-8, perhaps with lone surrogates
    kBytes,       // text
    kList,        // children
    kTuple,       // children
    kSet,         // children
    kDict,        // children: key, value, key, value, ...
    kGlobal,      // children: module, name (strings)
    kCall,        // children: what is called, arguments [, keywords]; number: its Extra + 1, or 0
    kPersistent,  // children: the id of something kept outside of the pickle
  };

  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string_view text = {};  // Points into the pickle.
  std::vector<uint32_t> children = {};
};

struct PickleGraph {
  static constexpr uint32_t kNothing = std::numeric_limits<uint32_t>::max();

  // What was done to a call's result afterwards.
  struct Extra {
    uint32_t state = kNothing;  // The last BUILD.
    std::vector<uint32_t> items = {};
    std::vector<uint32_t> pairs = {};  // key, value, key, value, ...
  };

  std::vector<PickleNode> nodes;
  std::vector<Extra> extras;
  uint32_t root = 0;
  uint64_t pickle_size = 0;  // In bytes.
};

// The bytes must outlive the graph. `place` names them in errors. Throws Error. Nodes, memo and
// stack have at most Limits().values entries each (base/limits.h), about 100 bytes all together.
PickleGraph ReadPickle(std::span<const std::byte> bytes, const std::string& place);

}  // namespace kibitz::io
