#include "arena/book.h"

#include <algorithm>
#include <set>

#include "arena/named_openings.h"
#include "base/error.h"
#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/rules.h"
#include "oracles/search/negamax.h"

namespace kibitz::arena {
namespace {

using chess::Board;
using chess::Move;

constexpr int kSearchDepth = 3;                 // Of the search that keeps random moves sane.
constexpr int64_t kCandidatesPerPosition = 50;  // Then the options cannot be met.

// A named opening, cut or continued by random moves to the length wanted.
struct Candidate {
  oracles::GameSoFar game;
  const NamedOpening* opening = nullptr;
};

Candidate MakeCandidate(const BookOptions& options, uint64_t seed, int64_t number) {
  Rng rng({.seed = seed, .sample = static_cast<uint64_t>(number), .purpose = Purpose("book")});
  const auto openings = NamedOpenings();
  Candidate candidate;
  candidate.opening = &openings[rng.Below(openings.size())];
  candidate.game = GameOf(*candidate.opening);
  const size_t plies = static_cast<size_t>(options.plies) + rng.Below(3) - 1;
  if (candidate.game.moves.size() > plies) candidate.game.moves.resize(plies);
  while (candidate.game.moves.size() < plies) {
    const auto result = oracles::Negamax(candidate.game, {.depth = kSearchDepth});
    if (result.moves.empty()) break;
    size_t good = 0;
    while (good < result.moves.size() &&
           result.moves[good].score >= result.moves[0].score - options.spread) {
      ++good;
    }
    candidate.game.moves.push_back(result.moves[rng.Below(good)].move);
  }
  return candidate;
}

}  // namespace

Fields FieldsOf(BookOptions& options) {
  Fields fields;
  fields.Add("positions", options.positions, "positions in the book", {.min = 1, .max = 1e6});
  fields.Add("plies", options.plies, "moves to a position, one more or less",
             {.min = 2, .max = 60});
  fields.Add("max_cp", options.max_cp, "largest evaluation in centipawns, for either side",
             {.min = 0, .max = 10000});
  fields.Add("nodes", options.nodes, "nodes of the engine for a candidate", {.min = 1});
  fields.Add("spread", options.spread,
             "random moves are among those so many centipawns below the best of a shallow search",
             {.min = 0, .max = 1000});
  fields.Add("engine", options.engine, "that judges", {.metavar = "PLAYER"});
  return fields;
}

std::string Book::Epd() const {
  std::string text;
  for (const Position& position : positions) {
    const int mover = position.board.side_to_move() == chess::Color::kWhite ? position.centipawns
                                                                            : -position.centipawns;
    text += fmt::format("{} ce {}; id \"{}\";\n", chess::ToFen(position.board, {.counters = false}),
                        mover, position.opening);
  }
  return text;
}

Book MakeBook(const BookOptions& options, const RunOptions& run, Progress* progress) {
  const std::vector<Contender> judges = {{.name = options.engine}};
  BookOptions copy = options;
  const Json settings = {{"command", "arena openings"},
                         {"options", FieldsOf(copy).ToTree()},
                         {"engine", DescribeContenders(judges)},
                         {"seed", run.seed}};
  const auto journal = OpenJournal(run, settings, true);
  std::vector<PlayerTable> tables;
  for (int i = 0; i < run.threads(); ++i) tables.emplace_back(judges);
  const auto judge = [&](const Piece& piece) -> std::optional<Json> {
    const Candidate candidate = MakeCandidate(options, run.seed, piece.number);
    const Board board = candidate.game.Current();
    Json json = {{"fen", chess::ToFen(board)}, {"opening", candidate.opening->name}};
    if (chess::EndingOf(board) != chess::Ending::kNone || board.InCheck()) return json;
    players::Player& player = tables[static_cast<size_t>(piece.worker)].At(0);
    player.NewGame();
    const players::Answer answer = player.Play(
        {.game = {.start = board}, .limits = {.nodes = options.nodes}, .stop = piece.stop});
    if (piece.stop.stop_requested()) return std::nullopt;
    if (const auto centipawns = CentipawnsOf(answer)) {
      json["cp"] = board.side_to_move() == chess::Color::kWhite ? *centipawns : -*centipawns;
    }
    return json;
  };
  Book book;
  std::set<uint64_t> seen;
  const int64_t most = options.positions * kCandidatesPerPosition;
  DoInOrder(0, most,
            {.threads = run.threads(),
             .journal = journal.get(),
             .progress = progress,
             .ends_early = true},
            judge, [&](int64_t, const Json& json) {
              ++book.candidates;
              const Board board =
                  chess::ParseFen(json.at("fen").get<std::string>()).OrThrow("book");
              if (!json.contains("cp") || std::abs(json["cp"].get<int>()) > options.max_cp) {
                ++book.unbalanced;
              } else if (!seen.insert(board.key()).second) {
                ++book.repeated;
              } else {
                book.positions.push_back({board, json.at("opening"), json["cp"]});
              }
              if (progress != nullptr) {
                progress->SetNote(
                    fmt::format("{} of {} positions", book.positions.size(), options.positions));
              }
              return static_cast<int64_t>(book.positions.size()) < options.positions;
            });
  if (static_cast<int64_t>(book.positions.size()) < options.positions) {
    throw Error(
        "only {} of {} candidates are balanced and new; allow a larger --max-cp or --spread",
        book.positions.size(), book.candidates);
  }
  return book;
}

}  // namespace kibitz::arena
