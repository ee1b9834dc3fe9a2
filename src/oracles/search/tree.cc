#include "oracles/search/tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "games/chess/movegen.h"
#include "games/chess/rules.h"

namespace kibitz::oracles {
namespace {

using chess::Board;
using chess::Move;
using chess::MoveList;

// A draw from the gamma distribution (Marsaglia and Tsang, 2000).
double Gamma(Rng& rng, double alpha) {
  if (alpha < 1) return Gamma(rng, alpha + 1) * std::pow(1 - rng.Uniform(), 1 / alpha);
  const double d = alpha - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = rng.Normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - rng.Uniform();
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

GamePath PathOf(const GameSoFar& game) {
  GamePath path(game.start);
  for (Move move : game.moves) path.Push(path.last().After(move));
  return path;
}

}  // namespace

Wdl WdlFrom(double wl, double draw) {
  return {.win = std::max(0.0, (1 - draw + wl) / 2),
          .draw = std::clamp(draw, 0.0, 1.0),
          .loss = std::max(0.0, (1 - draw - wl) / 2)};
}

SearchTree::SearchTree(const GameSoFar& game, const TreeOptions& options)
    : options_(options), path_(PathOf(game)), root_size_(path_.size()) {
  CHECK(options_.leaves > 0);
  over_ = !chess::HasLegalMove(path_.last());
  nodes_.emplace_back();
}

bool SearchTree::decided() const {
  if (over_) return true;
  Node root = nodes_[kRoot];
  return options_.certainty && root.edges > 0 && DecideNode(root);
}

double SearchTree::Exploration(const Node& node) const {
  const double growth = std::log((node.visits + options_.cpuct_base) / options_.cpuct_base);
  const double c = options_.cpuct + options_.cpuct_factor * growth;
  return c * std::sqrt(std::max(1.0, node.visits - 1.0));
}

double SearchTree::FirstPlayUrgency(const Node& node) const {
  double visited = 0;
  for (const Edge& edge : EdgesOf(node).first(node.children)) {
    if (nodes_[edge.child].visits > 0) visited += edge.prior;
  }
  return node.Q() - options_.fpu_reduction * std::sqrt(visited);
}

SearchTree::NodeId SearchTree::SelectChild(NodeId id) {
  const Node& node = nodes_[id];
  const std::span<Edge> edges = EdgesOf(node);
  const double exploration = Exploration(node);
  const double urgency = FirstPlayUrgency(node);
  double best_score = -std::numeric_limits<double>::infinity();
  size_t best = 0;
  for (size_t i = 0; i < node.children; ++i) {
    const Node& child = nodes_[edges[i].child];
    const double q = child.visits > 0 ? -child.Q() : urgency;
    const double score = q + exploration * edges[i].prior / (1.0 + child.visits + child.waiting);
    if (score > best_score) {
      best_score = score;
      best = i;
    }
  }
  // Of the moves without a child only the one with the highest prior can be selected.
  if (node.children < node.edges) {
    const size_t next = node.children;
    if (urgency + exploration * edges[next].prior > best_score) best = next;
  }
  if (best == node.children) {
    edges[best].child = static_cast<NodeId>(nodes_.size());
    ++nodes_[id].children;
    nodes_.emplace_back();  // From here on `node` is not valid.
  }
  path_.Push(path_.last().After(edges[best].move));
  return edges[best].child;
}

bool SearchTree::EndByRules(Node& node, const MoveList& moves) const {
  const Board& board = path_.last();
  node.end = End::kRules;
  if (moves.empty()) {
    node.value = board.InCheck() ? -1.0F : 0.0F;
    return true;
  }
  if (chess::IsInsufficientMaterial(board) || board.halfmove_clock() >= 100) return true;
  const int repetitions = path_.repetitions().back();
  if (repetitions >= 2) return true;
  if (options_.two_fold_draws && repetitions == 1) {
    const auto tree = path_.boards().subspan(root_size_ - 1, path_.size() - root_size_);
    node.end = End::kTwoFold;
    const auto same = [&](const Board& earlier) { return earlier.key() == board.key(); };
    if (std::ranges::any_of(tree, same)) return true;
  }
  node.end = End::kNone;
  return false;
}

bool SearchTree::Descend(std::vector<Question>& leaves) {
  std::vector<NodeId> line = {kRoot};
  while (nodes_[line.back()].edges > 0 && nodes_[line.back()].end == End::kNone) {
    line.push_back(SelectChild(line.back()));
  }
  Node& leaf = nodes_[line.back()];
  bool found = true;
  if (leaf.waiting > 0) {
    for (NodeId id : line) ++nodes_[id].waiting;
    collisions_.push_back(std::move(line));
    found = false;
  } else if (leaf.end != End::kNone) {
    AddVisit(line, leaf.value, leaf.value == 0 ? 1 : 0);
  } else {
    const MoveList moves = chess::LegalMoves(path_.last());
    if (line.size() > 1 && EndByRules(leaf, moves)) {
      AddVisit(line, leaf.value, leaf.value == 0 ? 1 : 0);
      if (options_.certainty && leaf.end == End::kRules) Decide(line);
    } else {
      for (NodeId id : line) ++nodes_[id].waiting;
      leaves.emplace_back(path_, moves);
      leaves_.push_back({std::move(line), {moves.begin(), moves.end()}});
    }
  }
  path_.CutTo(root_size_);
  return found;
}

void SearchTree::Gather(int64_t visits, std::vector<Question>& leaves) {
  CHECK(leaves_.empty());
  if (over_) return;
  const int64_t wanted = std::min<int64_t>(options_.leaves, visits - this->visits());
  int64_t found = 0;
  for (int64_t tries = 0; found < wanted && tries < 2 * wanted; ++tries) {
    if (Descend(leaves)) ++found;
  }
  for (const std::vector<NodeId>& line : collisions_) {
    for (NodeId id : line) --nodes_[id].waiting;
  }
  collisions_.clear();
}

void SearchTree::BackUp(std::span<const Evaluation> evaluations) {
  CHECK(evaluations.size() == leaves_.size());
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& leaf = leaves_[i];
    for (NodeId id : leaf.line) --nodes_[id].waiting;
    Expand(nodes_[leaf.line.back()], leaf, evaluations[i]);
    AddVisit(leaf.line, evaluations[i].q, evaluations[i].draw);
    if (leaf.line.size() == 1) AddNoise(nodes_[kRoot]);
  }
  leaves_.clear();
}

void SearchTree::Expand(Node& node, const Leaf& leaf, const Evaluation& evaluation) {
  CHECK(evaluation.priors.size() == leaf.moves.size());
  node.value = evaluation.q;
  node.first_edge = static_cast<uint32_t>(edges_.size());
  node.edges = static_cast<uint16_t>(leaf.moves.size());
  for (size_t i = 0; i < leaf.moves.size(); ++i) {
    edges_.push_back({.move = leaf.moves[i], .prior = evaluation.priors[i]});
  }
  std::ranges::stable_sort(EdgesOf(node), std::ranges::greater{}, &Edge::prior);
}

void SearchTree::AddNoise(Node& root) {
  if (options_.noise <= 0) return;
  const uint64_t position = path_.last().key();
  Rng rng({.seed = options_.seed, .sample = position, .purpose = Purpose("mcts noise")});
  const std::span<Edge> edges = EdgesOf(root);
  std::vector<double> draws(edges.size());
  for (double& draw : draws) draw = Gamma(rng, options_.noise_alpha);
  const double sum = std::accumulate(draws.begin(), draws.end(), 0.0);
  if (sum <= 0) return;
  for (size_t i = 0; i < edges.size(); ++i) {
    edges[i].prior =
        static_cast<float>((1 - options_.noise) * edges[i].prior + options_.noise * draws[i] / sum);
  }
  std::ranges::stable_sort(edges.subspan(root.children), std::ranges::greater{}, &Edge::prior);
}

void SearchTree::AddVisit(std::span<const NodeId> line, double wl, double draw) {
  for (size_t i = line.size(); i-- > 0; wl = -wl) {
    Node& node = nodes_[line[i]];
    ++node.visits;
    node.wl += wl;
    node.draw += draw;
  }
}

// The last node of the line is proven: proves the nodes above it where possible. Their visits then
// count with the proven value, for the nodes above as well.
void SearchTree::Decide(std::span<const NodeId> line) {
  for (size_t i = line.size() - 1; i-- > 1;) {
    Node& node = nodes_[line[i]];
    if (!DecideNode(node)) return;
    double wl = static_cast<double>(node.value) * node.visits - node.wl;
    const double draw = (node.value == 0 ? node.visits : 0.0) - node.draw;
    for (size_t above = i + 1; above-- > 0; wl = -wl) {
      nodes_[line[above]].wl += wl;
      nodes_[line[above]].draw += draw;
    }
  }
}

bool SearchTree::DecideNode(Node& node) const {
  const auto edges = EdgesOf(node).first(node.children);
  float best = -1;
  int to_win = std::numeric_limits<int16_t>::max();
  int to_loss = 0;
  bool all = node.children == node.edges;
  for (const Edge& edge : edges) {
    const Node& child = nodes_[edge.child];
    const bool certain = child.end == End::kRules || child.end == End::kCertain;
    all = all && certain;
    if (!certain) continue;
    best = std::max(best, -child.value);
    if (child.value < 0) to_win = std::min(to_win, child.plies + 1);
    to_loss = std::max(to_loss, child.plies + 1);
  }
  if (best < 1 && !all) return false;
  node.end = End::kCertain;
  node.value = best;
  node.plies = static_cast<int16_t>(best > 0 ? to_win : best < 0 ? to_loss : 0);
  return true;
}

void SearchTree::Play(Move move) {
  CHECK(leaves_.empty());
  CHECK(chess::IsLegal(path_.last(), move));
  path_.Push(path_.last().After(move));
  root_size_ = path_.size();
  over_ = !chess::HasLegalMove(path_.last());
  const Node& root = nodes_[kRoot];
  const auto edges = EdgesOf(root).first(root.children);
  const auto played = std::ranges::find(edges, move, &Edge::move);
  SearchTree next = std::move(*this);
  *this = SearchTree(next.path_, next.options_);
  over_ = next.over_;
  if (played == edges.end() || over_) {
    nodes_.emplace_back();
    return;
  }
  CopyFrom(next, played->child);
  nodes_[kRoot].end = End::kNone;  // The root is searched even if it is proven.
  if (nodes_[kRoot].edges == 0) nodes_[kRoot] = Node();
  if (nodes_[kRoot].edges > 0) AddNoise(nodes_[kRoot]);
}

SearchTree::SearchTree(GamePath path, const TreeOptions& options)
    : options_(options), path_(std::move(path)), root_size_(path_.size()) {}

SearchTree::NodeId SearchTree::CopyFrom(const SearchTree& other, NodeId id) {
  const auto copy = static_cast<NodeId>(nodes_.size());
  Node node = other.nodes_[id];
  if (node.end == End::kTwoFold) node.end = End::kNone;
  const auto edges = other.EdgesOf(node);
  node.first_edge = static_cast<uint32_t>(edges_.size());
  edges_.insert(edges_.end(), edges.begin(), edges.end());
  nodes_.push_back(node);
  for (size_t i = 0; i < node.children; ++i) {
    const NodeId child = CopyFrom(other, edges[i].child);
    edges_[node.first_edge + i].child = child;
  }
  return copy;
}

// Edges with a child, the best first.
std::vector<size_t> SearchTree::Ranked(const Node& node) const {
  const auto edges = EdgesOf(node);
  // Wins before all others, the quickest first, losses behind them, the slowest first.
  const auto certainty = [&](const Node& child) {
    const bool certain = child.end == End::kRules || child.end == End::kCertain;
    if (!options_.certainty || !certain || child.value == 0) return 0.0;
    return child.value < 0 ? 2.0 - child.plies / 1e5 : -2.0 + child.plies / 1e5;
  };
  const auto rank = [&](size_t i) {
    const Node& child = nodes_[edges[i].child];
    const double q = child.visits > 0 ? -child.Q() : -2.0;
    return std::tuple(certainty(child), child.visits, q, edges[i].prior);
  };
  std::vector<size_t> order(node.children);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, rank);
  return order;
}

