// Training records as JSON, one unit a line as parts hold them, and the checks before a unit is
// written: they parse its text again.
//
// | kind   | unit                                                                       |
// |--------|----------------------------------------------------------------------------|
// | game   | {"result", "rows": [{"game_id", "ply", "fen", "played_move", ...}, ...]}   |
// | search | {"fen", "variations", "mcts_action", "win", "draw", "loss"}                |
// | eval   | {"fen", "evals": [{"pvs": [{"cp" or "mate", "line"}], "knodes", "depth"}]} |
//
// Columns are described in docs/FORMATS.md. Values of games and searches are for the side to move,
// those of evals for White.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oracles/records/teacher.h"

namespace kibitz::oracles {

using Json = nlohmann::ordered_json;

// A position of a game, the move played and the best move.
struct PlyRecord {
  int ply = 0;
  chess::Board board;
  chess::Move played;
  chess::Move best;
  std::optional<Wdl> wdl;  // Of the position, for the side to move.
  // The same after the move played, still for the side that played it.
  std::optional<Wdl> played_wdl;
};

struct GameRecord {
  std::string id;
  std::string result;  // "1-0", "0-1", "1/2-1/2", "*".
  // In order. Where one is missing, a new game "id#ply" begins.
  std::vector<PlyRecord> plies;
};

// Each throws Error when the unit it makes fails its check.
Json GameUnit(const GameRecord& game);
Json SearchUnit(const chess::Board& root, const Lesson& lesson);
// `sessions`: lessons of one position, in order; all have a value.
Json EvalUnit(const chess::Board& position, std::span<const Lesson> sessions);

// The fault of a unit, or "". Checks that every move is legal in its position, that every position
// results from the move before it, and that probabilities sum to 1.
std::string FaultOfGame(const Json& unit);
std::string FaultOfSearch(const Json& unit);
std::string FaultOfEval(const Json& unit);

}  // namespace kibitz::oracles
