// Enough of C++ and Markdown to measure our own sources: how long functions are, which types are
// defined where, how long the paragraphs of a document are. It knows braces, not grammar.
//
//   for (const SourceFunction& function : FunctionsIn(text)) Use(function.head, function.lines);
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kibitz::testing {

// The text with comments, strings, character literals and preprocessor lines blanked out: as long
// as before, with the same line breaks.
std::string WithoutComments(std::string_view text);

struct SourceFunction {
  std::string head;  // What stands before its brace, on one line: "int Count(const Board& board)".
  int line = 0;      // Of its opening brace, from 1.
  int lines = 0;     // From its opening to its closing brace.
};

// Functions with bodies in namespaces and classes. Lambdas count as part of the function around.
std::vector<SourceFunction> FunctionsIn(std::string_view text);

struct SourceType {
  std::string name;  // "kibitz::decoder::Batch"
  int line = 0;      // Of its opening brace, from 1.
};

// Classes, structs, unions and enums that other files can name: none in functions and unnamed
// namespaces.
std::vector<SourceType> TypesIn(std::string_view text);

struct Paragraph {
  int line = 0;   // Its first, from 1.
  int lines = 0;  // How many.
};

// Paragraphs and list items of a Markdown text; no headings, tables and fenced code.
std::vector<Paragraph> ParagraphsIn(std::string_view text);

}  // namespace kibitz::testing
