#include "io/tables/python_literal.h"

#include <charconv>
#include <optional>
#include <utility>

namespace kibitz::io {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxKeys = 16;  // Of a dict; .npy headers have at most six.

using Kind = PythonLiteral::Kind;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

void AppendUtf8(std::string& text, int code) {  // Below 256.
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else {
    text += static_cast<char>(0xc0 | (code >> 6));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<PythonLiteral> Whole() {
    PythonLiteral value;
    if (Value(value, 0)) {
      Skip();
      if (at_ != text_.size()) Fail("more text after the end");
    }
    if (!problem_.empty()) return Bad("{} at character {}", problem_, at_ + 1);
    return value;
  }

 private:
  bool Fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  void Skip() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  bool Accept(char c) {
    Skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool AcceptWord(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool Value(PythonLiteral& value, int depth) {
    if (depth > kMaxDepth) return Fail("nested too deep");
    Skip();
    if (at_ == text_.size()) return Fail("the text ends too early");
    const char c = text_[at_];
    if (c == '\'' || c == '"') return String(value);
    if (c == '-' || (c >= '0' && c <= '9')) return Int(value);
    if (Accept('(')) return Items(value, Kind::kTuple, ')', depth);
    if (Accept('[')) return Items(value, Kind::kList, ']', depth);
    if (Accept('{')) return Dict(value, depth);
    if (AcceptWord("True")) return Plain(value, Kind::kBool, 1);
    if (AcceptWord("False")) return Plain(value, Kind::kBool, 0);
    if (AcceptWord("None")) return Plain(value, Kind::kNone, 0);
    return Fail("something else than a string, a number, a tuple, a list, a dict or a bool");
  }

  static bool Plain(PythonLiteral& value, Kind kind, int64_t number) {
    value.kind = kind;
    value.number = number;
    return true;
  }

  bool Int(PythonLiteral& value) {
    value.kind = Kind::kInt;
    const char* end = text_.data() + text_.size();
    const auto [stop, code] = std::from_chars(text_.data() + at_, end, value.number);
    if (code != std::errc()) return Fail("a number that does not fit 64 bits");
    at_ = static_cast<size_t>(stop - text_.data());
    AcceptWord("L");  // Python 2 wrote long numbers so.
    return true;
  }

  bool String(PythonLiteral& value) {
    value.kind = Kind::kString;
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\n') break;
      if (text_[at_] == '\\') {
        if (!Escape(value.text)) return false;
      } else {
        value.text += text_[at_++];
      }
    }
    if (at_ == text_.size() || text_[at_] != quote) return Fail("a string without an end");
    ++at_;
    return true;
  }

  bool Escape(std::string& text) {
    constexpr std::string_view kLetters = "\\'\"nrt";
    constexpr std::string_view kMeanings = "\\'\"\n\r\t";
    const std::string_view rest = text_.substr(at_ + 1);
    if (rest.empty()) return Fail("a string without an end");
    if (const size_t i = kLetters.find(rest[0]); i != std::string_view::npos) {
      text += kMeanings[i];
      at_ += 2;
      return true;
    }
    const auto high = rest.size() > 2 && rest[0] == 'x' ? HexDigit(rest[1]) : std::nullopt;
    const auto low = high ? HexDigit(rest[2]) : std::nullopt;
    if (!low) return Fail("an escape that is not known");
    AppendUtf8(text, *high * 16 + *low);
    at_ += 4;
    return true;
  }

  // After the opening bracket. "(3)" is the number 3, "(3,)" a tuple.
  bool Items(PythonLiteral& value, Kind kind, char close, int depth) {
    value.kind = kind;
    bool comma = false;
    while (!Accept(close)) {
      if (!value.items.empty() && !comma) return Fail("a missing comma or bracket");
      if (!Value(value.items.emplace_back(), depth + 1)) return false;
      comma = Accept(',');
    }
    if (kind == Kind::kTuple && value.items.size() == 1 && !comma) {
      PythonLiteral only = std::move(value.items[0]);
      value = std::move(only);
    }
    return true;
  }

  bool Dict(PythonLiteral& value, int depth) {
    value.kind = Kind::kDict;
    bool comma = true;
    while (!Accept('}')) {
      if (!comma) return Fail("a missing comma or bracket");
      if (value.items.size() == 2 * kMaxKeys) return Fail("a dict with too many keys");
      PythonLiteral key;
      if (!Value(key, depth + 1)) return false;
      if (!key.Is(Kind::kString)) return Fail("a key that is not a string");
      if (value.Find(key.text) != nullptr) return Fail("a key that was there before");
      if (!Accept(':')) return Fail("a key without a value");
      PythonLiteral item;
      if (!Value(item, depth + 1)) return false;
      value.items.push_back(std::move(key));
      value.items.push_back(std::move(item));
      comma = Accept(',');
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string problem_;
};

}  // namespace

const PythonLiteral* PythonLiteral::Find(std::string_view key) const {
  if (kind != Kind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].text == key) return &items[i + 1];
  }
  return nullptr;
}

Result<PythonLiteral> ParsePythonLiteral(std::string_view text) { return Parser(text).Whole(); }

std::string PythonString(std::string_view text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\x{:02x}", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace kibitz::io
