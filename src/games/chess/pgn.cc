#include "games/chess/pgn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "games/chess/fen.h"
#include "games/chess/san.h"

namespace kibitz::chess {
namespace {

constexpr int kEnd = -1;
constexpr size_t kChunkBytes = 1 << 16;
// Beyond these a game is refused, so that no file can fill the memory.
constexpr size_t kMaxToken = 255;
constexpr size_t kMaxCommentBytes = 1 << 20;
constexpr size_t kMaxTags = 1000;
constexpr size_t kMaxTagBytes = 1 << 16;
constexpr size_t kMaxMoves = 20000;
constexpr size_t kMaxNotes = 100000;
constexpr int kMaxDepth = 64;

bool IsBlank(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(int c) { return c >= '0' && c <= '9'; }

// Bytes with one byte of look-ahead and a line count.
class ByteStream {
 public:
  explicit ByteStream(PgnReader::Source source) : source_(std::move(source)) {}

  int Peek() {
    if (at_ == size_ && !Refill()) return kEnd;
    return static_cast<unsigned char>(buffer_[at_]);
  }
  int Get() {
    const int c = Peek();
    if (c == kEnd) return c;
    ++at_;
    line_start_ = c == '\n';
    if (line_start_) ++line_;
    return c;
  }
  void SkipLine() {
    for (int c = Get(); c != '\n' && c != kEnd;) c = Get();
  }

  // What was read so far does not count as part of the line: the byte order mark.
  void StartLine() { line_start_ = true; }

  // For the limit on the bytes of one game.
  void BeginGame() { game_begin_ = bytes(); }

  bool at_line_start() const { return line_start_; }
  uint64_t line() const { return line_; }
  uint64_t bytes() const { return before_ + at_; }

 private:
  bool Refill() {
    before_ += size_;
    at_ = 0;
    if (before_ - game_begin_ > Limits().game) {
      throw Error("line {}: a game of more than {} MB; is this PGN? {}", line_, Limits().game >> 20,
                  AllowHint("game", 2 * Limits().game));
    }
    size_ = source_(buffer_.data(), buffer_.size());
    return size_ > 0;
  }

  PgnReader::Source source_;
  std::vector<char> buffer_ = std::vector<char>(kChunkBytes);
  size_t at_ = 0;
  size_t size_ = 0;
  uint64_t before_ = 0;  // Bytes of earlier buffers.
  uint64_t game_begin_ = 0;
  uint64_t line_ = 1;
  bool line_start_ = true;
};

std::optional<GameResult> ResultOf(std::string_view text) {
  if (text == "1-0") return GameResult::kWhiteWins;
  if (text == "0-1") return GameResult::kBlackWins;
  if (text == "1/2-1/2" || text == "1/2") return GameResult::kDraw;
  if (text == "*") return GameResult::kUnknown;
  return std::nullopt;
}

// "!" to "?!" as NAG 1 to 6; 0 for anything else.
int MarkNag(std::string_view marks) {
  constexpr std::array<std::string_view, 6> kMarks = {"!", "?", "!!", "??", "!?", "?!"};
  const auto at = std::find(kMarks.begin(), kMarks.end(), marks);
  return at == kMarks.end() ? 0 : static_cast<int>(at - kMarks.begin()) + 1;
}

bool IsNullMove(std::string_view token) {
  return token == "--" || token == "Z0" || token == "@@@@" || token == "null" || token == "0000";
}

// "e.p." after a capture, and the evaluation signs of older books: "+-", "=", "+/=".
bool IsOrnament(std::string_view token) {
  return token == "e.p." || token == "ep" || token == "ep." ||
         token.find_first_not_of("+-=/~#") == std::string_view::npos;
}

}  // namespace

std::string_view NameOf(GameResult result) {
  switch (result) {
    case GameResult::kWhiteWins:
      return "1-0";
    case GameResult::kBlackWins:
      return "0-1";
    case GameResult::kDraw:
      return "1/2-1/2";
    case GameResult::kUnknown:
      return "*";
  }
  return "*";
}

std::string_view PgnGame::Tag(std::string_view name) const {
  for (const auto& [tag, value] : tags) {
    if (tag == name) return value;
  }
  return "";
}

// One game at a time: tags, then tokens of moves until a result, the next game's tags or the end.
// The first problem is kept and the game is read on without making moves, so that the next game
// is found even after an illegal move.
class PgnReader::Parser {
 public:
  Parser(Source source, PgnReading reading) : in_(std::move(source)), reading_(reading) {}

