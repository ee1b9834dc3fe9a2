#include "students/decoder/play/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "students/decoder/data/net_config.h"
#include "students/decoder/data/sight.h"
#include "students/decoder/data/vocabulary.h"
#include "students/decoder/data/weights_file.h"

namespace kibitz::decoder {
namespace {

using io::OnnxGraph;
using io::OnnxType;

constexpr float kNormEpsilon = 1e-6F;

class BoardExport {
 public:
  BoardExport(const io::StateDict& weights, const NetConfig& config, OnnxGraph& graph)
      : weights_(weights), config_(config), graph_(graph) {}

  std::string Run() {
    const int64_t d = config_.embed_dim;
    AddRotary();
    std::string x = graph_.Node(
        "Gather", {graph_.Add("tok_embedding.weight",
                              weights_.Floats("tok_embedding.weight", {config_.vocab_size, d}),
                              {config_.vocab_size, d}),
                   "tokens"});
    if (config_.board_places) {
      // The root has no move before it, so only the places count.
      std::vector<float> rows = weights_.Floats("place_embedding.weight", {kPlaceRows, d});
      rows.resize(static_cast<size_t>(kBoardTokens * d));
      const std::string places = graph_.Add("place_embedding.weight", rows, {kBoardTokens, d});
      x = graph_.Node("Add", {x, places});
    }
    if (config_.square_sight) x = graph_.Node("Add", {x, Sights()});
    if (config_.square_attacks) x = graph_.Node("Add", {x, Attacks()});
    for (int i = 0; i < config_.num_layers; ++i) {
      const std::string layer = fmt::format("layers.{}.", i);
      x = graph_.Node("Add", {x, Attention(Norm(x, layer + "sa_norm"), layer + "attn.")});
      x = graph_.Node("Add", {x, Mlp(Norm(x, layer + "mlp_norm"), layer + "mlp.")});
    }
    return Policy(Norm(x, "norm"));
  }

 private:
  std::string Matrix(const std::string& x, const std::string& name, int64_t outputs,
                     int64_t inputs) {
    return graph_.Linear(x, name, weights_.Floats(name + ".weight", {outputs, inputs}),
                         {outputs, inputs}, {});
  }
  std::string Norm(const std::string& x, const std::string& name) {
    const int64_t d = config_.embed_dim;
    return graph_.RmsNorm(x,
                          graph_.Add(name + ".scale", weights_.Floats(name + ".scale", {d}), {d}),
                          kNormEpsilon, {-1});
  }

