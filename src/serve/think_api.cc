// POST think: a decoder's thought as it is written.
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/error.h"
#include "games/chess/fen.h"
#include "games/chess/san.h"
#include "serve/api.h"
#include "serve/chess_json.h"
#include "students/decoder/data/tokens.h"
#include "students/decoder/play/player.h"

namespace kibitz::serve {
namespace {

using chess::Board;
using chess::Color;
using decoder::Thought;
using decoder::ThoughtNode;
using decoder::TokenId;
using decoder::Variation;

struct ThinkRequest {
  std::string model;
  std::string precision;
  Board root;
  decoder::ThinkOptions options;
};

ThinkRequest ThinkRequestIn(const Json& body) {
  ThinkRequest request;
  request.model = TextIn(body, "model", "");
  if (request.model.empty()) throw Error::Usage("model: a decoder's id is missing");
  request.precision = TextIn(body, "precision", "f32");
  request.root = SoFar(GameIn(body)).Current();
  decoder::ThinkOptions& options = request.options;
  options.thinking_temperature = NumberIn(body, "thinking_temperature", 0, 0, 10);
  options.final_temperature = NumberIn(body, "final_temperature", 0, 0, 10);
  options.structure_temperature = NumberIn(body, "structure_temperature", 0, 0, 10);
  options.max_variations = IntIn(body, "max_variations", 0, 0, 64);
  options.max_depth = IntIn(body, "max_depth", 0, 0, 64);
  options.max_seq_len = IntIn(body, "max_seq_len", 0, 0, 1 << 16);
  options.legal_only = BoolIn(body, "legal", true);
  options.distinct = BoolIn(body, "distinct", true);
  options.seed = static_cast<uint64_t>(NumberIn(body, "seed", 0, 0, 9e15));
  options.root_value = true;
  return request;
}

Json CandidatesJson(const Board& root, const std::vector<decoder::Candidate>& candidates) {
  Json list = Json::array();
  for (const auto& candidate : candidates) {
    if (list.size() == 12) break;
    Json move = {{"uci", decoder::TextOf(root, candidate)}};
    if (candidate.move) move["san"] = chess::ToSan(root, *candidate.move);
    move["probability"] = candidate.probability;
    list.push_back(std::move(move));
  }
  return list;
}

// `value` is for the side `mover`.
Json ValueJson(decoder::NodeValue value, Color mover) {
  const decoder::Wdl wdl = decoder::WdlOf(value);
  return WdlJson({.win = wdl.win, .draw = wdl.draw, .loss = wdl.loss}, mover);
}

// What the network wrote on the 64 squares; '?' for a token that is no piece.
std::string WrittenLetters(const std::vector<TokenId>& board) {
  static constexpr std::string_view kPieces = "KQRBNPkqrbnp";
  std::string letters(64, '?');
  for (size_t i = 0; i < 64 && i + 1 < board.size(); ++i) {
    const TokenId token = board[i + 1];
    if (token == decoder::kEmpty) letters[i] = '.';
    if (token >= decoder::kWhiteKing && token <= decoder::kBlackPawn) {
      letters[i] = kPieces[token - decoder::kWhiteKing];
    }
  }
  return letters;
}

// A stream is never silent for longer while tokens are written.
constexpr std::chrono::milliseconds kSilence(100);

// Sends a thought's events. Tokens go along with the next event, or by themselves where that takes
// long.
class Teller {
 public:
  Teller(Job& job, const ThinkRequest& request) : job_(job), request_(request) {}

  decoder::ThoughtListener Listener() {
    return {.on_token = [this](TokenId token, int) { TellToken(token); },
            .on_root = [this](const Thought& thought) { TellRoot(thought); },
            .on_value = [this](const Thought& thought) { TellNode(thought); },
            .on_board = [this](const Thought& thought) { TellBoard(thought); },
            .on_variation_end =
                [this](const Thought& thought) {
                  Send("variation_end", {{"variation", thought.variations.size() - 1},
                                         {"ended", thought.variations.back().ended}});
                }};
  }

  void TellFinal(const Thought& thought);

 private:
  Color mover() const { return request_.root.side_to_move(); }

  void Send(std::string_view event, Json data) {
    data["tokens"] = tokens_;
    tokens_.clear();
    told_ = std::chrono::steady_clock::now();
    job_.Send(event, data);
  }

  void TellToken(TokenId token) {
    tokens_.push_back(token);
    if (std::chrono::steady_clock::now() - told_ >= kSilence) Send("tokens", Json::object());
  }

  void TellRoot(const Thought& thought) {
    Json data = {{"instinct", CandidatesJson(request_.root, thought.instinct)}};
    if (thought.instinct_value) data["wdl"] = ValueJson(*thought.instinct_value, mover());
    Send("root", std::move(data));
  }

  // By the rules before the last node; nullptr where the line has left them.
  const Board* Before(const Variation& variation) const {
    if (variation.nodes.size() == 1) return &request_.root;
    const ThoughtNode& before = variation.nodes[variation.nodes.size() - 2];
    return before.after ? &*before.after : nullptr;
  }

