#include "oracles/search/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"
#include "oracles/search/cached_evaluator.h"
#include "oracles/search/search.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::Move;

// Judges by chance, as a function of the position: enough to search with.
class ChanceEvaluator : public Evaluator {
 public:
  // `spread` of the logits; 0: every move is as likely.
  explicit ChanceEvaluator(double spread = 2) : spread_(spread) {}
  void Evaluate(std::span<const Question> questions, std::span<Evaluation> answers) override {
    for (size_t i = 0; i < questions.size(); ++i) {
      const Question& question = questions[i];
      Rng rng({.seed = question.board().key(), .purpose = Purpose("chance evaluator")});
      answers[i].draw = static_cast<float>(0.5 * rng.Uniform());
      answers[i].q = static_cast<float>((1 - answers[i].draw) * (2 * rng.Uniform() - 1));
      answers[i].priors.clear();
      for (size_t m = 0; m < question.moves().size(); ++m) {
        answers[i].priors.push_back(static_cast<float>(spread_ * rng.Normal()));
      }
      Softmax(answers[i].priors);
      ++asked;
    }
    ++calls;
  }
  int batch() const override { return 16; }
  std::string name() const override { return "chance"; }

  int64_t asked = 0;
  int64_t calls = 0;

 private:
  double spread_;
};

GameSoFar GameFrom(const std::string& fen, const std::vector<std::string>& words = {}) {
  GameSoFar game{.start = chess::ParseFen(fen).OrThrow("fen")};
  Board board = game.start;
  for (const std::string& word : words) {
    game.moves.push_back(chess::ParseMove(board, word).OrThrow("move"));
    board = board.After(game.moves.back());
  }
  return game;
}

SearchReport SearchFor(const GameSoFar& game, const TreeOptions& options, int64_t visits,
                       double spread = 2) {
  ChanceEvaluator evaluator(spread);
  SearchTree tree(game, options);
  Search(evaluator, tree, {.visits = visits});
  return tree.Report();
}

bool SameVisits(const SearchReport& a, const SearchReport& b) {
  if (a.moves.size() != b.moves.size() || a.visits != b.visits || a.q != b.q) return false;
  return std::ranges::equal(a.moves, b.moves, [](const RootMove& x, const RootMove& y) {
    return x.move == y.move && x.visits == y.visits && x.q == y.q;
  });
}

// The search as its definition reads: every move scored at every node, values averaged.
class PlainSearch {
 public:
  PlainSearch(Evaluator& evaluator, const Board& root, const TreeOptions& options)
      : evaluator_(evaluator), options_(options), path_(root) {}

  // For the side to move.
  std::pair<double, double> Visit(const std::string& line = "") {
    Node& node = nodes_[line];
    const chess::MoveList moves = chess::LegalMoves(path_.last());
    std::pair<double, double> value;
    const bool root = line.empty();
    if (moves.empty()) {
      value = path_.last().InCheck() ? std::pair(-1.0, 0.0) : std::pair(0.0, 1.0);
    } else if (!root && (chess::IsInsufficientMaterial(path_.last()) ||
                         path_.last().halfmove_clock() >= 100 || path_.repetitions().back() >= 2)) {
      value = {0, 1};
    } else if (node.visits == 0) {
      const Question question(path_, moves);
      evaluator_.Evaluate(std::span(&question, 1), std::span(&node.evaluation, 1));
      value = {node.evaluation.q, node.evaluation.draw};
    } else {
      const size_t best = Select(line, node, moves);
      path_.Push(path_.last().After(moves[best]));
      value = Visit(line + chess::ToText(path_.boards()[path_.size() - 2], moves[best]) + " ");
      path_.CutTo(path_.size() - 1);
      value.first = -value.first;
    }
    Node& same = nodes_[line];
    ++same.visits;
    same.wl += value.first;
    return value;
  }
  int64_t VisitsOf(const std::string& line) { return nodes_[line].visits; }

 private:
  struct Node {
    Evaluation evaluation;
    int64_t visits = 0;
    double wl = 0;
  };

  size_t Select(const std::string& line, const Node& node, const chess::MoveList& moves) {
    double visited = 0;
    std::vector<const Node*> children;
    for (size_t i = 0; i < moves.size(); ++i) {
      const auto child = nodes_.find(line + chess::ToText(path_.last(), moves[i]) + " ");
      children.push_back(child == nodes_.end() ? nullptr : &child->second);
      if (children.back() != nullptr) visited += node.evaluation.priors[i];
    }
    const double q = node.wl / static_cast<double>(node.visits);
    const double urgency = q - options_.fpu_reduction * std::sqrt(visited);
    const double c =
        options_.cpuct +
        options_.cpuct_factor * std::log((static_cast<double>(node.visits) + options_.cpuct_base) /
                                         options_.cpuct_base);
    size_t best = 0;
    double max = -1e9;
    for (size_t i = 0; i < moves.size(); ++i) {
      const double visits = children[i] ? static_cast<double>(children[i]->visits) : 0;
      const double value = children[i] ? -children[i]->wl / visits : urgency;
      const double score =
          value + c * node.evaluation.priors[i] *
                      std::sqrt(std::max(1.0, static_cast<double>(node.visits - 1))) / (1 + visits);
      if (score > max) max = score, best = i;
    }
    return best;
  }