  // What the squares see: (batch, 68, d). A token's code is the number of its piece from 1 on, 0
  // for empty; the edge of the board has one too, so that lines end there.
  std::string Sights() {
    constexpr int64_t kCodes = kSightPieces + 2;
    constexpr int64_t kEdge = kSightPieces + 1;
    constexpr int64_t kLineSlots = int64_t{kSightLines} * kSightDistances;
    const int64_t d = config_.embed_dim;
    const std::vector<float> rows = weights_.Floats("sight_embedding.weight", {kSightRows, d});
    std::vector<float> table(static_cast<size_t>(kSightSlots * kCodes * d));  // 0 but for pieces.
    for (int64_t row = 0; row < kSightRows; ++row) {
      const int64_t to = row / kSightPieces * kCodes + row % kSightPieces + 1;
      std::copy_n(rows.begin() + row * d, d, table.begin() + to * d);
    }
    const std::string sight =
        graph_.Add("sight_embedding.weight", table, {kSightSlots * kCodes, d});
    std::vector<int64_t> codes(static_cast<size_t>(config_.vocab_size));
    for (TokenId token = kWhiteKing; token <= kBlackPawn; ++token)
      codes[token] = SightPiece(token) + 1;
    codes[kStartPos] = kEdge;
    const std::string code_of = graph_.AddInts("sight.codes", codes);
    // The codes at some slots of all squares, and where the slots' parts of the table begin.
    const auto slots = [&](int64_t begin, int64_t end, const std::vector<int64_t>& shape) {
      std::vector<int64_t> tokens;
      for (int square = 0; square < 64; ++square) {
        for (int64_t slot = begin; slot < end; ++slot) {
          tokens.push_back(SightSquare(square, static_cast<int>(slot)) + 1);  // start_pos: edge.
        }
      }
      const std::string at = graph_.AddInts(fmt::format("sight.tokens.{}", begin), tokens);
      const std::string seen = graph_.Node("Gather", {"tokens", at}, {{"axis", int64_t{1}}});
      return graph_.Reshape(graph_.Node("Gather", {code_of, seen}), shape);
    };
    const auto looked_up = [&](const std::string& seen, int64_t begin, int64_t end) {
      std::vector<int64_t> begins;
      for (int64_t slot = begin; slot < end; ++slot) begins.push_back(slot * kCodes);
      const std::string name = graph_.AddInts(fmt::format("sight.begins.{}", begin), begins);
      const std::string numbers =
          graph_.Node("Add", {graph_.Reshape(seen, {-1, 64, end - begin}), name});
      return graph_.Node("ReduceSum",
                         {graph_.Node("Gather", {sight, numbers}),
                          graph_.AddInts(fmt::format("sight.axis.{}", begin), {2})},
                         {{"keepdims", int64_t{0}}});  // (batch, 64, d)
    };
    const std::string one = graph_.AddInts("sight.one", {1});
    const std::string lines = slots(0, kLineSlots, {-1, 64, kSightLines, kSightDistances});
    const std::string before =
        graph_.Node("CumSum", {graph_.Node("Min", {lines, one}), graph_.AddInts("sight.last", {3})},
                    {{"exclusive", int64_t{1}}});
    const std::string open = graph_.Node("Sub", {one, graph_.Node("Min", {before, one})});
    const std::string on_lines = looked_up(graph_.Node("Mul", {lines, open}), 0, kLineSlots);
    const std::string by_jumps =
        looked_up(slots(kLineSlots, kSightSlots, {-1, 64, kSightJumps}), kLineSlots, kSightSlots);
    return AtSquares(graph_.Node("Add", {on_lines, by_jumps}), "sight.places");
  }

  // The input says which planes hold a square.
  std::string Attacks() {
    const int64_t d = config_.embed_dim;
    const std::string rows =
        graph_.Add("attack_embedding.weight",
                   weights_.Floats("attack_embedding.weight", {kAttackRows, d}), {kAttackRows, d});
    return AtSquares(graph_.Node("MatMul", {"attacks", rows}), "attacks.places");
  }
  // From squares, (batch, 64, d), to tokens, (batch, 68, d).
  std::string AtSquares(const std::string& squares, const std::string& name) {
    std::vector<float> places(static_cast<size_t>(kBoardTokens * 64));
    for (size_t square = 0; square < 64; ++square) places[(square + 1) * 64 + square] = 1;
    return graph_.Node("MatMul", {graph_.Add(name, places, {kBoardTokens, 64}), squares});
  }

