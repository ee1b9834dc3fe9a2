#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "cli/player_input.h"
#include "games/chess/diagram.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/san.h"
#include "students/decoder/play/player.h"

namespace kibitz::cli {
namespace {

using chess::Board;
using decoder::Thought;
using decoder::ThoughtEnd;
using decoder::ThoughtNode;
using decoder::Variation;
using Json = nlohmann::ordered_json;

struct DecoderThinkOptions {
  nn::NetworkOptions network;
  FenInput position = {.for_decoder = true};
  decoder::ThinkOptions think;
  bool no_draft = false;
  bool boards = false;
  bool tokens = false;
};

Fields FieldsOf(DecoderThinkOptions& options) {
  decoder::ThinkOptions& think = options.think;
  Fields fields = ModelFields(options.network);
  fields.AddAll(FieldsOf(options.position));
  fields.Add("thinking_temperature", think.thinking_temperature,
             "sampling temperature of moves in variations; 0: the most likely",
             {.min = 0, .max = 100});
  fields.Add("final_temperature", think.final_temperature, "sampling temperature of the final move",
             {.min = 0, .max = 100});
  fields.Add("structure_temperature", think.structure_temperature,
             "sampling temperature of boards and of the ends of variations and thinking",
             {.min = 0, .max = 100});
  fields.Add("top_k", think.top_k, "sample only among the k most likely moves; 0: all",
             {.min = 0, .max = decoder::kMoveVocabularySize});
  fields.Add("max_variations", think.max_variations, "max variations; 0: the network decides",
             {.min = 0, .max = 1000});
  fields.Add("max_depth", think.max_depth, "max moves of a variation; 0: the network decides",
             {.min = 0, .max = 1000});
  fields.Add("max_seq_len", think.max_seq_len,
             "max tokens of the sequence; 0: the network's max_seq_len",
             {.min = 0, .max = 1 << 20});
  fields.Add("legal", think.legal_only,
             "only legal moves, by the rules, whatever board the network wrote");
  fields.Add("distinct", think.distinct, "no two variations begin with the same move");
  fields.Add("seed", think.seed, "random seed; the n-th position uses seed + n");
  fields.Add("no_draft", options.no_draft, "decode boards token by token: same result, slower");
  fields.Add("boards", options.boards, "show each board the network wrote");
  fields.Add("tokens", options.tokens, "print the tokens as they are decoded");
  return fields;
}

// --- For programs ---

Json EntriesJson(const std::vector<Thought::Entry>& entries) {
  Json list = Json::array();
  for (const auto& entry : entries) list.push_back({entry.position, entry.value});
  return list;
}

// The move as UCI where it follows the rules from the root, else the token's name.
std::string MoveText(const Board* before, const ThoughtNode& node) {
  if (before != nullptr && node.move) return chess::ToText(*before, *node.move);
  return std::string(decoder::TokenName(node.token));
}

Json NodeJson(const Board* before, const ThoughtNode& node) {
  const auto written = decoder::BoardOf(node.board);
  Json json = {{"move", MoveText(before, node)},
               {"legal", node.move.has_value()},
               {"probability", node.probability}};
  json["wl"] = node.value ? Json(node.value->wl) : Json();
  json["d"] = node.value ? Json(node.value->d) : Json();
  json["fen"] = written ? Json(chess::ToFen(*written)) : Json();
  json["board_true"] = node.board_true;
  return json;
}

Json VariationJson(const Board& root, const Variation& variation) {
  Json nodes = Json::array();
  const Board* before = &root;
  for (const ThoughtNode& node : variation.nodes) {
    nodes.push_back(NodeJson(before, node));
    before = node.after ? &*node.after : nullptr;
  }
  return {{"nodes", std::move(nodes)}, {"ended", variation.ended}};
}

std::string_view NameOf(ThoughtEnd end) {
  switch (end) {
    case ThoughtEnd::kFinished:
      return "finished";
    case ThoughtEnd::kNoRoom:
      return "no_room";
    default:
      return "cancelled";
  }
}

double Rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

Json Answer(const Thought& thought) {
  Json variations = Json::array();
  for (const auto& variation : thought.variations) {
    variations.push_back(VariationJson(thought.root, variation));
  }
  Json answer = {{"fen", chess::ToFen(thought.root)},
                 {"token_ids", thought.tokens},
                 {"block_ids", thought.blocks},
                 {"wl_entries", EntriesJson(thought.wl_entries)},
                 {"d_entries", EntriesJson(thought.d_entries)},
                 {"variations", std::move(variations)},
                 {"end", NameOf(thought.end)}};
  const auto& final_move = thought.final_move;
  answer["final_move"] = final_move ? Json(TextOf(thought.root, *final_move)) : Json();
  answer["final_move_legal"] = final_move ? Json(final_move->move.has_value()) : Json();
  if (thought.final_value) {
    const decoder::Wdl wdl = decoder::WdlOf(*thought.final_value);
    answer["final_value"] = {{"wl", thought.final_value->wl},
                             {"d", thought.final_value->d},
                             {"win", wdl.win},
                             {"draw", wdl.draw},
                             {"loss", wdl.loss}};
  }
  if (!thought.instinct.empty()) {
    answer["instinct"] = {{"move", TextOf(thought.root, thought.instinct.front())},
                          {"probability", thought.instinct.front().probability}};
  }
  answer["move"] = thought.move ? Json(chess::ToText(thought.root, *thought.move)) : Json();
  answer["by_instinct"] = thought.by_instinct;
  const decoder::ThoughtStats& stats = thought.stats;
  answer["timings"] = {{"seconds", stats.seconds},
                       {"first_seconds", stats.first_seconds},
                       {"tokens_per_second", Rate(stats.written_tokens, stats.seconds)},
                       {"passes", stats.passes},
                       {"rows", stats.rows},
                       {"drafted_tokens", stats.drafted_tokens},
                       {"accepted_tokens", stats.accepted_tokens}};
  return answer;
}

// --- For people: the thought as it grows ---

class Teller {
 public:
  Teller(const DecoderThinkOptions& options, const Context& context, const Board& root)
      : options_(options), context_(context), root_(root) {}

