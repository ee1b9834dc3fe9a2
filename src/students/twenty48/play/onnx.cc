#include "students/twenty48/play/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "students/twenty48/data/attention_free_layout.h"
#include "students/twenty48/data/net_config.h"
#include "students/twenty48/data/tuples.h"

namespace kibitz::twenty48 {
namespace {

using io::OnnxGraph;
using io::OnnxType;

constexpr int64_t kBoardCells = 16;

class EncoderExport {
 public:
  EncoderExport(const io::StateDict& weights, const NetConfig& config, OnnxGraph& graph)
      : weights_(weights), config_(config), graph_(graph) {}

  std::string RunTiles() {
    const int64_t d = config_.hidden_size;
    const std::string tokens = graph_.Add(
        "tok_emb.weight", weights_.Floats("tok_emb.weight", {config_.input_vocab_size, d}),
        {config_.input_vocab_size, d});
    std::vector<float> places =
        weights_.Floats("pos_emb.pos_emb.weight", {config_.max_position_embeddings, d});
    places.resize(static_cast<size_t>(kBoardCells * d));
    std::string x = graph_.Node("Add", {graph_.Node("Gather", {tokens, "board"}),
                                        graph_.Add("pos_emb.weight", places, {kBoardCells, d})});
    return graph_.Node("ReduceMean", {Norm(Layers(x, /*attention=*/true), "final_ln")},
                       {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  }

  std::string RunTuples() {
    const std::string seen = Seen();
    const std::string board = BoardRow(seen);
    if (!HasAttention(weights_)) return Norm(Layers(board, /*attention=*/false), "final_ln");
    const std::string rows = graph_.Node(
        "Concat", {graph_.Reshape(board, {-1, 1, config_.hidden_size}), TupleRows(seen)},
        {{"axis", int64_t{1}}});
    const std::string x = Layers(rows, /*attention=*/true);
    const std::string first =
        graph_.Node("Gather", {x, graph_.AddInts("first_row", {0})}, {{"axis", int64_t{1}}});
    return Norm(graph_.Reshape(first, {-1, config_.hidden_size}), "final_ln");
  }

 private:
  std::string Layers(std::string x, bool attention) {
    for (int i = 0; i < config_.num_hidden_layers; ++i) {
      const std::string block = fmt::format("blocks.{}.", i);
      if (attention) {
        x = graph_.Node("Add", {x, Attention(Norm(x, block + "attn_norm"), block + "attn.")});
      }
      x = graph_.Node("Add", {x, Mlp(Norm(x, block + "mlp_norm"), block + "mlp.")});
    }
    return x;
  }
  // The patterns' vectors, (batch, 17, E).
  std::string Seen() {
    constexpr int64_t k = kTupleRanks;
    std::vector<int64_t> cells;
    std::vector<int64_t> first;
    for (int64_t tuple = 0; tuple < kTuples; ++tuple) {
      for (const uint8_t cell : kTupleCells[static_cast<size_t>(tuple)]) cells.push_back(cell);
      first.push_back(tuple * kTupleEntries);
    }
    const std::string ranks = graph_.Node("Min", {"board", graph_.AddInts("max_rank", {k - 1})});
    const std::string by_tuple = graph_.Reshape(
        graph_.Node("Gather", {ranks, graph_.AddInts("cells", cells)}, {{"axis", int64_t{1}}}),
        {-1, kTuples, 4});
    const std::string places = graph_.AddInts("places", {k * k * k, k * k, k, 1});
    const std::string within = Sum(graph_.Node("Mul", {by_tuple, places}), 2);
    const std::string entries = graph_.Node("Add", {within, graph_.AddInts("first_entry", first)});
    const std::vector<int64_t> shape = {kTuples * kTupleEntries, config_.tuple_width};
    return graph_.Node("Gather", {Weight("tuples.weight", shape), entries});
  }
  std::string BoardRow(const std::string& seen) {
    const int64_t d = config_.hidden_size;
    std::vector<int64_t> first;
    for (int64_t cell = 0; cell < kBoardCells; ++cell) {
      first.push_back(cell * config_.input_vocab_size);
    }
    const std::string places = graph_.Node("Add", {"board", graph_.AddInts("first_tile", first)});
    const std::vector<int64_t> shape = {kBoardCells * config_.input_vocab_size, d};
    const std::string tiles = graph_.Node("Gather", {Weight("tiles.weight", shape), places});
    const int64_t inputs = int64_t{kTuples} * config_.tuple_width;
    return graph_.Node("Add", {Sum(tiles, 1), Matrix(graph_.Reshape(seen, {-1, inputs}),
                                                     "board_proj", d, inputs)});
  }
  // (batch, 15, D)
  std::string TupleRows(const std::string& seen) {
    const int64_t d = config_.hidden_size;
    constexpr int64_t own = kTupleRows - 1;
    const auto swapped = [&](const std::string& x) {
      return graph_.Node("Transpose", {x}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
    };
    const std::string terms = swapped(graph_.Node(
        "MatMul", {swapped(seen), Weight("tuple_proj", {kTuples, config_.tuple_width, d})}));
    std::vector<float> sums(static_cast<size_t>(own * kTuples));
    for (int tuple = 0; tuple < kTuples; ++tuple) {
      sums[static_cast<size_t>((RowOfTuple(tuple) - 1) * kTuples + tuple)] = 1;
    }
    const std::string rows =
        graph_.Node("MatMul", {graph_.Add("row_of_tuple", sums, {own, kTuples}), terms});
    return graph_.Node("Add", {rows, Weight("positions.weight", {own, d})});
  }
  std::string Weight(const std::string& name, const std::vector<int64_t>& shape) {
    return graph_.Add(name, weights_.Floats(name, shape), shape);
  }
  std::string Sum(const std::string& x, int64_t axis) {
    return graph_.Node("ReduceSum", {x, graph_.AddInts(fmt::format("axis_{}", axis), {axis})},
                       {{"keepdims", int64_t{0}}});
  }
  std::string Matrix(const std::string& x, const std::string& name, int64_t outputs,
                     int64_t inputs) {
    return graph_.Linear(x, name, weights_.Floats(name + ".weight", {outputs, inputs}),
                         {outputs, inputs}, {});
  }
  std::string Norm(const std::string& x, const std::string& name) {
    const int64_t d = config_.hidden_size;
    return graph_.RmsNorm(x,
                          graph_.Add(name + ".weight", weights_.Floats(name + ".weight", {d}), {d}),
                          static_cast<float>(config_.layer_norm_eps), {-1});
  }
  // (batch, 16, heads * e) -> (batch, heads, 16, e)
  std::string ByHead(const std::string& x, int64_t heads) {
    return graph_.Node("Transpose",
                       {graph_.Reshape(x, {-1, kBoardCells, heads, config_.head_width()})},
                       {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }
  // Head h reads the keys and values of h modulo their number.
  std::string Repeated(const std::string& x, const std::string& name) {
    const int64_t times = config_.num_attention_heads / config_.kv_heads();
    return times == 1 ? x
                      : graph_.Node("Tile", {x, graph_.AddInts(name + "times", {1, times, 1, 1})});
  }
  std::string Attention(const std::string& x, const std::string& name) {
    const int64_t d = config_.hidden_size;
    const int64_t kv = int64_t{config_.kv_heads()} * config_.head_width();
    const std::string q = ByHead(Matrix(x, name + "wq", d, d), config_.num_attention_heads);
    const std::string k =
        Repeated(ByHead(Matrix(x, name + "wk", kv, d), config_.kv_heads()), name + "k_");
    const std::string v =
        Repeated(ByHead(Matrix(x, name + "wv", kv, d), config_.kv_heads()), name + "v_");
    const std::string joined = graph_.Attention(q, k, v,
                                                {.rows = kBoardCells,
                                                 .heads = config_.num_attention_heads,
                                                 .head_width = config_.head_width()});
    return Matrix(joined, name + "wo", d, d);
  }
  std::string Mlp(const std::string& x, const std::string& name) {
    const int64_t d = config_.hidden_size;
    const int64_t f = config_.intermediate_size;
    const std::string gate = graph_.Silu(Matrix(x, name + "w_gate", f, d));
    return Matrix(graph_.Node("Mul", {gate, Matrix(x, name + "w_up", f, d)}), name + "w_down", d,
                  f);
  }

  const io::StateDict& weights_;
  const NetConfig& config_;
  OnnxGraph& graph_;
};

// The network without attention: a vector a tile, summed over the board, then an MLP. Its norms
// count the fixed squares of the encoder's row (attention_free_layout.h).
class AttentionFreeExport {
 public:
  AttentionFreeExport(const io::StateDict& weights, const NetConfig& config, OnnxGraph& graph)
      : weights_(weights), config_(config), graph_(graph), width_(AttentionFreeWidth(config)) {}

  // After the final norm: (batch, G).
  std::string Run() {
    const std::string rows = graph_.Node("Add", {"board", FirstRows()});
    const std::string table =
        graph_.Add("tiles", Tiles(), {kBoardCells * AttentionFreeLayout::kRanks, width_});
    const std::string tiles = graph_.Node("Gather", {table, rows});  // (batch, 16, G)
    std::string x = Matrix(graph_.Node("ReduceSum", {tiles, graph_.AddInts("cells_axis", {1})},
                                       {{"keepdims", int64_t{0}}}),
                           "mix", width_, width_);
    for (int i = 0; i + 1 < config_.num_hidden_layers; ++i) {
      const int64_t f = config_.intermediate_size;
      const std::string normed = Norm(x);
      const std::string gate = graph_.Silu(Matrix(normed, fmt::format("gates.{}", i), f, width_));
      const std::string up = Matrix(normed, fmt::format("ups.{}", i), f, width_);
      x = graph_.Node("Add", {x, Matrix(graph_.Node("Mul", {gate, up}), fmt::format("downs.{}", i),
                                        width_, f)});
    }
    return Norm(x);
  }

 private:
  std::string Matrix(const std::string& x, const std::string& name, int64_t outputs,
                     int64_t inputs) {
    return graph_.Linear(x, name, weights_.Floats(name + ".weight", {outputs, inputs}),
                         {outputs, inputs}, {});
  }
  // Where the rows of each cell begin in the table.
  std::string FirstRows() {
    std::vector<int64_t> first;
    for (int64_t cell = 0; cell < kBoardCells; ++cell)
      first.push_back(cell * AttentionFreeLayout::kRanks);
    return graph_.AddInts("first_rows", first);
  }
  // Rows of one length, normalized as the encoder would, and divided for the mean over the board.
  std::vector<float> Tiles() {
    std::vector<float> table = weights_.Floats(
        "table.weight", {AttentionFreeLayout::kCells * AttentionFreeLayout::kRanks, width_});
    const double norm = 1 / std::sqrt(AttentionFreeLayout::kFixedSquares / config_.hidden_size +
                                      config_.layer_norm_eps);
    const auto g = static_cast<size_t>(width_);
    for (size_t row = 0; row < table.size(); row += g) {
      double squares = 0;
      for (size_t i = row; i < row + g; ++i) squares += double{table[i]} * table[i];
      const double factor = AttentionFreeLayout::kLength / std::max(std::sqrt(squares), 1e-6) /
                            AttentionFreeLayout::kCells * norm;
      for (size_t i = row; i < row + g; ++i) table[i] = static_cast<float>(table[i] * factor);
    }
    return table;
  }
  std::string Norm(const std::string& x) {
    const std::string sum = graph_.Node(
        "ReduceSum",
        {graph_.Node("Mul", {x, x}), graph_.AddInts(fmt::format("norm_axis_{}", norms_++), {-1})},
        {{"keepdims", int64_t{1}}});
    const std::string whole = graph_.Node(
        "Add", {sum, graph_.AddNumber(static_cast<float>(AttentionFreeLayout::kFixedSquares))});
    const std::string mean =
        graph_.Node("Div", {whole, graph_.AddNumber(static_cast<float>(config_.hidden_size))});
    const std::string root = graph_.Node(
        "Sqrt",
        {graph_.Node("Add", {mean, graph_.AddNumber(static_cast<float>(config_.layer_norm_eps))})});
    return graph_.Node("Div", {x, root});
  }

  const io::StateDict& weights_;
  const NetConfig& config_;
  OnnxGraph& graph_;
  const int64_t width_;
  int norms_ = 0;
};

// The heads of both networks: their weights as one.
struct Heads {
  std::vector<float> weight;
  std::vector<float> bias;
};

Heads EncoderHeads(const io::StateDict& weights, const NetConfig& config) {
  const int64_t d = config.hidden_size;
  if (config.head_type == HeadType::kActionPolicy) {
    return {weights.Floats("policy_head.weight", {4, d}), weights.Floats("policy_head.bias", {4})};
  }
  Heads heads;
  for (int move = 0; move < 4; ++move) {
    const std::string head = fmt::format("ev_heads.{}.", move);
    const auto weight = weights.Floats(head + "weight", {config.bins(), d});
    heads.weight.insert(heads.weight.end(), weight.begin(), weight.end());
    const auto bias = weights.Floats(head + "bias", {config.bins()});
    heads.bias.insert(heads.bias.end(), bias.begin(), bias.end());
  }
  return heads;
}

}  // namespace

OnnxGraph OnnxOf(const io::ModelFile& file) {
  const io::StateDict& weights = file.weights;
  const NetConfig config = ConfigOf(file);
  const int64_t answers = config.head_type == HeadType::kActionPolicy ? 4 : 4 * config.bins();
  OnnxGraph graph("twenty48");
  graph.AddInput("board", OnnxType::kInt64, {-1, kBoardCells});
  std::string flat;
  if (IsAttentionFree(weights)) {
    CheckAttentionFree(config);
    const int64_t g = AttentionFreeWidth(config);
    flat = graph.Linear(AttentionFreeExport(weights, config, graph).Run(), "head",
                        weights.Floats("head.weight", {answers, g}), {answers, g},
                        weights.Floats("head.bias", {answers}));
  } else {
    const Heads heads = EncoderHeads(weights, config);
    EncoderExport network(weights, config, graph);
    flat = graph.Linear(IsTupleNet(weights) ? network.RunTuples() : network.RunTiles(), "heads",
                        heads.weight, {answers, config.hidden_size}, heads.bias);
  }
  if (config.head_type == HeadType::kActionPolicy) {
    graph.AddOutput("logits", flat, OnnxType::kFloat, {-1, 4});
  } else {
    graph.AddOutput("logits", graph.Reshape(flat, {-1, 4, config.bins()}), OnnxType::kFloat,
                    {-1, 4, config.bins()});
  }
  graph.AddMetadata("kind", "twenty48");
  graph.AddMetadata("config", ConfigTree(config, BinningOf(file)).dump());
  graph.AddMetadata("moves", "up down left right");
  return graph;
}

}  // namespace kibitz::twenty48