  void TellNode(const Thought& thought) {
    const Variation& variation = thought.variations.back();
    const ThoughtNode& node = variation.nodes.back();
    const Board* before = Before(variation);
    Json data = {{"variation", thought.variations.size() - 1},
                 {"ply", variation.nodes.size() - 1},
                 {"uci", decoder::TokenName(node.token)},
                 {"legal", node.move.has_value()},
                 {"probability", node.probability}};
    if (before != nullptr && node.move) data.update(MoveJson(*before, *node.move));
    if (node.value) {
      data["wdl"] = ValueJson(decoder::RootView(*node.value, variation.nodes.size() - 1), mover());
    }
    Send("node", std::move(data));
  }

  void TellBoard(const Thought& thought) {
    const Variation& variation = thought.variations.back();
    const ThoughtNode& node = variation.nodes.back();
    const std::string written = WrittenLetters(node.board);
    Json data = {{"variation", thought.variations.size() - 1},
                 {"ply", variation.nodes.size() - 1},
                 {"written", written}};
    if (node.after) {
      const std::string rules = Letters(*node.after);
      Json wrong = Json::array();
      for (size_t i = 0; i < 64; ++i) {
        if (rules[i] != written[i]) wrong.push_back(chess::Square(static_cast<int>(i)).Name());
      }
      data["rules"] = rules;
      data["wrong"] = std::move(wrong);
      data["fen"] = chess::ToFen(*node.after);
    }
    data["true"] = node.board_true;
    data["drafted"] = thought.stats.drafted_tokens - drafted_;
    data["kept"] = thought.stats.accepted_tokens - accepted_;
    drafted_ = thought.stats.drafted_tokens;
    accepted_ = thought.stats.accepted_tokens;
    Send("board", std::move(data));
  }

  Job& job_;
  const ThinkRequest& request_;
  std::vector<TokenId> tokens_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
  int drafted_ = 0;   // Tokens, up to the last board.
  int accepted_ = 0;  // Likewise.
};

std::string_view NameOf(decoder::ThoughtEnd end) {
  switch (end) {
    case decoder::ThoughtEnd::kFinished:
      return "finished";
    case decoder::ThoughtEnd::kNoRoom:
      return "no_room";
    default:
      return "stopped";
  }
}

void Teller::TellFinal(const Thought& thought) {
  Json data = {{"end", NameOf(thought.end)},
               {"move", thought.move ? MoveJson(request_.root, *thought.move) : Json()},
               {"by_instinct", thought.by_instinct}};
  if (thought.final_move) {
    data["written"] = decoder::TextOf(request_.root, *thought.final_move);
    data["written_legal"] = thought.final_move->move.has_value();
  }
  if (thought.final_value) data["wdl"] = ValueJson(*thought.final_value, mover());
  data["candidates"] = CandidatesJson(request_.root, thought.candidates);
  const decoder::ThoughtStats& stats = thought.stats;
  data["stats"] = {
      {"tokens", stats.written_tokens},
      {"seconds", stats.seconds},
      {"tokens_per_second", stats.seconds > 0 ? stats.written_tokens / stats.seconds : 0.0},
      {"passes", stats.passes},
      {"drafted", stats.drafted_tokens},
      {"accepted", stats.accepted_tokens}};
  Send("final", std::move(data));
}

Reply Think(Office& office, const Request& request, const std::string&) {
  const ThinkRequest think = ThinkRequestIn(BodyOf(request));
  office.desk.DecoderEntry(think.model);  // Says now, not in the stream, that there is none.
  const auto job =
      office.jobs.Start({.kind = "think", .title = think.model}, [&office, think](Job& self) {
        const auto seat = office.desk.Decoder(think.model, think.precision);
        self.Send("start", {{"model", think.model},
                            {"fen", chess::ToFen(think.root)},
                            {"max_seq_len", seat->config().max_seq_len}});
        decoder::ThinkOptions options = think.options;
        options.stop = self.stop();
        Teller teller(self, think);
        const decoder::ThoughtListener listener = teller.Listener();
        teller.TellFinal(seat->Think(think.root, options, listener));
      });
  if (!job) return {.response = ErrorResponse(503, "too many jobs wait", "try again later")};
  return office.jobs.Watch(job);
}

// The names of all tokens, for the strip of tokens.
Reply Tokens(Office&, const Request&, const std::string&) {
  Json names = Json::array();
  for (int token = 0; token < decoder::kVocabularySize; ++token) {
    names.push_back(decoder::TokenName(static_cast<TokenId>(token)));
  }
  return JsonReply({{"names", std::move(names)},
                    {"moves", decoder::kMoveVocabularySize},
                    {"board", decoder::kBoardTokens}});
}

}  // namespace

std::vector<Route> ThinkRoutes() { return {{"POST", "think", Think}, {"GET", "tokens", Tokens}}; }

}  // namespace kibitz::serve