  decoder::ThoughtListener Listener() {
    decoder::ThoughtListener listener;
    if (options_.tokens) {
      listener.on_token = [](decoder::TokenId token, int position) { TellToken(token, position); };
    }
    listener.on_value = [this](const Thought& thought) { TellNode(thought); };
    listener.on_board = [this](const Thought& thought) { TellBoard(thought); };
    return listener;
  }

  void TellEnd(const Thought& thought) const;

 private:
  static void TellToken(decoder::TokenId token, int position) {
    const bool opens =
        token == decoder::kStartPos || token == decoder::kStartThink || decoder::IsMove(token);
    fmt::print("{}{}",
               opens && position > 0 ? "\n"
               : position > 0        ? " "
                                     : "",
               decoder::TokenName(token));
    if (token == decoder::kEndVar || token == decoder::kEndThink) fmt::print("\n");
    std::fflush(stdout);
  }

  // The position before the last node by the rules; nullptr where the line has left them.
  const Board* Before(const Variation& variation) const {
    if (variation.nodes.size() == 1) return &root_;
    const ThoughtNode& before = variation.nodes[variation.nodes.size() - 2];
    return before.after ? &*before.after : nullptr;
  }

  void TellNode(const Thought& thought) const {
    if (options_.tokens) fmt::print("\n");
    const Variation& variation = thought.variations.back();
    const ThoughtNode& node = variation.nodes.back();
    const size_t ply = variation.nodes.size() - 1;
    const Board* before = Before(variation);
    std::string move(decoder::TokenName(node.token));
    if (before != nullptr && node.move) {
      move = chess::ToSan(*before, *node.move);
    } else {
      move += "?";  // Against the rules.
    }
    const std::string before_move =
        ply == 0 ? fmt::format("{:2} ", thought.variations.size()) : std::string(3 + 2 * ply, ' ');
    fmt::print("{:26} {:>5.1f}%   {}\n", before_move + move, 100 * node.probability,
               WdlText(decoder::RootView(*node.value, ply)));
    std::fflush(stdout);
  }

  void TellBoard(const Thought& thought) const {
    const ThoughtNode& node = thought.variations.back().nodes.back();
    if (options_.tokens) fmt::print("\n");
    if (!options_.boards) return;
    const auto written = decoder::BoardOf(node.board);
    if (!written) {
      fmt::print("     malformed board: {}\n", written.reason());
      return;
    }
    chess::DiagramStyle style = {.color = context_.color, .last_move = node.move};
    fmt::print("{}{}\n", chess::Diagram(*written, style),
               node.board_true ? "" : "     differs from the board after the move\n");
  }

  static std::string WdlText(decoder::NodeValue value) {
    const decoder::Wdl wdl = decoder::WdlOf(value);
    return fmt::format("W {:3.0f}  D {:3.0f}  L {:3.0f}", 100 * wdl.win, 100 * wdl.draw,
                       100 * wdl.loss);
  }

