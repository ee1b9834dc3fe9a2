// The tree of a Monte Carlo tree search: PUCT with first-play urgency as lc0 defines them.
//
//   SearchTree tree(game, options);
//   std::vector<Question> leaves;
//   tree.Gather(800, leaves);         // The positions to evaluate next.
//   tree.BackUp(evaluations);         // An evaluator's answers to them.
//
// search.h drives it. A tree is a function of game, options and evaluations: nothing depends on
// threads or time. Values are for the side to move of the node they belong to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "oracles/engines/score.h"
#include "oracles/engines/uci_client.h"
#include "oracles/search/evaluator.h"

namespace kibitz::oracles {

struct TreeOptions {
  // U = c * prior * sqrt(visits of all moves) / (1 + visits), where c grows with the visits N of
  // the node: cpuct + cpuct_factor * ln((N + cpuct_base) / cpuct_base).
  double cpuct = 1.745;
  double cpuct_factor = 3.894;
  double cpuct_base = 38739;
  // The Q of a move without visits: its node's Q minus this times sqrt(sum of visited priors).
  double fpu_reduction = 0.33;
  // Leaves gathered for one batch, with virtual visits until their values arrive. 1: no virtual
  // visits.
  int leaves = 1;
  // A position that occurred before within the tree is a draw already at the second occurrence.
  bool two_fold_draws = true;
  // Proven mates and draws propagate to all nodes that they decide.
  bool certainty = true;
  // For self-play: the weight of Dirichlet noise in the root's priors.
  double noise = 0;
  double noise_alpha = 0.3;  // Of the Dirichlet distribution; small: concentrated on few moves.
  uint64_t seed = 0;
};

// A position on a line: the one that `move` leads to.
struct LineNode {
  chess::Move move;
  int64_t visits = 0;
  Wdl wdl;  // For the side to move after the move.
};

// A root move in the report; all values for the side to move at the root.
struct RootMove {
  chess::Move move;
  int64_t visits = 0;
  double prior = 0;
  double q = 0;                     // Win minus loss; first-play urgency without visits.
  double exploration = 0;           // U at the end.
  std::optional<float> value = {};  // The evaluator's value of the position after the move.
  std::optional<Wdl> wdl = {};      // With visits only.
  std::optional<Mate> mate = {};    // Where proven.
  std::vector<LineNode> line = {};  // Starts with the move itself; empty without visits.
};

struct SearchReport {
  std::vector<RootMove> moves;  // Best first: proven wins, visits, Q, prior; proven losses last.
  int64_t visits = 0;           // Of the root, itself included.
  Wdl wdl;
  double q = 0;
  double value = 0;  // The evaluator's value of the root.
  std::optional<Mate> mate;
  int depth = 0;  // Of the best line.
};

class SearchTree {
 public:
  SearchTree(const GameSoFar& game, const TreeOptions& options);

  const chess::Board& root() const { return path_.last(); }
  // The game has no moves left, or is drawn by the rules: there is nothing to search.
  bool over() const { return over_; }
  int64_t visits() const { return nodes_.empty() ? 0 : nodes_[kRoot].visits; }
  size_t nodes() const { return nodes_.size(); }
  // More visits cannot change the best move: the root is proven, or has one move.
  bool decided() const;

  // Appends leaves to evaluate: at most options.leaves, and no more than the root needs to reach
  // `visits`. Leaves that the rules decide are backed up at once, so there may be none.
  void Gather(int64_t visits, std::vector<Question>& leaves);
  // Their evaluations, in the same order.
  void BackUp(std::span<const Evaluation> evaluations);

  // Makes the position after the move the root, keeping its subtree.
  void Play(chess::Move move);

  SearchReport Report() const;

 private:
  // Without any node yet.
  SearchTree(GamePath path, const TreeOptions& options);

  using NodeId = uint32_t;
  static constexpr NodeId kNone = ~NodeId{0};
  static constexpr NodeId kRoot = 0;

  enum class End : uint8_t {
    kNone,
    kRules,    // Mate, stalemate, or a draw by the rules.
    kCertain,  // Decided by the nodes below.
    kTwoFold,  // Holds while the first occurrence is in the tree.
  };

  struct Edge {
    chess::Move move;
    float prior = 0;
    NodeId child = kNone;
  };

  struct Node {
    double wl = 0;    // Win minus loss, summed over visits.
    double draw = 0;  // The probability of a draw, summed likewise.
    uint32_t visits = 0;
    uint32_t waiting = 0;  // Visits whose value has not arrived (virtual visits).
    uint32_t first_edge = 0;
    uint16_t edges = 0;     // Those with a child first, then by descending prior.
    uint16_t children = 0;  // The first edges, which have a child.
    float value = 0;        // The evaluator's value.
    int16_t plies = 0;      // To mate, where proven.
    End end = End::kNone;

    double Q() const { return wl / visits; }
  };

  struct Leaf {
    std::vector<NodeId> line;  // From the root to the leaf.
    std::vector<chess::Move> moves;
  };

  // One descent. False when it reached a leaf that already waits for its value.
  bool Descend(std::vector<Question>& leaves);
  NodeId SelectChild(NodeId id);
  // Whether the game is over at the last position of path_; if so, sets the value of `node`.
  bool EndByRules(Node& node, const chess::MoveList& moves) const;
  void Expand(Node& node, const Leaf& leaf, const Evaluation& evaluation);
  void AddNoise(Node& root);
  // Adds a visit to all nodes of a line; the value is for its last node.
  void AddVisit(std::span<const NodeId> line, double wl, double draw);
  void Decide(std::span<const NodeId> line);
  bool DecideNode(Node& node) const;
  double Exploration(const Node& node) const;
  double FirstPlayUrgency(const Node& node) const;
  NodeId CopyFrom(const SearchTree& other, NodeId id);
  RootMove ReportMove(const Edge& edge, const Node& root) const;
  std::vector<size_t> Ranked(const Node& node) const;

  std::span<Edge> EdgesOf(const Node& node) {
    return {edges_.data() + node.first_edge, node.edges};
  }
  std::span<const Edge> EdgesOf(const Node& node) const {
    return {edges_.data() + node.first_edge, node.edges};
  }

  TreeOptions options_;
  GamePath path_;  // To the root; longer during a descent.
  bool over_ = false;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<Leaf> leaves_;                     // Waiting for their evaluation.
  std::vector<std::vector<NodeId>> collisions_;  // Lines that met a waiting leaf.
  size_t root_size_;                             // Of path_ to the root.
};

// Win, draw and loss probabilities from win minus loss and the draw probability.
Wdl WdlFrom(double wl, double draw);

}  // namespace kibitz::oracles