  PgnRead Next(PgnGame& game) {
    Begin(game);
    in_.BeginGame();
    if (!SkipToGame()) return PgnRead::kEnd;
    game_->line = in_.line();
    ReadTags();
    SetUpStart();
    if (headers_only_) {
      game_->result = ResultOf(game_->Tag("Result")).value_or(GameResult::kUnknown);
    } else {
      ReadMoves();
    }
    if (!broken_) return PgnRead::kGame;
    problem_.game_line = game_->line;
    return PgnRead::kBroken;
  }

  const PgnProblem& problem() const { return problem_; }
  uint64_t bytes() const { return in_.bytes(); }

 private:
  // A line of moves being read: the main line or a variation.
  struct Line {
    std::vector<Move>* moves;
    std::vector<PgnNote>* notes;
    Board before;  // Before the last move, where a variation starts.
    Board now;
  };

  void Begin(PgnGame& game) {
    game_ = &game;
    game.tags.clear();
    game.moves.clear();
    game.notes.clear();
    game.start = Board();
    game.result = GameResult::kUnknown;
    note_count_ = 0;
    broken_ = false;
    headers_only_ = false;
  }

  void Break(std::string reason) { BreakAt(in_.line(), std::move(reason)); }
  void BreakAt(uint64_t line, std::string reason) {
    if (broken_) return;
    broken_ = true;
    problem_.line = line;
    problem_.reason = std::move(reason);
  }

  // Past white space, the byte order mark and escaped lines. False at the end.
  bool SkipToGame() {
    if (in_.bytes() == 0 && in_.Peek() == 0xef) {
      for (int expected : {0xef, 0xbb, 0xbf}) {
        if (in_.Get() == expected) continue;
        Break("the file starts with a broken byte order mark");
        break;
      }
      in_.StartLine();
    }
    while (true) {
      const int c = in_.Peek();
      if (c == kEnd) return broken_;
      if (c == '%' && in_.at_line_start()) {
        in_.SkipLine();
      } else if (IsBlank(c)) {
        in_.Get();
      } else {
        return true;
      }
    }
  }

  void SkipBlanks() {
    while (IsBlank(in_.Peek())) in_.Get();
  }

  // A blank line ends the tags: what follows it in brackets belongs to the next game, and this one
  // has no moves, as in files of headers only.
  void ReadTags() {
    uint64_t last = 0;  // The line of the last tag or escaped line.
    while (true) {
      SkipBlanks();
      const int c = in_.Peek();
      if (c == '%' && in_.at_line_start()) {
        last = in_.line();
        in_.SkipLine();
      } else if (c == '[') {
        headers_only_ = last != 0 && in_.line() > last + 1;
        if (headers_only_) return;
        ReadTag();
        last = in_.line();
      } else {
        return;
      }
    }
  }

  // [Name "value"], with \" and \\ inside.
  void ReadTag() {
    const uint64_t line = in_.line();
    in_.Get();
    while (in_.Peek() == ' ' || in_.Peek() == '\t') in_.Get();
    std::string name;
    while (!IsBlank(in_.Peek()) && in_.Peek() != '"' && in_.Peek() != ']' && in_.Peek() != kEnd &&
           name.size() < kMaxToken) {
      name += static_cast<char>(in_.Get());
    }
    while (in_.Peek() == ' ' || in_.Peek() == '\t') in_.Get();
    std::string value;
    bool closed = false;
    if (in_.Peek() == '"') {
      in_.Get();
      while (!closed && in_.Peek() != '\n' && in_.Peek() != kEnd && value.size() < kMaxTagBytes) {
        int c = in_.Get();
        if (c == '\\' && (in_.Peek() == '"' || in_.Peek() == '\\')) {
          value += static_cast<char>(in_.Get());
        } else if (c == '"') {
          closed = true;
        } else {
          value += static_cast<char>(c);
        }
      }
    }
    while (in_.Peek() == ' ' || in_.Peek() == '\t') in_.Get();
    if (!closed || name.empty() || in_.Peek() != ']') {
      BreakAt(line, "a tag is not of the form [Name \"value\"]");
      in_.SkipLine();
      return;
    }
    in_.Get();
    if (game_->tags.size() == kMaxTags) return BreakAt(line, "more than 1000 tags");
    game_->tags.emplace_back(std::move(name), std::move(value));
  }

