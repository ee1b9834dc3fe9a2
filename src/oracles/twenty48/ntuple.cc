#include "oracles/twenty48/ntuple.h"

#include <algorithm>
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

NTupleNetwork::NTupleNetwork(std::span<const std::string> patterns)
    : patterns_(ParsePatterns(patterns)) {
  for (const TuplePattern& pattern : patterns_) tables_.emplace_back(pattern.entries);
}

NTupleNetwork NTupleNetwork::Load(const std::string& path) {
  const io::Safetensors file = io::ReadSafetensors(path);
  const std::string* patterns = file.FindMetadata("patterns");
  if (patterns == nullptr) {
    throw Error(
        "{}: not an n-tuple network: its metadata lack 'patterns'; make one with "
        "'kibitz 2048 oracle'",
        path);
  }
  std::vector<std::string> texts;
  for (std::string_view text : Split(*patterns, ',')) texts.emplace_back(text);
  NTupleNetwork network(texts);
  network.name_ = "ntuple " + path;
  for (size_t t = 0; t < texts.size(); ++t) {
    const std::string name = "weights." + texts[t];
    const auto found = std::ranges::find(file.tensors, name, &io::NamedTensor::name);
    if (found == file.tensors.end()) throw Error("{}: tensor {} is missing", path, name);
    const std::span<float> table = network.table(t);
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
