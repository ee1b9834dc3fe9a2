#include "oracles/twenty48/ntuple.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "io/weights/safetensors.h"

namespace kibitz::oracles {

using twenty48::Board;

std::vector<TuplePattern> ParsePatterns(std::span<const std::string> texts) {
  if (texts.empty()) throw Error::Usage("an n-tuple network needs at least one pattern");
  std::vector<TuplePattern> patterns;
  for (const std::string& text : texts) {
    TuplePattern pattern{.text = text};
    for (char c : text) {
      const size_t cell = std::string_view("0123456789abcdef").find(c);
      if (cell == std::string_view::npos) {
        throw Error::Usage("pattern {}: '{}' is not a cell; cells are 0 to 9 and a to f",
                           Quoted(text), c);
      }
      pattern.mask |= uint64_t{15} << Board::Shift(static_cast<int>(cell));
    }
    const int cells = std::popcount(pattern.mask) / 4;
    if (cells != static_cast<int>(text.size()) || cells < 1 || cells > 7) {
      throw Error::Usage("pattern {}: expected 1 to 7 different cells", Quoted(text));
    }
    pattern.entries = size_t{1} << (4 * cells);
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

std::vector<std::string> DefaultPatterns() { return {"012456", "12569d", "012345", "01567a"}; }

std::vector<int> ParseStages(std::span<const std::string> tiles) {
  std::vector<int> ranks;
  for (const std::string& text : tiles) {
    const auto tile = static_cast<uint64_t>(ParseInt(text).value_or(0));
    const int rank = std::countr_zero(tile);
    if (!std::has_single_bit(tile) || rank < 2 || rank > 15) {
      throw Error::Usage("stage {}: expected a tile of 4 to 32768", Quoted(text));
    }
    if (!ranks.empty() && rank <= ranks.back()) {
      throw Error::Usage("stage {}: expected a larger tile than that of the stage before it",
                         Quoted(text));
    }
    ranks.push_back(rank);
  }
  return ranks;
}

NTupleNetwork::NTupleNetwork(std::span<const std::string> patterns,
                             std::span<const std::string> stages)
    : patterns_(ParsePatterns(patterns)), stage_ranks_(ParseStages(stages)) {
  for (size_t stage = 0; stage < this->stages(); ++stage) {
    for (const TuplePattern& pattern : patterns_) tables_.emplace_back(pattern.entries);
  }
}

std::string NTupleNetwork::TableName(size_t pattern, size_t stage) const {
  const std::string& text = patterns_[pattern].text;
  return stage == 0 ? text : fmt::format("{}.{}", text, stage);
}

namespace {

std::vector<std::string> Parts(const std::string& list) {
  std::vector<std::string> parts;
  for (std::string_view text : Split(list, ',')) parts.emplace_back(text);
  return parts;
}

}  // namespace

NTupleNetwork NTupleNetwork::Load(const std::string& path) {
  const io::Safetensors file = io::ReadSafetensors(path);
  const std::string* patterns = file.FindMetadata("patterns");
  if (patterns == nullptr) {
    throw Error(
        "{}: not an n-tuple network: its metadata lack 'patterns'; make one with "
        "'kibitz 2048 oracle'",
        path);
  }
  const std::string* stages = file.FindMetadata("stages");  // Missing in a network without.
  NTupleNetwork network(Parts(*patterns),
                        stages == nullptr ? std::vector<std::string>() : Parts(*stages));
  network.name_ = "ntuple " + path;
  for (size_t i = 0; i < network.tables_.size(); ++i) {
    const size_t t = i % network.patterns_.size();
    const size_t stage = i / network.patterns_.size();
    const std::string name = "weights." + network.TableName(t, stage);
    const auto found = std::ranges::find(file.tensors, name, &io::NamedTensor::name);
    if (found == file.tensors.end()) throw Error("{}: tensor {} is missing", path, name);
    const std::span<float> table = network.table(t, stage);
    if (found->tensor.type != io::DType::kF32 || found->tensor.bytes.size() != table.size_bytes()) {
      throw Error("{}: tensor {} is {} {}, expected float32 [{}]", path, name,
                  io::NameOf(found->tensor.type), io::ShapeText(found->tensor.shape), table.size());
    }
    if (!io::AllFinite(found->tensor)) {
      throw Error("{}: tensor {} has a weight that is NaN or infinite; train it again", path, name);
    }
    std::memcpy(table.data(), found->tensor.bytes.data(), table.size_bytes());
  }
  return network;
}

void NTupleNetwork::Evaluate(std::span<const Board> afterstates, std::span<float> values) const {
  for (size_t i = 0; i < afterstates.size(); ++i) values[i] = Value(afterstates[i].packed());
}

}  // namespace kibitz::oracles