  const DecoderThinkOptions& options_;
  const Context& context_;
  const Board root_;
};

void Teller::TellEnd(const Thought& thought) const {
  if (options_.tokens) fmt::print("\n");
  if (!thought.instinct.empty()) {
    const decoder::Candidate& first = thought.instinct.front();
    fmt::print("by instinct {} ({:.1f}%)\n",
               first.move ? chess::ToSan(root_, *first.move) : TextOf(root_, first) + "?",
               100 * first.probability);
  }
  if (!thought.move) {
    fmt::print("no legal move\n");
  } else {
    fmt::print("plays {} ({})", chess::ToSan(root_, *thought.move),
               chess::ToText(root_, *thought.move));
    if (thought.final_value) fmt::print("   {}", WdlText(*thought.final_value));
    fmt::print("\n");
  }
  if (thought.by_instinct && thought.move) {
    fmt::print(
        "   the sequence reached {} tokens without a final move; this is the policy head's move\n"
        "   without thinking\n",
        thought.tokens.size());
  } else if (thought.move && !thought.final_move->move) {
    fmt::print("   the network chose {}, which is not legal; this is its most likely legal move\n",
               TextOf(root_, *thought.final_move));
  }
  const decoder::ThoughtStats& stats = thought.stats;
  fmt::print(
      "   {} tokens in {:.2f} s, {:.0f} tokens/s, {} passes; the rules drafted {} board tokens, "
      "{} held\n",
      stats.written_tokens, stats.seconds, Rate(stats.written_tokens, stats.seconds), stats.passes,
      stats.drafted_tokens, stats.accepted_tokens);
}

// The positions of --fens, several at once.
int ThinkAboutFile(decoder::Player& player, const DecoderThinkOptions& options) {
  return AnswerInAnyOrder(
      options.position, [&](const NextBoard& next_board, const Answered& answered) {
        std::vector<size_t> numbers;  // In the file, of the thoughts in their order.
        const auto next = [&]() -> std::optional<decoder::ThinkTask> {
          const auto found = next_board();
          if (!found) return std::nullopt;
          numbers.push_back(found->number);
          decoder::ThinkTask task = {.root = found->board, .options = options.think};
          task.options.seed += found->number;
          return task;
        };
        player.ThinkEach(
            next,
            [&](size_t i, const Thought& thought) {
              if (thought.end != ThoughtEnd::kCancelled) answered(numbers[i], Answer(thought));
            },
            options.think.stop);
      });
}

int Run(const DecoderThinkOptions& given, const Context& context) {
  DecoderThinkOptions options = given;
  const auto player = decoder::Player::Load(options.network);
  const StopOnInterrupt interrupt;
  options.think.draft = !options.no_draft;
  options.think.stop = interrupt.token();
  if (!options.position.fens.empty()) {
    return ThinkAboutFile(*player, options);
  }
  const Board board = BoardOf(options.position);
  if (context.json) {
    const Thought thought = player->Think(board, options.think);
    ThrowIfInterrupted();
    PrintJson(Answer(thought));
    return 0;
  }
  if (options.boards) {
    fmt::print("{}\n", chess::Diagram(board, {.color = context.color, .last_move = {}}));
  }
  if (!options.tokens) fmt::print("   {:23} {:>6}   for the side to move\n", "move", "chosen");
  Teller teller(options, context, board);
  const decoder::ThoughtListener listener = teller.Listener();
  const Thought thought = player->Think(board, options.think, listener);
  ThrowIfInterrupted();
  teller.TellEnd(thought);
  return 0;
}

}  // namespace

Command DecoderThink() {
  return MakeCommand<DecoderThinkOptions>(
      {.name = "decoder think",
       .group = "Decoder",
       .summary = "think about a position: variations with values, then the move",
       .details =
           "The network decodes its variations as tokens: each move with win, draw and "
           "loss, and the\n"
           "board after it. A move marked ? is not legal. The rules draft the boards and "
           "the network\n"
           "verifies each draft in one pass: the tokens are the same as without drafts. If "
           "the sequence\n"
           "reaches its max length first, the policy head picks the move without thinking.\n"
           "--fens thinks about several positions at once: the same answers, more tokens per "
           "second.\n"
           "They come in the order of the file; after a stop, --skip continues behind them.",
       .example =
           "kibitz decoder think --model tests/golden/decoder/tiny.pt --max-variations 3 --boards"},
      Run);
}

}  // namespace kibitz::cli
