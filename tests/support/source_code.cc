#include "tests/support/source_code.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"

namespace kibitz::testing {
namespace {

bool IsWordLetter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// Where the literal that starts at `from` ends (one past its closing quote).
size_t EndOfLiteral(std::string_view text, size_t from) {
  const char quote = text[from];
  if (quote == '"' && from > 0 && text[from - 1] == 'R') {
    const size_t open = text.find('(', from);
    if (open == std::string_view::npos) return text.size();
    const std::string close = ")" + std::string(text.substr(from + 1, open - from - 1)) + "\"";
    const size_t end = text.find(close, open);
    return end == std::string_view::npos ? text.size() : end + close.size();
  }
  size_t at = from + 1;
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// Where a preprocessor line ends, its continuation lines included.
size_t EndOfDirective(std::string_view text, size_t from) {
  size_t end = text.find('\n', from);
  while (end != std::string_view::npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
  return std::min(end, text.size());
}

bool StartsLine(std::string_view text, size_t at) {
  while (at > 0 && text[at - 1] == ' ') --at;
  return at == 0 || text[at - 1] == '\n';
}

// Where what starts at `at` and is no code ends; `at` itself when code stands there.
size_t EndOfNoCode(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (rest.starts_with("/*")) return std::min(text.find("*/", at + 2), text.size() - 2) + 2;
  if (rest[0] == '#' && StartsLine(text, at)) return EndOfDirective(text, at);
  if (rest[0] == '"') return EndOfLiteral(text, at);
  // 1'000 has a separator, no character.
  if (rest[0] == '\'' && (at == 0 || !IsWordLetter(text[at - 1]))) return EndOfLiteral(text, at);
  return at;
}

std::string OnOneLine(std::string_view text) {
  std::string line;
  for (std::string_view word : SplitWords(text)) {
    line += line.empty() ? "" : " ";
    line += word;
  }
  return line;
}

enum class ScopeKind { kNamespace, kUnnamed, kType, kFunction, kOther };

struct Scope {
  ScopeKind kind = ScopeKind::kOther;
  std::string name;  // Of a namespace or type.
  std::string head;
  int line = 0;
};

// The word after the keywords that begin a type, or "".
std::string TypeName(std::string_view head) {
  if (head.starts_with("template <")) {
    int depth = 0;
    size_t at = head.find('<');
    for (; at < head.size(); ++at) {
      depth += head[at] == '<' ? 1 : head[at] == '>' ? -1 : 0;
      if (depth == 0) break;
    }
    head = Trim(head.substr(std::min(at + 1, head.size())));
  }
  bool type = false;
  std::string name;
  for (std::string_view word : SplitWords(head)) {
    const bool key = word == "class" || word == "struct" || word == "union" || word == "enum";
    if (!type && !key) return "";
    type = true;
    if (key || word.starts_with("alignas(") || word.starts_with("[[")) continue;
    if (word == ":" || word == "final") break;
    name += word;  // A specialisation may have blanks: "hash<A, B>".
  }
  return type && name.empty() ? "(unnamed)" : name;
}

Scope ScopeOf(const std::string& head, ScopeKind around, int line) {
  Scope scope = {.kind = ScopeKind::kOther, .name = "", .head = head, .line = line};
  const bool outside = around != ScopeKind::kFunction && around != ScopeKind::kOther;
  if (!outside) return scope;
  if (head == "namespace") {
    scope.kind = ScopeKind::kUnnamed;
  } else if (head.starts_with("namespace ") || head.starts_with("inline namespace ")) {
    scope.kind = ScopeKind::kNamespace;
    scope.name = head.substr(head.rfind(' ') + 1);
  } else if (scope.name = TypeName(head); !scope.name.empty()) {
    scope.kind = ScopeKind::kType;
  } else if (head.find('(') != std::string::npos) {
    // Neither `kTable = MakeTable({` nor `kShow = [](int x) {`; but `operator==(` and defaults.
    const size_t equals = head.find(" = ");
    const bool value = equals != std::string::npos && equals < head.find('(');
    scope.kind = value ? ScopeKind::kOther : ScopeKind::kFunction;
  }
  return scope;
}

// Calls leave(scopes, scope, end line) for every brace that closes.
template <typename Leave>
void Walk(std::string_view text, Leave leave) {
  const std::string code = WithoutComments(text);
  std::vector<Scope> scopes;
  size_t head = 0;  // Where the head of the next brace begins.
  int parens = 0;
  int line = 1;
  for (size_t at = 0; at < code.size(); ++at) {
    const char letter = code[at];
    line += letter == '\n' ? 1 : 0;
    if (letter == '(') ++parens;
    if (letter == ')') --parens;
    if (letter == ';' && parens <= 0) head = at + 1;
    if (letter == ':' && at > 0) {  // public:
      for (std::string_view label : {"public", "private", "protected"}) {
        if (std::string_view(code).substr(0, at).ends_with(label)) head = at + 1;
      }
    }
    if (letter == '{') {
      const ScopeKind around = scopes.empty() ? ScopeKind::kNamespace : scopes.back().kind;
      scopes.push_back(ScopeOf(OnOneLine(std::string_view(code).substr(head, at - head)),
                               parens > 0 ? ScopeKind::kOther : around, line));
      if (parens <= 0) head = at + 1;
    }
    if (letter == '}' && !scopes.empty()) {
      const Scope scope = scopes.back();
      scopes.pop_back();
      leave(scopes, scope, line);
      if (parens <= 0) head = at + 1;
    }
  }
}

// Fenced code and tables are no paragraphs; each list item is one of its own.
bool BeginsItem(std::string_view line) {
  const std::string_view text = Trim(line);
  if (text.starts_with("- ") || text.starts_with("* ")) return true;
  const size_t dot = text.find(". ");
  return dot != std::string_view::npos && dot > 0 && dot < 3 &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(dot),
                     [](char letter) { return letter >= '0' && letter <= '9'; });
}

}  // namespace

std::string WithoutComments(std::string_view text) {
  std::string code(text);
  for (size_t at = 0; at < code.size();) {
    const size_t end = EndOfNoCode(text, at);
    for (size_t i = at; i < end; ++i) code[i] = code[i] == '\n' ? '\n' : ' ';
    at = std::max(end, at + 1);
  }
  return code;
}

std::vector<SourceFunction> FunctionsIn(std::string_view text) {
  std::vector<SourceFunction> functions;
  Walk(text, [&](const std::vector<Scope>&, const Scope& scope, int end) {
    if (scope.kind != ScopeKind::kFunction) return;
    functions.push_back({scope.head, scope.line, end - scope.line + 1});
  });
  return functions;
}

std::vector<SourceType> TypesIn(std::string_view text) {
  std::vector<SourceType> types;
  Walk(text, [&](const std::vector<Scope>& around, const Scope& scope, int) {
    if (scope.kind != ScopeKind::kType || scope.name == "(unnamed)") return;
    std::string name;
    for (const Scope& outer : around) {
      const bool named = outer.kind == ScopeKind::kNamespace || outer.kind == ScopeKind::kType;
      if (!named) return;
      name += outer.name + "::";
    }
    types.push_back({name + scope.name, scope.line});
  });
  return types;
}

std::vector<Paragraph> ParagraphsIn(std::string_view text) {
  std::vector<Paragraph> paragraphs;
  bool fenced = false;
  bool inside = false;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    const std::string_view trimmed = Trim(line);
    const bool fence = trimmed.starts_with("```");
    if (fence) fenced = !fenced;
    if (fence || fenced || trimmed.empty() || trimmed[0] == '#' || trimmed[0] == '|') {
      inside = false;
      continue;
    }
    if (!inside || BeginsItem(line)) paragraphs.push_back({number, 0});
    ++paragraphs.back().lines;
    inside = true;
  }
  return paragraphs;
}

}  // namespace kibitz::testing
