#include <fmt/format.h>

#include <bitset>
#include <filesystem>
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

namespace fs = std::filesystem;
using policy::Vocabulary;
using Json = nlohmann::ordered_json;
using Seen = std::bitset<policy::kFullVocabularySize>;

struct PolicyVocabOptions {
  std::vector<std::string> input;
  std::string out;
};

Fields FieldsOf(PolicyVocabOptions& options) {
  Fields fields;
  fields.Add("input", options.input,
             "list only the moves of these: the folder of a data set, or evaluations",
             {.positional = true, .metavar = "PATH"});
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

// Folders of evaluations hold other files.
bool IsDataSet(const std::string& path) {
  return fs::exists(path + "/manifest.json") || fs::exists(path + "/train_planes.npy");
}

Vocabulary VocabularyFor(const PolicyVocabOptions& options) {
  if (options.input.empty()) return Vocabulary::Full();
  Seen seen;
  std::vector<std::string> evaluations;
  for (const std::string& path : options.input) {
    if (IsDataSet(path)) {
      seen |= MovesOfData(path);
    } else {
      evaluations.push_back(path);
    }
  }
  if (!evaluations.empty()) seen |= MovesOfInput(evaluations);
  if (seen.none()) {
    throw Error(
        "{}: no row has a move; expected a data set, or evaluations as 'kibitz policy precompute' "
        "reads them",
        fmt::join(options.input, ", "));
  }
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
       .details = "Without PATH: all 1968 moves that a piece can make. With PATH: only the moves "
                  "that the\n"
                  "data set has, or the first moves of the evaluations. Castling is king takes "
                  "rook (e1h1).",
       .example = "kibitz policy vocab evals.parquet --out vocab.npy"},
      Run);
}

}  // namespace kibitz::cli
