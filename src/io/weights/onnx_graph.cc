#include "io/weights/onnx_graph.h"

#include <fmt/format.h>
#include <cmath>

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "io/bytes/byte_sink.h"

namespace kibitz::io {
namespace {

constexpr uint64_t kMaxBytes = (uint64_t{1} << 31) - 1;
constexpr uint64_t kIrVersion = 8;
constexpr uint64_t kOpset = 17;

// --- The wire format of protocol buffers: a key (number and type), then the value ---

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void AppendNumber(std::string& out, uint32_t field, uint64_t value) {
  AppendVarint(out, uint64_t{field} << 3);
  AppendVarint(out, value);
}

void AppendFloat(std::string& out, uint32_t field, float value) {
  AppendVarint(out, uint64_t{field} << 3 | 5);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendBytes(std::string& out, uint32_t field, std::string_view bytes) {
  AppendVarint(out, uint64_t{field} << 3 | 2);
  AppendVarint(out, bytes.size());
  out += bytes;
}

// --- The messages of onnx.proto that we use; the numbers are its fields ---

std::string TensorMessage(const std::string& name, OnnxType type, const std::vector<int64_t>& shape,
                          std::string_view raw) {
  std::string tensor;
  for (const int64_t size : shape) AppendNumber(tensor, 1, static_cast<uint64_t>(size));
  AppendNumber(tensor, 2, static_cast<uint64_t>(type));
  AppendBytes(tensor, 8, name);
  AppendBytes(tensor, 9, raw);
  return tensor;
}

std::string ValueMessage(const std::string& name, OnnxType type,
                         const std::vector<int64_t>& shape) {
  std::string dimensions;
  for (const int64_t size : shape) {
    std::string dimension;
    if (size < 0) AppendBytes(dimension, 2, "batch");
    if (size >= 0) AppendNumber(dimension, 1, static_cast<uint64_t>(size));
    AppendBytes(dimensions, 1, dimension);
  }
  std::string tensor;
  AppendNumber(tensor, 1, static_cast<uint64_t>(type));
  AppendBytes(tensor, 2, dimensions);
  std::string kind;
  AppendBytes(kind, 1, tensor);
  std::string value;
  AppendBytes(value, 1, name);
  AppendBytes(value, 2, kind);
  return value;
}

std::string AttributeMessage(const std::string& name, const OnnxAttribute& attribute) {
  constexpr uint64_t kFloat = 1;
  constexpr uint64_t kInt = 2;
  constexpr uint64_t kInts = 7;
  std::string message;
  AppendBytes(message, 1, name);
  if (const auto* number = std::get_if<float>(&attribute)) {
    AppendFloat(message, 2, *number);
    AppendNumber(message, 20, kFloat);
  } else if (const auto* whole = std::get_if<int64_t>(&attribute)) {
    AppendNumber(message, 3, static_cast<uint64_t>(*whole));
    AppendNumber(message, 20, kInt);
  } else {
    for (const int64_t item : std::get<std::vector<int64_t>>(attribute)) {
      AppendNumber(message, 8, static_cast<uint64_t>(item));
    }
    AppendNumber(message, 20, kInts);
  }
  return message;
}

}  // namespace

std::string OnnxGraph::Fresh(const std::string& stem) {
  return fmt::format("{}_{}", stem, count_++);
}

void OnnxGraph::AddInput(const std::string& name, OnnxType type,
                         const std::vector<int64_t>& shape) {
  AppendBytes(inputs_, 11, ValueMessage(name, type, shape));
}

void OnnxGraph::AddOutput(const std::string& name, const std::string& value, OnnxType type,
                          const std::vector<int64_t>& shape) {
  std::string node;
  AppendBytes(node, 1, value);
  AppendBytes(node, 2, name);
  AppendBytes(node, 3, "output_" + name);
  AppendBytes(node, 4, "Identity");
  AppendBytes(nodes_, 1, node);
  AppendBytes(outputs_, 12, ValueMessage(name, type, shape));
}

void OnnxGraph::AddMetadata(const std::string& key, const std::string& value) {
  std::string entry;
  AppendBytes(entry, 1, key);
  AppendBytes(entry, 2, value);
  AppendBytes(metadata_, 14, entry);
}

std::string OnnxGraph::Add(const std::string& name, std::span<const float> values,
                           const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  CHECK(count == static_cast<int64_t>(values.size()));
  AppendBytes(initializers_, 5,
              TensorMessage(name, OnnxType::kFloat, shape,
                            {reinterpret_cast<const char*>(values.data()), values.size_bytes()}));
  return name;
}

std::string OnnxGraph::AddInts(const std::string& name, const std::vector<int64_t>& values) {
  AppendBytes(initializers_, 5,
              TensorMessage(
                  name, OnnxType::kInt64, {static_cast<int64_t>(values.size())},
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)}));
  return name;
}

