#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/fen_input.h"
#include "cli/json_output.h"
#include "games/chess/fen.h"
#include "games/chess/move_text.h"
#include "games/chess/san.h"
#include "students/policy/data/dataset.h"

namespace kibitz::cli {
namespace {

using policy::Dataset;
using policy::Sample;
using policy::Split;
using Json = nlohmann::ordered_json;

struct PolicyLabelsOptions {
  std::string data;
  std::optional<int64_t> index;
  Split split = Split::kTrain;
  FenInput position;
  policy::LabelOptions label;
};

Fields FieldsOf(PolicyLabelsOptions& options) {
  Fields fields;
  fields.Add("data", options.data, "folder of the data set",
             {.required = true, .positional = true, .metavar = "DIR"});
  fields.Add("index", options.index, "number of the position in its split, from 0",
             {.min = 0, .metavar = "N"});
  fields.AddChoice("split", options.split, "which split",
                   {{"train", Split::kTrain}, {"val", Split::kVal}, {"test", Split::kTest}});
  fields.AddAll(FieldsOf(options.position));
  fields.AddAll(FieldsOf(options.label));
  return fields;
}

struct Found {
  Split split = Split::kTrain;
  uint64_t index = 0;
};

std::string WordText(const Dataset& data, uint16_t move) {
  return move < data.vocabulary().size() ? data.vocabulary()[move].Text()
                                         : fmt::format("({})", move);
}

Json Answer(const Dataset& data, const Found& found, const policy::LabelOptions& options) {
  std::vector<policy::Analysis> scratch;
  const Sample sample = data.split(found.split).At(found.index, scratch);
  std::vector<policy::MoveShare> shares;
  AppendLabel(sample.analyses, sample.position.black_to_move(), options, shares);
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  Json label = Json::object();
  for (const policy::MoveShare& share : shares) label[WordText(data, share.move)] = share.share;
  Json analyses = Json::array();
  for (const policy::Analysis& analysis : sample.analyses) {
    analyses.push_back({{"move", WordText(data, analysis.move)},
                        {"move_index", analysis.move},
                        {"depth", analysis.depth()},
                        {"knodes", analysis.knodes},
                        {analysis.is_mate() ? "mate" : "cp", analysis.score}});
  }
  return {{"fen", chess::ToFen(BoardOf(sample.position), {.counters = false})},
          {"split", NameOf(found.split)},
          {"index", found.index},
          {"max_depth", policy::DeepestOf(sample.analyses)},
          {"label", label},
          {"analyses", analyses}};
}

void Print(const Json& answer) {
  fmt::print("{}  ({} {}, depth {})\n", answer["fen"].get<std::string>(),
             answer["split"].get<std::string>(), answer["index"].get<uint64_t>(),
             answer["max_depth"].get<int>());
  for (const auto& [move, share] : answer["label"].items()) {
    fmt::print("  {:6} {:>6.2f}%  {}\n", move, 100 * share.get<double>(),
               std::string(static_cast<size_t>(std::lround(share.get<double>() * 40)), '#'));
  }
  for (const Json& analysis : answer["analyses"]) {
    const bool mate = analysis.contains("mate");
    fmt::print("    {:6} depth {:>3}  {:>9} knodes  {} {} for White\n",
               analysis["move"].get<std::string>(), analysis["depth"].get<int>(),
               analysis["knodes"].get<uint64_t>(), mate ? "mate" : "cp",
               analysis[mate ? "mate" : "cp"].get<int>());
  }
}

// Binary search in our own data sets, which are in the order of a hash; others are scanned.
std::optional<Found> Find(const Dataset& data, const policy::PackedPosition& position) {
  std::vector<policy::Analysis> scratch;
  const uint64_t hash = HashOf(position);
  const bool sorted = data.manifest() && !data.manifest()->input["files"].empty();
  for (Split split : policy::kSplits) {
    const policy::SplitData& part = data.split(split);
    uint64_t begin = 0;
    if (sorted) {
      uint64_t end = part.size();
      while (begin < end) {
        const uint64_t middle = begin + (end - begin) / 2;
        if (HashOf(part.At(middle, scratch).position) < hash) {
          begin = middle + 1;
        } else {
          end = middle;
        }
      }
    }
    for (uint64_t i = begin; i < part.size(); ++i) {
      const policy::PackedPosition here = part.At(i, scratch).position;
      if (SamePosition(here, position)) return Found{split, i};
      if (sorted && HashOf(here) > hash) break;
    }
  }
  return std::nullopt;
}

int Run(const PolicyLabelsOptions& options, const Context& context) {
  const Dataset data = Dataset::Open(options.data);
  const auto answer_fen = [&](const chess::Board& board) {
    const std::optional<Found> found = Find(data, policy::Pack(board));
    if (!found) throw Error("{}: not in {}", chess::ToFen(board), options.data);
    return Answer(data, *found, options.label);
  };
  if (!options.position.fens.empty()) return AnswerEach(options.position, answer_fen);
  Json answer;
  if (options.index) {
    const auto index = static_cast<uint64_t>(*options.index);
    const uint64_t size = data.split(options.split).size();
    if (index >= size) {
      throw Error::Usage("--index is {}; {} has {} positions, numbered from 0", index,
                         NameOf(options.split), size);
    }
    answer = Answer(data, {options.split, index}, options.label);
  } else {
    answer = answer_fen(BoardOf(options.position));
  }
  if (context.json) {
    PrintJson(answer);
  } else {
    Print(answer);
  }
  return 0;
}

}  // namespace

Command PolicyLabels() {
  return MakeCommand<PolicyLabelsOptions>(
      {.name = "policy labels",
       .group = "Policy",
       .summary = "show a position's analyses and the label made from them",
       .details =
           "The label is a softmax of the scores for the side to move, over the analyses that\n"
           "--strategy takes: a move --temperature centipawns below the best has 1/e of its "
           "share.\n"
           "'deepest' can take a search of few nodes over a longer one of less depth; 'nodes' "
           "takes\n"
           "the analyses with the most nodes.",
       .example = "kibitz policy labels data --index 0 --temperature 50"},
      Run);
}

}  // namespace kibitz::cli
