// Positions, moves and values as the interface writes them. Values are from White's point of view,
// whoever is to move; this file converts them.
//
//   Json json = WdlJson(*answer.wdl, board.side_to_move());   // {"win": 0.5, "draw": ..., ...}
#pragma once

#include <string>

#include "games/chess/board.h"
#include "games/chess/pgn.h"
#include "oracles/engines/score.h"
#include "oracles/engines/uci_client.h"
#include "serve/jobs.h"

namespace kibitz::serve {

// A game as requests give it: {"start": FEN, "moves": ["e2e4", ...]}, moves in UCI or SAN, or
// {"text": ...} with a FEN, a PGN or a list of moves. Throws Error::Usage that says what is wrong.
chess::PgnGame GameIn(const Json& body);
oracles::GameSoFar SoFar(const chess::PgnGame& game);

// The current position with what a board on a screen needs: FEN, legal moves, check, ending; and
// the moves that led to it.
Json GameJson(const chess::PgnGame& game);

// {"uci": "e1g1", "san": "O-O"}
Json MoveJson(const chess::Board& board, chess::Move move);

// `wdl` is for the side `mover`; the JSON is White's.
Json WdlJson(const oracles::Wdl& wdl, chess::Color mover);

// 64 letters from a1 to h8, '.' for an empty square.
std::string Letters(const chess::Board& board);

}  // namespace kibitz::serve
