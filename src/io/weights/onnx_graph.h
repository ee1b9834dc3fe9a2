// Writes a network as an ONNX file: operators, weights, named inputs and outputs, metadata. The
// caller knows which operators its network consists of.
//
//   OnnxGraph graph("policy");
//   graph.AddInput("planes", OnnxType::kFloat, {-1, 13, 8, 8});
//   const std::string logits = graph.Linear("planes", "output", weight, {1968, 832}, bias);
//   graph.AddOutput("logits", logits, OnnxType::kFloat, {-1, 1968});
//   graph.Write("policy.onnx");
//
// Opset 17, ONNX 1.12: any onnxruntime since 1.12 reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kibitz::io {

enum class OnnxType { kFloat = 1, kInt64 = 7 };

using OnnxAttribute = std::variant<int64_t, float, std::vector<int64_t>>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxAttribute>>;

class OnnxGraph {
 public:
  explicit OnnxGraph(std::string name) : name_(std::move(name)) {}

  // -1 in a shape is the batch, of any size.
  void AddInput(const std::string& name, OnnxType type, const std::vector<int64_t>& shape);
  // `value` is what a node returned.
  void AddOutput(const std::string& name, const std::string& value, OnnxType type,
                 const std::vector<int64_t>& shape);
  void AddMetadata(const std::string& key, const std::string& value);

  // Weights; returns the name.
  std::string Add(const std::string& name, std::span<const float> values,
                  const std::vector<int64_t>& shape);
  std::string AddInts(const std::string& name, const std::vector<int64_t>& values);
  std::string AddNumber(float value);

  // An operator with one result; returns the result's name.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const OnnxAttributes& attributes = {});
  // x (..., inputs) by a weight (outputs, inputs) as PyTorch keeps it, plus a bias unless empty.
  std::string Linear(const std::string& x, const std::string& name, std::span<const float> weight,
                     const std::vector<int64_t>& shape, std::span<const float> bias);
  // x / sqrt(mean(x^2) + epsilon) * scale, over these axes.
  std::string RmsNorm(const std::string& x, const std::string& scale, float epsilon,
                      const std::vector<int64_t>& axes);
  // x sigmoid(x)
  std::string Silu(const std::string& x) { return Node("Mul", {x, Node("Sigmoid", {x})}); }
  // softmax(q k^T / sqrt(width of a head)) v, the heads side by side again: (batch, heads, rows,
  // head_width) each -> (batch, rows, heads * head_width).
  struct AttentionShape {
    int64_t rows = 0;
    int64_t heads = 0;
    int64_t head_width = 0;
  };
  std::string Attention(const std::string& q, const std::string& k, const std::string& v,
                        const AttentionShape& shape);
  std::string Reshape(const std::string& x, const std::vector<int64_t>& shape);

  // Throws Error, also for over 2 GB, which the format cannot hold.
  void Write(const std::string& path) const;

 private:
  std::string Fresh(const std::string& stem);

  std::string name_;
  std::string nodes_;  // Encoded, as the following.
  std::string initializers_;
  std::string inputs_;
  std::string outputs_;
  std::string metadata_;
  int count_ = 0;
};

}  // namespace kibitz::io
