// 2048: what a model or the oracle would do, and the game itself. The server keeps no games: a
// request brings the board, and the tile that appears is a function of seed and move number.
#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "games/twenty48/slide.h"
#include "games/twenty48/spawn.h"
#include "oracles/twenty48/expectimax.h"
#include "oracles/twenty48/row_heuristic.h"
#include "oracles/twenty48/snake_heuristic.h"
#include "serve/api.h"

namespace kibitz::serve {
namespace {

using twenty48::Board;
using twenty48::Move;

Rng SpawnRng(uint64_t seed, uint64_t move) {
  return Rng({.seed = seed, .sample = move, .purpose = Purpose("2048 serve")});
}

struct GameIn {
  twenty48::Game game;
  uint64_t seed = 0;
};

GameIn ReadGame(const Json& body) {
  GameIn in;
  in.seed = static_cast<uint64_t>(NumberIn(body, "seed", 1, 0, 9e15));
  const auto board = body.find("board");
  if (board == body.end() || board->is_null()) {
    Rng rng = SpawnRng(in.seed, 0);
    in.game = twenty48::Game::Start(rng);
    return in;
  }
  std::vector<int> ranks;
  if (board->is_array() && board->size() == twenty48::kCells) {
    for (const Json& rank : *board)
      ranks.push_back(rank.is_number_integer() ? rank.get<int>() : -1);
  }
  const auto read = Board::FromRanks(ranks);
  if (!read) throw Error::Usage("board: {}", read.reason());
  in.game.board = *read;
  in.game.score = static_cast<int64_t>(NumberIn(body, "score", 0, 0, 1e12));
  in.game.moves = static_cast<int64_t>(NumberIn(body, "moves", 0, 0, 1e12));
  return in;
}

Json GameJson(const twenty48::Game& game, uint64_t seed) {
  const unsigned legal = twenty48::LegalMoves(game.board);
  Json moves = Json::array();
  for (const Move move : twenty48::kMoves) {
    if ((legal >> IndexOf(move) & 1) != 0) moves.push_back(NameOf(move));
  }
  return {{"board", game.board.Ranks()},
          {"score", game.score},
          {"moves", game.moves},
          {"seed", seed},
          {"max_tile", twenty48::TileOf(game.board.MaxRank())},
          {"legal", std::move(moves)},
          {"over", legal == 0}};
}

// Shares of the four moves, which sum to 1, and the best of them.
Json PreferenceJson(const std::array<std::optional<double>, 4>& scores, std::optional<Move> best,
                    bool values) {
  Json json = Json::object();
  for (const Move move : twenty48::kMoves) {
    const auto& score = scores[static_cast<size_t>(move)];
    json[std::string(NameOf(move))] = score ? Json(*score) : Json();
  }
  return {{"scores", std::move(json)},
          {"values", values},
          {"best", best ? Json(NameOf(*best)) : Json()}};
}

Json AskModel(Office& office, const std::string& id, const Board& board) {
  const auto seat = office.desk.Twenty48(id);
  const twenty48::Choice choice = seat->Choose({&board, 1})[0];
  std::array<std::optional<double>, 4> scores;
  for (size_t i = 0; i < 4; ++i) {
    if ((choice.legal >> i & 1) != 0) scores[i] = static_cast<double>(choice.scores[i]);
  }
  return PreferenceJson(scores, choice.legal != 0 ? std::optional(choice.best) : std::nullopt,
                        false);
}

Json AskOracle(const std::string& name, const Board& board) {
  std::unique_ptr<oracles::AfterstateValue> value;
  if (name == "heuristic") value = std::make_unique<oracles::RowHeuristic>();
  if (name == "snake") value = std::make_unique<oracles::SnakeHeuristic>();
  if (!value) throw Error::Usage("oracle {}: expected heuristic or snake", name);
  oracles::Expectimax search(*value, {.depth = 2, .table_bits = 12});
  const oracles::SearchResult result = search.Search(board);
  return PreferenceJson(result.values, result.best, true);
}

Json Ask(Office& office, const std::string& player, const Board& board) {
  if (player.starts_with("oracle:")) return AskOracle(player.substr(7), board);
  return AskModel(office, player, board);
}

// {"player": ID, "board": [...]}: the preferences. Without a board: a new game of the seed.
Reply Prefer(Office& office, const Request& request, const std::string&) {
  const Json body = BodyOf(request);
  const GameIn in = ReadGame(body);
  Json json = GameJson(in.game, in.seed);
  const std::string player = TextIn(body, "player", "");
  if (!player.empty()) json["preference"] = Ask(office, player, in.game.board);
  return JsonReply(json);
}

// The same with a move: {"move": "left"}, or the player's best where there is none.
Reply Step(Office& office, const Request& request, const std::string&) {
  const Json body = BodyOf(request);
  GameIn in = ReadGame(body);
  const std::string player = TextIn(body, "player", "");
  std::string move_name = TextIn(body, "move", "");
  if (move_name.empty()) {
    if (player.empty()) throw Error::Usage("give a move, or a player who chooses it");
    const Json preference = Ask(office, player, in.game.board);
    if (preference["best"].is_null()) throw Error::Usage("the game is over");
    move_name = preference["best"].get<std::string>();
  }
  const auto move = twenty48::ParseMove(move_name);
  if (!move) throw Error::Usage("move: {}", move.reason());
  if ((twenty48::LegalMoves(in.game.board) >> IndexOf(*move) & 1) == 0) {
    throw Error::Usage("move {}: nothing slides that way", move_name);
  }
  const twenty48::Slid slid = twenty48::Slide(in.game.board, *move);
  Rng rng = SpawnRng(in.seed, static_cast<uint64_t>(in.game.moves) + 1);
  in.game.Play(*move, rng);
  Json json = GameJson(in.game, in.seed);
  json["move"] = move_name;
  json["slid"] = slid.board.Ranks();
  if (!player.empty()) json["preference"] = Ask(office, player, in.game.board);
  return JsonReply(json);
}

}  // namespace

std::vector<Route> Twenty48Routes() {
  return {{"POST", "2048/prefer", Prefer}, {"POST", "2048/step", Step}};
}

}  // namespace kibitz::serve
