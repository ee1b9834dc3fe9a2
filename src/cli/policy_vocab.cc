#include <fmt/format.h>

#include <bitset>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "students/policy/data/dataset.h"
#include "students/policy/data/row_source.h"

namespace kibitz::cli {
namespace {

using policy::Vocabulary;
using Json = nlohmann::ordered_json;
using Seen = std::bitset<policy::kFullVocabularySize>;

struct PolicyVocabOptions {
  std::vector<std::string> input;
  std::string data;
  std::string out;
};

Fields FieldsOf(PolicyVocabOptions& options) {
  Fields fields;
  fields.Add("input", options.input, "only the first moves of these evaluations",
             {.positional = true, .metavar = "PATH"});
  fields.Add("data", options.data, "only the moves of this data set", {.metavar = "DIR"});
  fields.Add("out", options.out, "write the vocabulary to this .npy file", {.metavar = "FILE"});
  return fields;
}

Seen MovesOfInput(const std::vector<std::string>& input) {
  policy::RowSource source(policy::FindInputs(input), {});
  Progress progress("rows", source.EstimateRows());
  policy::RowPacker packer;
  Seen seen;
  while (auto piece = source.Next()) {
    ThrowIfInterrupted();
    progress.Add(piece->ForEach([&](const policy::RawRow& raw) {
      policy::PackedRow row;
      if (packer.Pack(raw, row) == policy::RowFault::kNone) seen.set(row.analysis.move);
    }));
  }
  progress.Finish();
  return seen;
}

Seen MovesOfData(const std::string& folder) {
  const policy::Dataset data = policy::Dataset::Open(folder);
  Progress progress("positions", data.positions());
  Seen seen;
  std::vector<policy::Analysis> scratch;
  for (policy::Split split : policy::kSplits) {
    const policy::SplitData& part = data.split(split);
    for (uint64_t i = 0; i < part.size(); ++i) {
      if (i % 65536 == 0) ThrowIfInterrupted();
      for (const policy::Analysis& analysis : part.At(i, scratch).analyses) {
        if (analysis.move >= data.vocabulary().size()) continue;
        seen.set(Vocabulary::Full().IndexOf(data.vocabulary()[analysis.move]));
      }
      progress.Add(1);
    }
  }
  progress.Finish();
  return seen;
}

Vocabulary VocabularyFor(const PolicyVocabOptions& options) {
  if (options.input.empty() && options.data.empty()) return Vocabulary::Full();
  if (!options.input.empty() && !options.data.empty()) {
    throw Error::Usage("PATH and --data exclude each other; give one");
  }
  const Seen seen = options.data.empty() ? MovesOfInput(options.input) : MovesOfData(options.data);
  if (seen.none())
    throw Error("no row has a move; expected evaluations as 'kibitz policy precompute' reads them");
  std::vector<policy::MoveWord> words;
  for (int i = 0; i < policy::kFullVocabularySize; ++i) {
    if (seen[static_cast<size_t>(i)]) words.push_back(Vocabulary::Full()[i]);
  }
  return Vocabulary(std::move(words));
}

int Run(const PolicyVocabOptions& options, const Context& context) {
  const Vocabulary vocabulary = VocabularyFor(options);
  if (!options.out.empty()) vocabulary.Write(options.out);
  if (context.json) {
    Json moves = Json::array();
    for (int i = 0; i < vocabulary.size(); ++i) moves.push_back(vocabulary[i].Text());
    Json object = {{"size", vocabulary.size()}, {"moves", std::move(moves)}};
    if (!options.out.empty()) object["file"] = options.out;
    PrintJson(object);
  } else if (!options.out.empty()) {
    fmt::print("{}: {} moves\n", options.out, vocabulary.size());
  } else {
    for (int i = 0; i < vocabulary.size(); ++i) fmt::print("{:>4} {}\n", i, vocabulary[i].Text());
  }
  return 0;
}

}  // namespace

Command PolicyVocab() {
  return MakeCommand<PolicyVocabOptions>(
      {.name = "policy vocab",
       .group = "Policy",
       .summary = "list or write the moves a policy chooses from",
       .details =
           "All 1968 moves that a piece can make, or those of some data. Castling is king takes\n"
           "rook (e1h1).",
       .example = "kibitz policy vocab evals.parquet --out vocab.npy"},
      Run);
}

}  // namespace kibitz::cli