  void SetUpStart() {
    const std::string_view variant = game_->Tag("Variant");
    std::string name = LowerCase(variant);  // Without spaces: every program has its own spelling.
    std::erase(name, ' ');
    const bool chess960 = name == "chess960" || name == "chess9lx" || name == "fischerandom" ||
                          name == "fischerrandom" || name == "fischerrandomchess";
    if (!name.empty() && !chess960 && name != "standard" && name != "fromposition" &&
        name != "normal" && name != "chess") {
      return BreakAt(game_->line, fmt::format("variant {} is not chess", Quoted(variant)));
    }
    const std::string_view fen = game_->Tag("FEN");
    if (fen.empty()) return;
    auto board = ParseFen(fen, {.chess960 = chess960});
    if (!board) {
      return BreakAt(game_->line, fmt::format("tag FEN {}: {}", Quoted(fen), board.reason()));
    }
    game_->start = *board;
  }

  void ReadMoves() {
    lines_.clear();
    lines_.push_back({&game_->moves, &game_->notes, game_->start, game_->start});
    skipped_depth_ = 0;
    bool ended = false;
    while (!ended) {
      const int c = in_.Peek();
      if (c == kEnd || (c == '[' && in_.at_line_start())) break;
      if (IsBlank(c) || c == '.') {
        in_.Get();
      } else if (c == '{') {
        ReadComment();
        if (unterminated_) break;
      } else if (c == ';') {
        ReadLineComment();
      } else if (c == '%' && in_.at_line_start()) {
        in_.SkipLine();
      } else if (c == '(') {
        OpenVariation();
      } else if (c == ')') {
        CloseVariation();
      } else if (c == '$') {
        ReadNag();
      } else {
        ended = ReadToken();
      }
    }
    if (lines_.size() > 1 || skipped_depth_ > 0) Break("a variation is not closed");
    if (!ended) game_->result = ResultOf(game_->Tag("Result")).value_or(GameResult::kUnknown);
    unterminated_ = false;
  }

  // Up to the closing brace. A blank line and then an [Event tag show that the brace is missing.
  void ReadComment() {
    const uint64_t line = in_.line();
    in_.Get();
    std::string text;
    int newlines = 0;
    while (true) {
      const int c = in_.Peek();
      if (c == kEnd || (c == '[' && newlines >= 2 && in_.at_line_start())) {
        BreakAt(line, "a comment is not closed");
        unterminated_ = true;
        return;
      }
      in_.Get();
      if (c == '}') break;
      if (c == '\n') ++newlines;
      if (!IsBlank(c)) newlines = 0;
      if (text.size() < kMaxCommentBytes) text += static_cast<char>(c);
    }
    if (text.size() == kMaxCommentBytes) BreakAt(line, "a comment is longer than 1 MiB");
    AddComment(text);
  }

  void ReadLineComment() {
    in_.Get();
    std::string text;
    while (in_.Peek() != '\n' && in_.Peek() != kEnd) {
      const int c = in_.Get();
      if (text.size() < kMaxCommentBytes) text += static_cast<char>(c);
    }
    if (text.size() == kMaxCommentBytes) Break("a comment is longer than 1 MiB");
    AddComment(text);
  }

  bool Keeping() const { return reading_.comments && skipped_depth_ == 0 && !broken_; }

  PgnNote* NoteHere() {
    Line& line = lines_.back();
    const size_t ply = line.moves->size();
    if (line.notes->empty() || line.notes->back().ply != ply) {
      if (++note_count_ > kMaxNotes) {
        Break("more than 100000 notes");
        return nullptr;
      }
      line.notes->push_back({ply, "", {}, {}});
    }
    return &line.notes->back();
  }