std::string OnnxGraph::AddNumber(float value) {
  return Add(Fresh("number"), std::span<const float>(&value, 1), {});
}

std::string OnnxGraph::Node(const std::string& op, const std::vector<std::string>& inputs,
                            const OnnxAttributes& attributes) {
  std::string result = Fresh(op);
  std::string node;
  for (const std::string& input : inputs) AppendBytes(node, 1, input);
  AppendBytes(node, 2, result);
  AppendBytes(node, 3, result + "_node");
  AppendBytes(node, 4, op);
  for (const auto& [name, attribute] : attributes) {
    AppendBytes(node, 5, AttributeMessage(name, attribute));
  }
  AppendBytes(nodes_, 1, node);
  return result;
}

std::string OnnxGraph::Linear(const std::string& x, const std::string& name,
                              std::span<const float> weight, const std::vector<int64_t>& shape,
                              std::span<const float> bias) {
  const auto outputs = static_cast<size_t>(shape.at(0));
  const auto inputs = static_cast<size_t>(shape.at(1));
  std::vector<float> transposed(weight.size());
  for (size_t out = 0; out < outputs; ++out) {
    for (size_t in = 0; in < inputs; ++in)
      transposed[in * outputs + out] = weight[out * inputs + in];
  }
  std::string result = Node("MatMul", {x, Add(name + ".weight", transposed, {shape[1], shape[0]})});
  if (!bias.empty()) result = Node("Add", {result, Add(name + ".bias", bias, {shape[0]})});
  return result;
}

std::string OnnxGraph::RmsNorm(const std::string& x, const std::string& scale, float epsilon,
                               const std::vector<int64_t>& axes) {
  const std::string mean =
      Node("ReduceMean", {Node("Mul", {x, x})}, {{"axes", axes}, {"keepdims", int64_t{1}}});
  const std::string root = Node("Sqrt", {Node("Add", {mean, AddNumber(epsilon)})});
  return Node("Mul", {Node("Div", {x, root}), scale});
}

std::string OnnxGraph::Attention(const std::string& q, const std::string& k, const std::string& v,
                                 const AttentionShape& shape) {
  const std::string turned = Node("Transpose", {k}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  const float scale = 1 / std::sqrt(static_cast<float>(shape.head_width));
  const std::string scores = Node("Mul", {Node("MatMul", {q, turned}), AddNumber(scale)});
  const std::string mixed = Node("MatMul", {Node("Softmax", {scores}, {{"axis", int64_t{-1}}}), v});
  return Reshape(Node("Transpose", {mixed}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}),
                 {-1, shape.rows, shape.heads * shape.head_width});
}

std::string OnnxGraph::Reshape(const std::string& x, const std::vector<int64_t>& shape) {
  return Node("Reshape", {x, AddInts(Fresh("shape"), shape)});
}

void OnnxGraph::Write(const std::string& path) const {
  std::string graph = nodes_;
  AppendBytes(graph, 2, name_);
  graph += initializers_ + inputs_ + outputs_;
  std::string opset;
  AppendBytes(opset, 1, "");
  AppendNumber(opset, 2, kOpset);
  std::string model;
  AppendNumber(model, 1, kIrVersion);
  AppendBytes(model, 2, "kibitz");
  AppendBytes(model, 3, KIBITZ_VERSION);
  AppendBytes(model, 7, graph);
  AppendBytes(model, 8, opset);
  model += metadata_;
  if (model.size() > kMaxBytes) {
    throw Error("{}: the network takes {} bytes; an ONNX file holds at most 2 GB", path,
                model.size());
  }
  ByteSink sink(path);
  sink.Write(model);
  sink.Commit();
}

}  // namespace kibitz::io
