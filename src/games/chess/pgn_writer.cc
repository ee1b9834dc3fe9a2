#include "games/chess/pgn_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/san.h"

namespace kibitz::chess {
namespace {

constexpr size_t kColumns = 80;
constexpr std::array<std::string_view, 7> kRoster = {"Event", "Site",  "Date",  "Round",
                                                     "White", "Black", "Result"};

std::string Escaped(std::string_view value) {
  std::string text;
  for (char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  }
  return text;
}

std::string DefaultOf(std::string_view tag, const PgnGame& game) {
  if (tag == "Result") return std::string(NameOf(game.result));
  return tag == "Date" ? "????.??.??" : "?";
}

std::string TagText(const PgnGame& game) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view value) {
    text += fmt::format("[{} \"{}\"]\n", name, Escaped(value));
  };
  for (std::string_view name : kRoster) {
    const std::string_view value = game.Tag(name);
    add(name, value.empty() || name == "Result" ? DefaultOf(name, game) : value);
  }
  if (game.start != Board() && game.Tag("FEN").empty()) {
    add("SetUp", "1");
    add("FEN", ToFen(game.start));
  }
  for (const auto& [name, value] : game.tags) {
    if (std::ranges::find(kRoster, name) == kRoster.end()) add(name, value);
  }
  return text;
}

// Words with single blanks between, broken into lines.
class Lines {
 public:
  void Add(std::string_view word) {
    if (column_ > 0 && column_ + 1 + word.size() > kColumns) {
      text_ += '\n';
      column_ = 0;
    } else if (column_ > 0) {
      text_ += ' ';
      ++column_;
    }
    text_ += word;
    column_ += word.size();
  }
  std::string Take() { return std::move(text_) + "\n"; }

 private:
  std::string text_;
  size_t column_ = 0;
};

// The words of a comment. "[%eval 0.35,12]" is one word: readers look for it on one line.
std::vector<std::string> CommentWords(const std::string& comment) {
  std::vector<std::string> words;
  bool inside = false;
  for (std::string_view word : SplitWords(comment)) {
    if (inside) {
      words.back() += ' ';
      words.back() += word;
    } else {
      words.emplace_back(word);
      inside = word.starts_with("[%");
    }
    if (word.ends_with(']')) inside = false;
  }
  return words;
}

void AddNote(const PgnNote& note, Lines& lines) {
  for (int nag : note.nags) lines.Add(fmt::format("${}", nag));
  std::string comment = note.comment;
  std::ranges::replace(comment, '{', '[');
  std::ranges::replace(comment, '}', ']');
  const std::vector<std::string> words = CommentWords(comment);
  for (size_t i = 0; i < words.size(); ++i) {
    lines.Add((i == 0 ? "{" : "") + words[i] + (i + 1 == words.size() ? "}" : ""));
  }
}

}  // namespace

std::string ToPgn(const PgnGame& game) {
  Lines lines;
  Board board = game.start;
  bool number = true;  // A move number is due.
  for (size_t ply = 0; ply <= game.moves.size(); ++ply) {
    for (const PgnNote& note : game.notes) {
      if (note.ply != ply) continue;
      AddNote(note, lines);
      number = true;
    }
    if (ply == game.moves.size()) break;
    const bool white = board.side_to_move() == Color::kWhite;
    if (white || number) {
      lines.Add(fmt::format("{}{}", board.fullmove_number(), white ? "." : "..."));
    }
    number = false;
    lines.Add(ToSan(board, game.moves[ply]));
    board = board.After(game.moves[ply]);
  }
  lines.Add(NameOf(game.result));
  return TagText(game) + "\n" + lines.Take() + "\n";
}

std::string PgnDateOfToday() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char text[16];
  std::strftime(text, sizeof(text), "%Y.%m.%d", &local);
  return text;
}

}  // namespace kibitz::chess