RootMove SearchTree::ReportMove(const Edge& edge, const Node& root) const {
  RootMove report{.move = edge.move, .prior = edge.prior};
  report.q = root.visits > 0 ? FirstPlayUrgency(root) : 0;
  const double exploration = Exploration(root) * edge.prior;
  report.exploration = exploration;
  if (edge.child == kNone || nodes_[edge.child].visits == 0) return report;
  const Node* child = &nodes_[edge.child];
  report.visits = child->visits;
  report.q = -child->Q();
  report.exploration = exploration / (1.0 + child->visits);
  report.value = -child->value;
  report.wdl = WdlFrom(child->wl / child->visits, child->draw / child->visits).Reversed();
  const bool certain = child->end == End::kRules || child->end == End::kCertain;
  if (certain && child->value != 0) {
    report.mate = {.wins = child->value < 0, .moves = (child->plies + 2) / 2};
  }
  for (Move move = edge.move;;) {
    report.line.push_back({.move = move,
                           .visits = child->visits,
                           .wdl = WdlFrom(child->wl / child->visits, child->draw / child->visits)});
    const std::vector<size_t> order = Ranked(*child);
    if (order.empty()) break;
    const Edge& next = EdgesOf(*child)[order.front()];
    if (nodes_[next.child].visits == 0) break;
    move = next.move;
    child = &nodes_[next.child];
  }
  return report;
}

SearchReport SearchTree::Report() const {
  SearchReport report;
  Node root = nodes_[kRoot];
  report.visits = root.visits;
  if (root.visits == 0) return report;
  report.q = root.Q();
  report.value = root.value;
  report.wdl = WdlFrom(report.q, root.draw / root.visits);
  const auto edges = EdgesOf(root);
  for (size_t i : Ranked(root)) report.moves.push_back(ReportMove(edges[i], root));
  for (const Edge& edge : edges.subspan(root.children)) {
    report.moves.push_back(ReportMove(edge, root));
  }
  if (!report.moves.empty()) report.depth = static_cast<int>(report.moves.front().line.size());
  if (options_.certainty && DecideNode(root) && root.value != 0) {
    report.mate = {.wins = root.value > 0, .moves = (root.plies + 1) / 2};
  }
  return report;
}

}  // namespace kibitz::oracles
