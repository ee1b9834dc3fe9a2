#include "oracles/engines/uci_text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "base/text.h"

namespace kibitz::oracles {
namespace {

using Words = std::vector<std::string_view>;

std::optional<UciOption::Type> TypeOf(std::string_view word) {
  using Type = UciOption::Type;
  constexpr std::pair<std::string_view, Type> kTypes[] = {{"check", Type::kCheck},
                                                          {"spin", Type::kSpin},
                                                          {"combo", Type::kCombo},
                                                          {"button", Type::kButton},
                                                          {"string", Type::kString}};
  for (const auto& [name, type] : kTypes) {
    if (word == name) return type;
  }
  return std::nullopt;
}

// Names and values may contain spaces: they end at the next keyword.
std::string TakeWords(std::span<const std::string_view> words, size_t& at) {
  constexpr std::array<std::string_view, 6> kKeys = {"name", "type", "default",
                                                     "min",  "max",  "var"};
  std::string text;
  for (; at < words.size() && std::find(kKeys.begin(), kKeys.end(), words[at]) == kKeys.end();
       ++at) {
    if (!text.empty()) text += ' ';
    text += words[at];
  }
  return text;
}

// Reads "info" word by word.
class InfoReader {
 public:
  InfoReader(const Words& words, const chess::Board& board) : words_(words), board_(board) {}

  Info Read() {
    while (at_ < words_.size()) ReadField(words_[at_++]);
    if (score_known_) info_.score = score_;
    return std::move(info_);
  }
  // Whether a "string" field begins here; the rest of the line is its text.
  bool at_text() const { return at_text_; }

 private:
  void ReadField(std::string_view key) {
    if (key == "depth") return Number(info_.depth);
    if (key == "seldepth") return Number(info_.selective_depth);
    if (key == "nodes") return Number(info_.nodes);
    if (key == "nps") return Number(info_.nodes_per_second);
    if (key == "time") return Number(info_.milliseconds);
    if (key == "multipv") return Number(info_.multipv);
    if (key == "score") return ReadScore();
    if (key == "wdl") return ReadWdl();
    if (key == "lowerbound") score_.bound = Bound::kLower;
    if (key == "upperbound") score_.bound = Bound::kUpper;
    if (key == "pv") return ReadPv();
    if (key == "string") {
      at_text_ = true;
      at_ = words_.size();
    }
  }

  // A negative number counts as invalid here.
  template <typename T>
  void Number(std::optional<T>& field) {
    const auto number = Signed<T>();
    if (number && *number >= 0) field = number;
  }

  template <typename T>
  std::optional<T> Signed() {
    if (at_ >= words_.size()) return std::nullopt;
    const auto number = ParseInt(words_[at_]);
    if (!number) return std::nullopt;
    ++at_;
    using Limits = std::numeric_limits<T>;
    if (*number < Limits::min() + 1 || *number > Limits::max()) return std::nullopt;
    return static_cast<T>(*number);
  }

  void ReadScore() {
    if (at_ >= words_.size()) return;
    const std::string_view kind = words_[at_];
    if (kind != "cp" && kind != "mate") return;
    ++at_;
    const auto number = Signed<int>();
    if (!number) return;
    score_known_ = true;
    score_.centipawns.reset();
    score_.mate.reset();
    if (kind == "cp") {
      score_.centipawns = *number;
    } else {
      score_.mate = Mate{*number > 0, *number > 0 ? *number : -*number};
    }
  }

  void ReadWdl() {
    const auto win = Signed<int>();
    const auto draw = Signed<int>();
    const auto loss = Signed<int>();
    if (!win || !draw || !loss) return;
    score_known_ = true;
    score_.wdl = WdlPermille{*win, *draw, *loss};
  }