  void AddComment(std::string_view text) {
    text = Trim(text);
    if (!Keeping() || text.empty()) return;
    PgnNote* note = NoteHere();
    if (note == nullptr) return;
    if (note->comment.size() + text.size() > kMaxCommentBytes) {
      return Break("comments on one move are longer than 1 MiB");
    }
    if (!note->comment.empty()) note->comment += ' ';
    note->comment += text;
  }

  void AddNag(int nag) {
    if (!Keeping()) return;
    PgnNote* note = NoteHere();
    if (note == nullptr) return;
    if (note->nags.size() >= 255) return Break("more than 255 NAGs on one move");
    note->nags.push_back(nag);
  }

  void ReadNag() {
    in_.Get();
    int nag = 0;
    while (IsDigit(in_.Peek())) nag = std::min(1000, nag * 10 + (in_.Get() - '0'));
    if (nag > 255) return Break("a NAG is above $255");
    AddNag(nag);
  }

  void OpenVariation() {
    in_.Get();
    if (!reading_.variations || skipped_depth_ > 0 || broken_) {
      ++skipped_depth_;
      return;
    }
    const Line& outer = lines_.back();
    if (outer.moves->empty()) {
      ++skipped_depth_;
      return Break("a variation stands before the first move");
    }
    PgnNote* note = static_cast<int>(lines_.size()) > kMaxDepth ? nullptr : NoteHere();
    if (note == nullptr) {
      ++skipped_depth_;
      return Break("variations are nested deeper than 64");
    }
    PgnVariation& variation = note->variations.emplace_back();
    // The pointers stay valid: an outer line does not grow while an inner one is read.
    lines_.push_back({&variation.moves, &variation.notes, outer.before, outer.before});
  }

  void CloseVariation() {
    in_.Get();
    if (skipped_depth_ > 0) {
      --skipped_depth_;
    } else if (lines_.size() > 1) {
      lines_.pop_back();
    } else {
      Break("found ) without (");
    }
  }

  // A move, a move number, a result or an ornament. True when the game is over.
  bool ReadToken() {
    const uint64_t line = in_.line();
    const std::string_view token = Token();
    const bool main_line = skipped_depth_ == 0 && lines_.size() == 1;
    if (const auto result = ResultOf(token)) {
      if (main_line) game_->result = *result;
      return main_line;
    }
    if (skipped_depth_ > 0 || broken_) return false;
    const bool number = std::all_of(token.begin(), token.end(), [](char c) { return IsDigit(c); });
    if ((number && token != "0000") || IsOrnament(token)) {
      if (IsNullMove(token)) BreakAt(line, "null moves are not chess");
      return false;
    }
    if (const int nag = MarkNag(token); nag != 0) {
      AddNag(nag);
      return false;
    }
    MakeMove(token, line);
    return false;
  }

  // Bytes up to a blank or a structural sign. A dot ends a number ("1.e4") but not "e.p.".
  std::string_view Token() {
    size_t size = 0;
    bool digits = true;
    for (int c = in_.Peek(); c != kEnd && !IsBlank(c); c = in_.Peek()) {
      if (c == '(' && size >= 2 && token_[size - 1] != '(') {
        // "e8(Q)" is one token, "Nf3(" is a move and an opening.
        const char rank = token_[size - 1];
        if (rank != '1' && rank != '8') break;
        if (std::string_view("abcdefgh").find(token_[0]) == std::string_view::npos) break;
      } else if (c == ')' && std::find(token_.begin(), token_.begin() + static_cast<int>(size),
                                       '(') != token_.begin() + static_cast<int>(size)) {
        // Closes it.
      } else if (c == '{' || c == '}' || c == '(' || c == ')' || c == ';' || c == '$' || c == '[' ||
                 c == ']' || (c == '.' && digits)) {
        if (size == 0) token_[size++] = static_cast<char>(in_.Get());  // Stray: never stand still.
        break;
      }
      in_.Get();
      digits = digits && IsDigit(c);
      if (size < kMaxToken) token_[size++] = static_cast<char>(c);
    }
    return {token_.data(), size};
  }

