#include <fmt/format.h>

#include <set>
#include <string>

#include "arena/book.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/arena_input.h"
#include "cli/commands.h"

namespace kibitz::cli {
namespace {

struct ArenaOpeningsOptions {
  std::string book;
  arena::BookOptions options;
  arena::RunOptions run;
};

Fields FieldsOf(ArenaOpeningsOptions& options) {
  Fields fields;
  fields.Add("book", options.book, "file for the positions, as EPD",
             {.required = true, .positional = true, .metavar = "FILE.epd"});
  fields.AddAll(arena::FieldsOf(options.options));
  fields.AddAll(arena::FieldsOf(options.run));
  return fields;
}

int Measure(const ArenaOpeningsOptions& options, const Context& context) {
  Progress progress("candidates", 0);
  const arena::Book book = arena::MakeBook(options.options, options.run, &progress);
  progress.Finish();
  if (options.run.reports()) WriteFileAtomically(options.book, book.Epd());
  return PrintReport(
      options.run,
      fmt::format("{}: {} positions of {} candidates; {} repeated, {} not balanced\n", options.book,
                  book.positions.size(), book.candidates, book.repeated, book.unbalanced),
      {{"book", options.book},
       {"positions", book.positions.size()},
       {"candidates", book.candidates},
       {"repeated", book.repeated},
       {"unbalanced", book.unbalanced}},
      context);
}

}  // namespace

Command ArenaOpenings() {
  return MakeCommand<ArenaOpeningsOptions>(
      {.name = "arena openings",
       .group = "Arena",
       .summary = "make a book of balanced positions for matches",
       .details =
           "A candidate is a named opening followed by random moves that a shallow search does "
           "not\n"
           "find bad. It enters the book when the engine sees neither side ahead by more than\n"
           "--max-cp, and the position is new. The same seed gives the same book.",
       .example = "kibitz arena openings /tmp/book.epd --positions 10 --nodes 5000"},
      RunRanked<ArenaOpeningsOptions, Measure>);
}

}  // namespace kibitz::cli