  // x cos + (x R) sin, where R sends the pair (a, b) to (-b, a).
  void AddRotary() {
    const auto e = static_cast<size_t>(config_.embed_dim / config_.num_heads);
    std::vector<float> cosine(kBoardTokens * e);
    std::vector<float> sine(kBoardTokens * e);
    std::vector<float> swap(e * e);
    for (size_t i = 0; i < e; ++i) {
      const double exponent = static_cast<double>(i / 2 * 2) / static_cast<double>(e);
      const auto frequency = static_cast<float>(1 / std::pow(10000.0, exponent));
      for (size_t at = 0; at < kBoardTokens; ++at) {
        const float angle = static_cast<float>(at) * frequency;
        cosine[at * e + i] = std::cos(angle);
        sine[at * e + i] = std::sin(angle);
      }
      const bool even = i % 2 == 0;
      swap[(even ? i + 1 : i - 1) * e + i] = even ? -1.0F : 1.0F;
    }
    const auto width = static_cast<int64_t>(e);
    graph_.Add("rotary.cosine", cosine, {kBoardTokens, width});
    graph_.Add("rotary.sine", sine, {kBoardTokens, width});
    graph_.Add("rotary.swap", swap, {width, width});
  }
  // x: (batch, heads, 68, e)
  std::string Rotated(const std::string& x) {
    const std::string turned =
        graph_.Node("Mul", {graph_.Node("MatMul", {x, "rotary.swap"}), "rotary.sine"});
    return graph_.Node("Add", {graph_.Node("Mul", {x, "rotary.cosine"}), turned});
  }
  std::string ByHead(const std::string& x) {
    const int64_t heads = config_.num_heads;
    return graph_.Node("Transpose",
                       {graph_.Reshape(x, {-1, kBoardTokens, heads, config_.embed_dim / heads})},
                       {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }
  // Within a board every token sees every other.
  std::string Attention(const std::string& x, const std::string& name) {
    const int64_t d = config_.embed_dim;
    const std::string q = Rotated(ByHead(Matrix(x, name + "q_proj", d, d)));
    const std::string k = Rotated(ByHead(Matrix(x, name + "k_proj", d, d)));
    const std::string v = ByHead(Matrix(x, name + "v_proj", d, d));
    const int64_t heads = config_.num_heads;
    const std::string joined =
        graph_.Attention(q, k, v, {.rows = kBoardTokens, .heads = heads, .head_width = d / heads});
    return Matrix(joined, name + "output_proj", d, d);
  }
  std::string Mlp(const std::string& x, const std::string& name) {
    const int64_t d = config_.embed_dim;
    const int64_t f = config_.d_ff;
    const std::string gate = graph_.Silu(Matrix(x, name + "w1", f, d));
    return Matrix(graph_.Node("Mul", {gate, Matrix(x, name + "w3", f, d)}), name + "w2", d, f);
  }

  // The head on the last token; with square_policy also on the squares of each move.
  std::string Policy(const std::string& hidden) {
    const int64_t d = config_.embed_dim;
    const int64_t moves = config_.move_vocab_size;
    const std::string last = graph_.Reshape(Some(hidden, "last", {kBoardTokens - 1}), {-1, d});
    const std::vector<float> weight = weights_.Floats("policy_head.weight", {moves, d});
    std::string logits = graph_.Linear(last, "policy_head", weight, {moves, d},
                                       weights_.Floats("policy_head.bias", {moves}));
    if (!config_.square_policy) return logits;
    std::vector<int64_t> cells;
    std::vector<float> of_move(static_cast<size_t>(64 * moves));  // 1 at the squares of each move.
    for (int64_t cell = 0; cell < 64; ++cell) cells.push_back(1 + cell);
    for (int64_t move = 0; move < moves; ++move) {
      const MoveSquares squares = SquaresOf(static_cast<TokenId>(move));
      of_move[static_cast<size_t>(squares.from.index() * moves + move)] += 1;
      of_move[static_cast<size_t>(squares.to.index() * moves + move)] += 1;
    }
    const std::string squares =
        graph_.Node("MatMul", {Some(hidden, "squares", cells), "policy_head.weight"});
    const std::string chosen =
        graph_.Node("Mul", {squares, graph_.Add("squares_of_moves", of_move, {64, moves})});
    return graph_.Node("Add",
                       {logits, graph_.Node("ReduceSum", {chosen, graph_.AddInts("axis", {1})},
                                            {{"keepdims", int64_t{0}}})});
  }
  // Hidden states of these tokens.
  std::string Some(const std::string& hidden, const std::string& name,
                   const std::vector<int64_t>& tokens) {
    return graph_.Node("Gather", {hidden, graph_.AddInts(name, tokens)}, {{"axis", int64_t{1}}});
  }

  const io::StateDict& weights_;
  const NetConfig& config_;
  OnnxGraph& graph_;
};

}  // namespace

OnnxGraph OnnxOf(const io::ModelFile& file) {
  const WeightsFile decoder = WeightsOf(file);
  OnnxGraph graph("decoder");
  graph.AddInput("tokens", OnnxType::kInt64, {-1, kBoardTokens});
  if (decoder.config.square_attacks) {
    graph.AddInput("attacks", OnnxType::kFloat, {-1, 64, kAttackRows});
  }
  const std::string logits = BoardExport(decoder.weights, decoder.config, graph).Run();
  graph.AddOutput("logits", logits, OnnxType::kFloat, {-1, decoder.config.move_vocab_size});
  NetConfig sizes = decoder.config;
  graph.AddMetadata("kind", "decoder");
  graph.AddMetadata("config", FieldsOf(sizes).ToTree().dump());
  std::string names;
  for (int i = 0; i < kVocabularySize; ++i) {
    names += fmt::format("{}{}", i > 0 ? " " : "", TokenName(static_cast<TokenId>(i)));
  }
  graph.AddMetadata("tokens", names);
  return graph;
}

}  // namespace kibitz::decoder
