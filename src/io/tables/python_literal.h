// Parses the Python literals of .npy headers as data: nothing is evaluated.
//
//   Result<PythonLiteral> header = ParsePythonLiteral("{'descr': '<f4', 'shape': (3, 4), }");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kibitz::io {

struct PythonLiteral {
  enum class Kind { kNone, kBool, kInt, kString, kTuple, kList, kDict };

  Kind kind = Kind::kNone;
  int64_t number = 0;                // Of kInt; 0 or 1 of kBool.
  std::string text;                  // Of kString.
  std::vector<PythonLiteral> items;  // Of kTuple and kList; key, value, key, value of kDict.

  bool Is(Kind wanted) const { return kind == wanted; }
  // The value of a text key; null when there is none.
  const PythonLiteral* Find(std::string_view key) const;
};

// The whole text, at most eight levels deep; white space around it is allowed. Keys of a dict are
// strings, each once.
Result<PythonLiteral> ParsePythonLiteral(std::string_view text);

// As Python's repr: in single quotes, escaped.
std::string PythonString(std::string_view text);

}  // namespace kibitz::io
