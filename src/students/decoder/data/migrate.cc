#include "students/decoder/data/migrate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "base/error.h"
#include "students/decoder/data/vocabulary.h"

namespace kibitz::decoder {
namespace {

using io::NamedTensor;
using io::Tensor;

// `rows` rows; row i is row source(i) of the old tensor, or zero when there is no such row.
Tensor TakeRows(const Tensor& old, int64_t rows, const std::function<int64_t(int64_t)>& source) {
  std::vector<int64_t> shape = old.shape;
  const auto row_bytes = old.bytes.size() / static_cast<size_t>(shape[0]);
  shape[0] = rows;
  std::vector<std::byte> bytes(row_bytes * static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t from = source(row);
    if (from >= old.shape[0]) continue;
    std::memcpy(bytes.data() + static_cast<size_t>(row) * row_bytes,
                old.bytes.data() + static_cast<size_t>(from) * row_bytes, row_bytes);
  }
  return io::OwnedTensor(old.type, std::move(shape), std::move(bytes));
}

// The current form of a tensor.
struct Rule {
  std::string_view name;
  int64_t rows;
  int64_t (*source)(int64_t row);  // The token of a row.
};

int64_t Same(int64_t row) { return row; }
int64_t OfBoard(int64_t row) { return BoardToken(static_cast<int>(row)); }

constexpr Rule kRules[] = {
    {"tok_embedding.weight", kVocabularySize, Same},
    {"board_head.weight", kBoardVocabularySize, OfBoard},
    {"board_head.bias", kBoardVocabularySize, OfBoard},
    {"policy_head.weight", kMoveVocabularySize, Same},
    {"policy_head.bias", kMoveVocabularySize, Same},
    {"thinking_policy_head.weight", kMoveVocabularySize, Same},
    {"thinking_policy_head.bias", kMoveVocabularySize, Same},
};

// The change this tensor needs; nullptr for none.
const Rule* RuleFor(const NamedTensor& tensor, const std::string& place) {
  const auto* rule = std::ranges::find(kRules, tensor.name, &Rule::name);
  if (rule == std::end(kRules)) return nullptr;
  const int64_t rows = tensor.tensor.shape.empty() ? 0 : tensor.tensor.shape[0];
  if (rows == rule->rows) return nullptr;
  // The vocabulary has only grown at its end.
  const bool embedding = rule->rows == kVocabularySize;
  if (embedding ? rows < 1 || rows > rule->rows : rows < rule->rows || rows > kVocabularySize) {
    throw Error("{}: {} is {}, expected {} rows, or an older vocabulary of at most {} rows", place,
                tensor.name, io::ShapeText(tensor.tensor.shape), rule->rows, kVocabularySize);
  }
  return rule;
}

}  // namespace

Migration MigrateStateDict(const io::StateDict& weights, const std::string& place) {
  std::vector<NamedTensor> tensors;
  std::vector<std::string> changes;
  for (const NamedTensor& old : weights.tensors()) {
    const Rule* rule = RuleFor(old, place);
    tensors.push_back(rule == nullptr
                          ? old
                          : NamedTensor{old.name, TakeRows(old.tensor, rule->rows, rule->source)});
    if (rule != nullptr) {
      changes.push_back(fmt::format("{}: {} -> {}", old.name, io::ShapeText(old.tensor.shape),
                                    io::ShapeText(tensors.back().tensor.shape)));
    }
  }
  const io::StateDict migrated(tensors, place);
  for (const std::string part : {".weight", ".bias"}) {
    const std::string name = "thinking_policy_head" + part;
    if (migrated.Find(name) != nullptr) continue;
    tensors.push_back({name, migrated.Get("policy_head" + part)});
    changes.push_back(name + ": a copy of policy_head" + part);
  }
  return {io::StateDict(std::move(tensors), place), std::move(changes)};
}

}  // namespace kibitz::decoder
