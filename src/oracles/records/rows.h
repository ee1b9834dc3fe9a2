// Training records as JSON, unit by unit as parts hold them, and the checks that every unit passes
// before it is written: they read the texts back and trust nothing.
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

// A position of a game, what was played and what should have been.
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
  // In order. Where one is missing a new game begins as far as readers are concerned: "id#ply".
  std::vector<PlyRecord> plies;
};

// Each throws Error when what it has made is not sound.
Json GameUnit(const GameRecord& game);
Json SearchUnit(const chess::Board& root, const Lesson& lesson);
// `sessions`: what was found about the position, one after the other; none of them is missing.
Json EvalUnit(const chess::Board& position, std::span<const Lesson> sessions);

// Why a unit is not sound; "" when it is. Every move is legal in its position, every position is
// the result of the move before it, and chances sum to 1.
std::string FaultOfGame(const Json& unit);
std::string FaultOfSearch(const Json& unit);
std::string FaultOfEval(const Json& unit);

}  // namespace kibitz::oracles
