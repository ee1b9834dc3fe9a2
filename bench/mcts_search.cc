#include "bench/mcts_search.h"

#include <algorithm>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "games/chess/movegen.h"
#include "oracles/engines/uci_client.h"
#include "oracles/lc0/network.h"
#include "oracles/search/search.h"

namespace kibitz::bench {
namespace {

using oracles::GameSoFar;
using oracles::Lc0Network;
using oracles::SearchReport;

constexpr int kThreads = 2;
// lc0 0.32.1 (blas) with this network on two threads of a 2.8 GHz Ice Lake machine, as the data
// folder's README records it.
constexpr double kLc0NodesPerSecond = 2021;
constexpr double kManyTrees = 3500;  // Evaluations a second that the project promises.

// Games of random moves, long enough to be all different.
std::vector<GameSoFar> RandomGames(int count) {
  std::vector<GameSoFar> games;
  for (int i = 0; i < count; ++i) {
    Rng rng({.seed = 11, .sample = static_cast<uint64_t>(i), .purpose = Purpose("bench games")});
    GameSoFar game;
    chess::Board board;
    for (int ply = 0; ply < 12; ++ply) {
      const chess::MoveList moves = chess::LegalMoves(board);
      if (moves.empty()) break;
      game.moves.push_back(moves[rng.Below(moves.size())]);
      board = board.After(game.moves.back());
    }
    games.push_back(game);
  }
  return games;
}

uint64_t SignatureOf(const std::vector<SearchReport>& reports) {
  Signature signature;
  for (const SearchReport& report : reports) {
    for (const oracles::RootMove& move : report.moves) {
      signature.Add(move.move.bits());
      signature.Add(static_cast<uint64_t>(move.visits));
    }
  }
  return signature.value();
}

// Rates of some rounds; signatures of all they found.
struct Searches {
  std::vector<double> rates;
  std::vector<SearchReport> reports;
};

// One tree, as a player would search it.
void SearchOneTree(Lc0Network& network, const GameSoFar& game, int64_t visits, Searches& searches) {
  oracles::SearchTree tree(game, {.leaves = oracles::LeavesFor(visits, network.batch())});
  const Timer timer;
  Search(network, tree, {.visits = visits});
  searches.rates.push_back(static_cast<double>(tree.visits()) / timer.Seconds());
  searches.reports.push_back(tree.Report());
}

// As the generators of records search: many positions, few leaves of each.
void SearchManyTrees(Lc0Network& network, const std::vector<GameSoFar>& games, Searches& searches) {
  constexpr int64_t kVisits = 200;
  const Timer timer;
  const auto reports = SearchMany(network, games, {.leaves = 4}, {.visits = kVisits});
  const double seconds = timer.Seconds();
  int64_t visited = 0;
  for (const SearchReport& report : reports) {
    visited += report.visits;
    searches.reports.push_back(report);
  }
  searches.rates.push_back(static_cast<double>(visited) / seconds);
}

// The same tree by lc0 with one of its backends, on as many threads.
class Lc0Race {
 public:
  Lc0Race(const std::string& program, const std::string& network, const std::string& backend)
      : engine_({.command = {program},
                 .options = {{"WeightsFile", network},
                             {"Backend", backend},
                             {"Threads", std::to_string(kThreads)},
                             // Else it stops before it has searched all nodes.
                             {"SmartPruningFactor", "0"}}}),
        name_(engine_.name() + " " + backend) {
    engine_.Ask({}, {.nodes = 100});  // Loads the network.
  }

  const std::string& name() const { return name_; }
  const std::vector<double>& rates() const { return rates_; }

  void Search(const GameSoFar& game, int64_t nodes) {
    engine_.NewGame();
    engine_.Ping();
    const Timer timer;
    const oracles::Answer answer = engine_.Ask(game, {.nodes = nodes});
    rates_.push_back(static_cast<double>(answer.nodes) / timer.Seconds());
  }

 private:
  oracles::UciClient engine_;
  std::string name_;
  std::vector<double> rates_;
};

// One race for each CPU backend that this lc0 was built with; none without a program.
std::list<Lc0Race> Races(const std::string& program, const std::string& network) {
  std::list<Lc0Race> races;
  if (program.empty()) return races;
  const oracles::UciClient engine({.command = {program}});
  const oracles::UciOption* built = engine.FindOption("Backend");
  if (built == nullptr) throw Error(program + " has no option Backend; --lc0 expects an lc0");
  for (const std::string backend : {"blas", "onednn"}) {
    if (std::ranges::find(built->choices, backend) != built->choices.end()) {
      races.emplace_back(program, network, backend);
    }
  }
  if (races.empty()) throw Error(program + " has neither of the backends blas and onednn");
  return races;
}

void ReportOneTree(Bench& bench, const Searches& searches, const std::list<Lc0Race>& races) {
  Result result = {.name = "search, one tree, maia-1500, 2 threads",
                   .value = Median(searches.rates),
                   .unit = "nodes/s",
                   .yardstick = kLc0NodesPerSecond,
                   .yardstick_name = "lc0 0.32.1 blas, as recorded",
                   .signature = SignatureOf(searches.reports),
                   .promised_ratio = 2.0};
  if (races.empty()) bench.Report(result);
  for (const Lc0Race& race : races) {
    result.yardstick = Median(race.rates());
    result.yardstick_name = race.name() + " now";
    bench.Report(result);
  }
}

}  // namespace

void ReportSearches(Bench& bench) {
  const std::string path = DataFolder() + "/maia/maia-1500.pb.gz";
  if (!std::filesystem::exists(path)) {
    bench.Say("no search: " + path + " is not there; set KIBITZ_DATA to the folder of data");
    return;
  }
  Lc0Network network({.network = {.path = path, .threads = kThreads}});
  const int rounds = bench.quick() ? 3 : 9;
  const int64_t visits = bench.quick() ? 4000 : 10000;
  const auto games = RandomGames(32);
  Searches one;
  Searches many;
  std::list<Lc0Race> races = Races(bench.PathOf("lc0"), path);
  // In turns: what disturbs one disturbs the other.
  for (int round = 0; round < rounds; ++round) {
    for (Lc0Race& race : races) race.Search(games[static_cast<size_t>(round)], visits);
    SearchOneTree(network, games[static_cast<size_t>(round)], visits, one);
    SearchManyTrees(network, games, many);
  }
  ReportOneTree(bench, one, races);
  bench.Report({.name = "search, many trees, maia-1500, 2 threads",
                .value = Median(many.rates),
                .unit = "evaluations/s",
                .yardstick = kManyTrees,
                .yardstick_name = "asked for",
                .signature = SignatureOf(many.reports),
                .promised_ratio = 1.0});
}

}  // namespace kibitz::bench
