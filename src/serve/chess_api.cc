// Positions and moves: POST position, POST pgn, POST move.
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "games/chess/move_text.h"
#include "games/chess/pgn_writer.h"
#include "games/chess/san.h"
#include "serve/api.h"
#include "serve/chess_json.h"

namespace kibitz::serve {
namespace {

using chess::Board;
using chess::Color;

Reply Position(Office&, const Request& request, const std::string&) {
  return JsonReply(GameJson(GameIn(BodyOf(request))));
}

Reply Pgn(Office&, const Request& request, const std::string&) {
  const Json body = BodyOf(request);
  chess::PgnGame game = GameIn(body);
  for (const char* key : {"Event", "White", "Black", "Date", "Result"}) {
    const std::string value = TextIn(body, key, "");
    if (!value.empty()) game.tags.emplace_back(key, value.substr(0, 200));
  }
  return JsonReply({{"pgn", chess::ToPgn(game)}});
}

Json PvJson(Board board, const std::vector<chess::Move>& pv) {
  Json list = Json::array();
  for (const chess::Move move : pv) {
    list.push_back(MoveJson(board, move));
    board = board.After(move);
  }
  return list;
}

Json LineJson(const Board& board, const players::Line& line) {
  const Color mover = board.side_to_move();
  const int sign = mover == Color::kWhite ? 1 : -1;
  Json json = {{"pv", PvJson(board, line.pv)}};
  if (line.wdl) json["wdl"] = WdlJson(*line.wdl, mover);
  if (line.mate) json["mate"] = sign * (line.mate->wins ? 1 : -1) * line.mate->moves;
  if (line.centipawns) json["cp"] = sign * *line.centipawns;
  return json;
}

Json AnswerJson(const Board& board, const players::Answer& answer) {
  Json json = {{"move", answer.move ? MoveJson(board, *answer.move) : Json()}};
  if (answer.wdl) json["wdl"] = WdlJson(*answer.wdl, board.side_to_move());
  Json moves = Json::array();
  for (const players::MoveInfo& info : answer.moves) {
    Json move = MoveJson(board, info.move);
    move["probability"] = info.probability;
    if (info.visits > 0) move["visits"] = info.visits;
    if (info.wdl) move["wdl"] = WdlJson(*info.wdl, board.side_to_move());
    moves.push_back(std::move(move));
  }
  Json lines = Json::array();
  for (const players::Line& line : answer.lines) lines.push_back(LineJson(board, line));
  json["moves"] = std::move(moves);
  json["lines"] = std::move(lines);
  json["nodes"] = answer.nodes;
  json["remarks"] = answer.remarks;
  return json;
}

// A stream: job, progress while a search goes on, answer, end.
Reply AskMove(Office& office, const Request& request, const std::string&) {
  const Json body = BodyOf(request);
  const std::string name = TextIn(body, "player", "");
  if (name.empty()) throw Error::Usage("player: a name is missing; GET /api/v1/players lists them");
  const AllowedPlayer player = office.desk.Allow(name);
  players::Request ask;
  ask.game = SoFar(GameIn(body));
  ask.lines = IntIn(body, "lines", 1, 1, 10);
  ask.seed = static_cast<uint64_t>(NumberIn(body, "seed", 0, 0, 9e15));
  const auto job =
      office.jobs.Start({.kind = "move", .title = name}, [&office, player, ask](Job& self) mutable {
        const Board board = ask.game.Current();
        const auto seat = office.desk.Player(player);
        ask.stop = self.stop();
        const players::Answer answer = seat->Play(ask, [&](const players::Answer& so_far) {
          self.Send("progress", AnswerJson(board, so_far));
        });
        Json json = AnswerJson(board, answer);
        json["player"] = seat->name();
        self.Send("answer", json);
      });
  if (!job) return {.response = ErrorResponse(503, "too many jobs wait", "try again later")};
  return office.jobs.Watch(job);
}

}  // namespace

std::vector<Route> ChessRoutes() {
  return {{"POST", "position", Position}, {"POST", "pgn", Pgn}, {"POST", "move", AskMove}};
}

}  // namespace kibitz::serve