  void MakeMove(std::string_view token, uint64_t line_number) {
    if (IsNullMove(token)) return BreakAt(line_number, "null moves are not chess");
    Line& line = lines_.back();
    const auto move = ParseSan(line.now, token);
    if (!move) return BreakAt(line_number, move.reason());
    if (line.moves->size() == kMaxMoves) return BreakAt(line_number, "more than 20000 moves");
    line.moves->push_back(*move);
    line.before = line.now;
    line.now = line.now.After(*move);
    const size_t marks = token.find_first_of("!?");
    if (marks != std::string_view::npos) {
      if (const int nag = MarkNag(token.substr(marks)); nag != 0) AddNag(nag);
    }
  }

  ByteStream in_;
  const PgnReading reading_;
  PgnGame* game_ = nullptr;
  PgnProblem problem_;
  bool broken_ = false;
  bool headers_only_ = false;  // The next game's tags follow.
  bool unterminated_ = false;
  std::vector<Line> lines_;    // The main line, then the variations open now.
  int64_t skipped_depth_ = 0;  // Parentheses open in text that is passed over.
  size_t note_count_ = 0;
  std::array<char, kMaxToken + 1> token_{};
};

PgnReader::PgnReader(Source source, PgnReading reading)
    : parser_(std::make_unique<Parser>(std::move(source), reading)) {}
PgnReader::~PgnReader() = default;

PgnRead PgnReader::Next(PgnGame& game) { return parser_->Next(game); }
const PgnProblem& PgnReader::problem() const { return parser_->problem(); }
uint64_t PgnReader::bytes() const { return parser_->bytes(); }

PgnReader::Source TextSource(std::string_view text) {
  return [text](char* buffer, size_t size) mutable {
    const size_t count = std::min(size, text.size());
    std::memcpy(buffer, text.data(), count);
    text.remove_prefix(count);
    return count;
  };
}

namespace {

// What stands after "[%name " up to the closing bracket.
std::optional<std::string_view> CommandOf(std::string_view comment, std::string_view name) {
  for (size_t at = comment.find("[%"); at != std::string_view::npos;
       at = comment.find("[%", at + 2)) {
    const std::string_view rest = comment.substr(at + 2);
    if (!rest.starts_with(name) || rest.size() == name.size() || rest[name.size()] != ' ') continue;
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    return Trim(rest.substr(name.size(), close - name.size()));
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> ClockOf(std::string_view comment) {
  const auto text = CommandOf(comment, "clk");
  if (!text) return std::nullopt;
  double seconds = 0;
  const auto parts = Split(*text, ':');
  if (parts.size() > 3) return std::nullopt;
  for (std::string_view part : parts) {
    const auto value = ParseDouble(part);
    if (!value || !(*value >= 0) || *value > 1e6) return std::nullopt;
    seconds = seconds * 60 + *value;
  }
  return seconds;
}

std::optional<PgnEval> EvalOf(std::string_view comment) {
  const auto text = CommandOf(comment, "eval");
  if (!text) return std::nullopt;
  const auto parts = Split(*text, ',');
  PgnEval eval;
  if (parts.size() > 2) return std::nullopt;
  if (parts[0].starts_with('#')) {
    const auto mate = ParseInt(parts[0].substr(1));
    if (!mate || std::abs(*mate) > 10000) return std::nullopt;
    eval.mate = static_cast<int>(*mate);
  } else {
    std::string_view number = parts[0];
    if (number.starts_with('+')) number.remove_prefix(1);
    const auto pawns = ParseDouble(number);
    if (!pawns || !(std::abs(*pawns) < 1e6)) return std::nullopt;
    eval.centipawns = static_cast<int>(std::lround(*pawns * 100));
  }
  if (parts.size() == 2) {
    const auto depth = ParseInt(parts[1]);
    if (!depth || *depth < 0 || *depth > 10000) return std::nullopt;
    eval.depth = static_cast<int>(*depth);
  }
  return eval;
}

}  // namespace kibitz::chess