  Evaluator& evaluator_;
  TreeOptions options_;
  GamePath path_;
  std::map<std::string, Node> nodes_;
};

TEST(SearchTreeTest, SearchesAsThePlainDefinition) {
  for (const std::string& fen :
       {std::string(chess::kStartFen), std::string("8/8/8/3k4/8/8/4R3/4K3 w - - 90 80"),
        std::string("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"),
        std::string("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1")}) {
    const TreeOptions options{.two_fold_draws = false, .certainty = false};
    ChanceEvaluator evaluator;
    PlainSearch plain(evaluator, *chess::ParseFen(fen), options);
    for (int i = 0; i < 500; ++i) plain.Visit();
    const SearchReport report = SearchFor(GameFrom(fen), options, 500);
    const Board root = *chess::ParseFen(fen);
    for (const RootMove& move : report.moves) {
      const std::string text = chess::ToText(root, move.move);
      EXPECT_EQ(move.visits, move.visits == 0 ? 0 : plain.VisitsOf(text + " ")) << fen << text;
    }
  }
}

TEST(SearchTreeTest, VisitsAddUp) {
  for (int leaves : {1, 3, 16}) {
    const SearchReport report = SearchFor({}, {.leaves = leaves}, 400);
    int64_t sum = 1;
    double prior = 0;
    for (const RootMove& move : report.moves) {
      sum += move.visits;
      prior += move.prior;
      if (move.visits > 0) {
        ASSERT_FALSE(move.line.empty());
        EXPECT_EQ(move.line.front().visits, move.visits);
        EXPECT_NEAR(move.wdl->win + move.wdl->draw + move.wdl->loss, 1, 1e-6);
        EXPECT_NEAR(move.wdl->win - move.wdl->loss, move.q, 1e-6);
      }
    }
    EXPECT_EQ(report.visits, 400);
    EXPECT_EQ(sum, 400);
    EXPECT_NEAR(prior, 1, 1e-5);
    EXPECT_EQ(report.moves.size(), 20U);
  }
}

TEST(SearchTreeTest, FindsMates) {
  const auto mate = SearchFor(GameFrom("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1"), {}, 200, 0);
  EXPECT_EQ(mate.moves.front().move, (Move{chess::Square(3), chess::Square(59)}));
  EXPECT_EQ(mate.mate, (Mate{true, 1}));
  EXPECT_EQ(mate.moves.front().mate, (Mate{true, 1}));
  EXPECT_LT(mate.visits, 200);  // Nothing is left to search.
  // Two rooks: mate in two at most, and certain.
  const auto two = SearchFor(GameFrom("7k/8/8/8/8/8/R7/1R2K3 w - - 0 1"), {.leaves = 4}, 20000, 0);
  ASSERT_TRUE(two.mate);
  EXPECT_TRUE(two.mate->wins);
  EXPECT_EQ(two.mate->moves, 2);
  // Mated in one, whatever Black does.
  const auto lost = SearchFor(GameFrom("7k/R7/8/8/8/8/8/1R2K3 b - - 0 1"), {}, 2000, 0);
  EXPECT_EQ(lost.mate, (Mate{false, 1}));
  EXPECT_DOUBLE_EQ(lost.moves.front().q, -1);
}

TEST(SearchTreeTest, KnowsDraws) {
  // King against king and bishop: every move leads to a dead draw.
  const auto dead =
      SearchFor(GameFrom("8/8/8/3k4/8/8/4B3/4K3 w - - 0 1"), {.certainty = false}, 50);
  for (const RootMove& move : dead.moves) {
    if (move.visits > 0) {
      EXPECT_DOUBLE_EQ(move.wdl->draw, 1);
    }
  }
  // The half-move clock runs out with the next move, unless it mates.
  const auto clock = SearchFor(GameFrom("6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 99 80"), {}, 100, 0);
  EXPECT_EQ(clock.mate, (Mate{true, 1}));
  // The third occurrence is one move away: Ng8 again.
  const std::vector<std::string> shuffle = {"g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1"};
  const auto third = SearchFor(GameFrom(std::string(chess::kStartFen), shuffle), {}, 400, 0);
  const auto back = std::ranges::find_if(third.moves, [](const RootMove& move) {
    return move.move == Move{*chess::Square::FromName("f6"), *chess::Square::FromName("g8")};
  });
  ASSERT_NE(back, third.moves.end());
  ASSERT_GT(back->visits, 0);
  EXPECT_DOUBLE_EQ(back->wdl->draw, 1);
}