  // To the end of the line or the next field; engines differ in what they write last.
  void ReadPv() {
    constexpr std::array<std::string_view, 14> kFields = {
        "depth", "seldepth", "nodes",    "nps",    "time",     "multipv", "score",
        "wdl",   "string",   "hashfull", "tbhits", "currmove", "bmc",     "pv"};
    info_.pv.clear();
    info_.pv_beyond = 0;
    chess::Board board = board_;
    for (; at_ < words_.size(); ++at_) {
      if (std::find(kFields.begin(), kFields.end(), words_[at_]) != kFields.end()) return;
      const auto move = info_.pv_beyond == 0 ? chess::ParseMove(board, words_[at_])
                                             : Result<chess::Move>(Bad("cut"));
      if (!move) {
        ++info_.pv_beyond;
        continue;
      }
      info_.pv.push_back(*move);
      board = board.After(*move);
    }
  }

  const Words& words_;
  const chess::Board& board_;
  size_t at_ = 1;
  bool at_text_ = false;
  bool score_known_ = false;
  MoverScore score_;
  Info info_;
};

bool MeansNone(std::string_view word) {
  return word == "(none)" || word == "0000" || word == "none" || word == "NULL" || word == "a1a1";
}

}  // namespace

std::optional<UciOption> ParseOption(std::string_view line) {
  const Words words = SplitWords(line);
  if (words.empty() || words[0] != "option") return std::nullopt;
  UciOption option;
  bool typed = false;
  for (size_t at = 1; at < words.size();) {
    const std::string_view key = words[at++];
    const std::string text = TakeWords(words, at);
    if (key == "name") option.name = text;
    if (key == "default") option.default_value = text == "<empty>" ? "" : text;
    if (key == "min") option.min = ParseInt(text);
    if (key == "max") option.max = ParseInt(text);
    if (key == "var") option.choices.push_back(text);
    if (key == "type") {
      const auto type = TypeOf(text);
      if (!type) return std::nullopt;
      option.type = *type;
      typed = true;
    }
  }
  if (option.name.empty() || !typed) return std::nullopt;
  return option;
}

std::string WhyNot(const UciOption& option, std::string_view value) {
  using Type = UciOption::Type;
  if (value.find_first_of("\r\n") != std::string_view::npos) return "the value has a newline";
  switch (option.type) {
    case Type::kCheck:
      return value == "true" || value == "false" ? "" : "expected true or false";
    case Type::kButton:
      return value.empty() ? "" : "it is a button and takes no value";
    case Type::kString:
      return "";
    case Type::kSpin: {
      const auto number = ParseInt(value);
      if (number && *number >= option.min.value_or(*number) &&
          *number <= option.max.value_or(*number)) {
        return "";
      }
      return fmt::format("expected a whole number from {} to {}",
                         option.min ? fmt::to_string(*option.min) : "any",
                         option.max ? fmt::to_string(*option.max) : "any");
    }
    case Type::kCombo:
      break;
  }
  const bool known = std::any_of(option.choices.begin(), option.choices.end(),
                                 [&](const auto& c) { return LowerCase(c) == LowerCase(value); });
  return known ? "" : fmt::format("expected one of: {}", fmt::join(option.choices, ", "));
}

Info ParseInfo(std::string_view line, const chess::Board& board) {
  const Words words = SplitWords(line);
  InfoReader reader(words, board);
  Info info = reader.Read();
  if (reader.at_text()) {
    const auto key = std::find(words.begin() + 1, words.end(), "string");
    const char* begin = key->data() + key->size();
    info.text = Trim(line.substr(static_cast<size_t>(begin - line.data())));
  }
  return info;
}

Result<BestMove> ParseBestMove(std::string_view line, const chess::Board& board) {
  const Words words = SplitWords(line);
  BestMove best;
  if (words.size() < 2) return Bad("{} names no move", Quoted(line));
  if (MeansNone(words[1])) return best;
  const auto move = chess::ParseMove(board, words[1]);
  if (!move) return Bad("{}: {}", Quoted(line), move.reason());
  best.move = *move;
  if (words.size() >= 4 && words[2] == "ponder") {
    const auto ponder = chess::ParseMove(board.After(*move), words[3]);
    if (ponder) best.ponder = *ponder;
  }
  return best;
}

}  // namespace kibitz::oracles