TEST(SearchTreeTest, RepetitionsWithinTheTreeAreDraws) {
  // Only kings move: any line comes back to where it was.
  const std::string fen = "k7/p1p5/P1P5/8/8/p1p5/P1P5/K7 w - - 0 1";
  ChanceEvaluator once;
  SearchTree two_fold(GameFrom(fen), {});
  Search(once, two_fold, {.visits = 3000});
  ChanceEvaluator twice;
  SearchTree three_fold(GameFrom(fen), {.two_fold_draws = false});
  Search(twice, three_fold, {.visits = 3000});
  EXPECT_LT(once.asked, twice.asked);
}

TEST(SearchTreeTest, KeepsWhatItKnowsAfterAMove) {
  ChanceEvaluator evaluator(0.2);
  SearchTree tree({}, {.leaves = 2});
  Search(evaluator, tree, {.visits = 500});
  const RootMove best = tree.Report().moves.front();
  tree.Play(best.move);
  EXPECT_EQ(tree.visits(), best.visits);
  const SearchReport kept = tree.Report();
  EXPECT_NEAR(kept.q, -best.q, 1e-9);
  EXPECT_EQ(kept.moves.front().move, best.line.at(1).move);
  const int64_t before = evaluator.asked;
  Search(evaluator, tree, {.visits = 500});
  EXPECT_EQ(tree.visits(), 500);
  EXPECT_LE(evaluator.asked - before, 500 - best.visits);
  SearchTree unsearched({}, {});
  unsearched.Play(best.move);
  EXPECT_EQ(unsearched.visits(), 0);
  // A move that was never looked at, and one by one to the end of a short game.
  SearchTree game(GameFrom("7k/8/8/8/8/8/R7/1R2K3 w - - 0 1"), {});
  for (int ply = 0; ply < 12 && !game.over(); ++ply) {
    Search(evaluator, game, {.visits = 20000});
    game.Play(game.Report().moves.front().move);
  }
  EXPECT_TRUE(game.over());
}

TEST(SearchTreeTest, ManyGamesAreSearchedAsEachAlone) {
  std::vector<GameSoFar> games;
  Rng rng({.seed = 3, .purpose = Purpose("games")});
  for (int i = 0; i < 40; ++i) {
    GameSoFar game;
    Board board;
    for (int ply = 0; ply < i; ++ply) {
      const chess::MoveList moves = chess::LegalMoves(board);
      if (moves.empty()) break;
      game.moves.push_back(moves[rng.Below(moves.size())]);
      board = board.After(game.moves.back());
    }
    games.push_back(game);
  }
  games.push_back(GameFrom("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"));  // Stalemate.
  const TreeOptions options{.leaves = 4, .noise = 0.25, .seed = 7};
  ChanceEvaluator evaluator;
  const auto reports = SearchMany(evaluator, games, options, {.visits = 120});
  EXPECT_GE(evaluator.asked / evaluator.calls, 8);  // They share batches.
  for (size_t i = 0; i < games.size(); ++i) {
    EXPECT_TRUE(SameVisits(reports[i], SearchFor(games[i], options, 120))) << i;
  }
  EXPECT_TRUE(reports.back().moves.empty());
}

TEST(SearchTreeTest, NoiseIsSeeded) {
  const SearchReport one = SearchFor({}, {.noise = 0.25, .seed = 1}, 200);
  EXPECT_TRUE(SameVisits(one, SearchFor({}, {.noise = 0.25, .seed = 1}, 200)));
  EXPECT_FALSE(SameVisits(one, SearchFor({}, {.noise = 0.25, .seed = 2}, 200)));
  EXPECT_FALSE(SameVisits(one, SearchFor({}, {}, 200)));
  double sum = 0;
  for (const RootMove& move : one.moves) sum += move.prior;
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(SearchTreeTest, StopsWhenTold) {
  ChanceEvaluator evaluator;
  SearchTree tree({}, {});
  std::stop_source stop;
  Search(evaluator, tree, {.visits = 1000, .stop = stop.get_token()}, [&] {
    if (tree.visits() == 10) stop.request_stop();
  });
  EXPECT_EQ(tree.visits(), 10);
  Search(evaluator, tree, {.visits = 1 << 30, .seconds = 0.05});
  EXPECT_GT(tree.visits(), 10);
}

TEST(CachedEvaluatorTest, SameAnswersFewerQuestions) {
  ChanceEvaluator plain;
  SearchTree tree({}, {.leaves = 8});
  Search(plain, tree, {.visits = 2000});

  ChanceEvaluator asked;
  CachedEvaluator cached(asked, {.entries = 100000, .boards = 1});
  for (int round = 0; round < 2; ++round) {
    SearchTree again({}, {.leaves = 8});
    Search(cached, again, {.visits = 2000});
    EXPECT_TRUE(SameVisits(tree.Report(), again.Report()));
  }
  EXPECT_LT(asked.asked, plain.asked * 11 / 10);
  EXPECT_EQ(cached.asked() - cached.found(), asked.asked);
  // A small table forgets, and is still right.
  CachedEvaluator small(asked, {.entries = 7});
  SearchTree again({}, {.leaves = 8});
  Search(small, again, {.visits = 2000});
  EXPECT_TRUE(SameVisits(tree.Report(), again.Report()));
}

}  // namespace
}  // namespace kibitz::oracles
