#include "arena/labels.h"

#include <algorithm>
#include <cmath>

#include "arena/statistics/intervals.h"
#include "base/permutation.h"
#include "students/policy/data/target.h"

namespace kibitz::arena {
namespace {

constexpr double kLeast = 1e-9;  // Of a probability, so that logarithms are finite.

// What a player said about one labelled position.
struct LabelMarks {
  bool first = false;
  bool five = false;
  double loss = 0;
  double probability = 0;
  double share = 0;
  bool likeliest = false;  // The likeliest move is the label's best.

  Json ToJson() const { return {first, five, loss, probability, share, likeliest}; }
};

LabelMarks MarksOf(const players::Answer& answer, const policy::Target& target,
                   const policy::Vocabulary& vocabulary) {
  LabelMarks marks;
  const auto number = [&](size_t i) {
    return vocabulary.IndexOf(policy::WordOf(answer.moves[i].move));
  };
  for (size_t i = 0; i < std::min<size_t>(5, answer.moves.size()); ++i) {
    if (number(i) == target.best) marks.five = true;
  }
  marks.likeliest = number(0) == target.best;
  marks.first = vocabulary.IndexOf(policy::WordOf(*answer.move)) == target.best;
  marks.five = marks.five || marks.first;
  marks.probability = answer.moves[0].probability;
  for (const policy::MoveShare& share : target.shares) {
    double probability = 0;
    for (size_t i = 0; i < answer.moves.size(); ++i) {
      if (number(i) == share.move) probability = answer.moves[i].probability;
    }
    marks.loss -= share.share * std::log(std::max(probability, kLeast));
    if (share.move == number(0)) marks.share = share.share;
  }
  return marks;
}

}  // namespace

Fields FieldsOf(LabelInput& input) {
  Fields fields;
  fields.Add("data", input.data, "folder of a policy data set: compare with its soft labels",
             {.metavar = "DIR"});
  fields.AddChoice("split", input.split, "which of its positions",
                   {{"train", policy::Split::kTrain},
                    {"val", policy::Split::kVal},
                    {"test", policy::Split::kTest}});
  fields.Add("positions", input.positions, "how many of them, drawn from the split; 0: all",
             {.min = 0});
  return fields;
}

LabelResult RunLabels(const LabelInput& input, Asker& asker, const RunOptions& run,
                      const Json& settings, Progress* progress) {
  const policy::Dataset data = policy::Dataset::Open(input.data);
  const policy::SplitData& part = data.split(input.split);
  if (part.size() == 0) throw Error("{}: the split has no positions", input.data);
  uint64_t wanted = part.size();
  if (input.positions > 0) wanted = std::min(wanted, static_cast<uint64_t>(input.positions));
  if (progress != nullptr) progress->SetTotal(wanted);
  const Permutation order(part.size(), {.purpose = Purpose("policy eval")});
  const auto journal = OpenJournal(run, settings);
  const auto work = [&](const Piece& piece) -> std::optional<Json> {
    std::vector<policy::Analysis> scratch;
    const auto sample = part.TryAt(order[static_cast<uint64_t>(piece.number)], scratch);
    if (!sample) return Json("unreadable position");
    policy::Target target;
    if (!policy::MakeTarget(*sample, data.vocabulary(), {}, target)) {
      return Json("position without a usable analysis");
    }
    const chess::Board board = policy::BoardOf(sample->position);
    const players::Answer answer = asker.Ask(piece, {.start = board}, 5);
    if (piece.stop.stop_requested()) return std::nullopt;
    if (!answer.move || answer.moves.empty()) return Json("position without an answer");
    return MarksOf(answer, target, data.vocabulary()).ToJson();
  };
  LabelResult result;
  const auto take = [&](int64_t number, const Json& json) {
    if (json.is_string()) {
      result.skipped.Add(json, {.file = input.data, .row = number});
      return true;
    }
    ++result.positions;
    result.first += json[0].get<bool>() ? 1 : 0;
    result.five += json[1].get<bool>() ? 1 : 0;
    result.cross_entropy += json[2].get<double>();
    const double probability = json[3];
    const auto last = result.bins.size() - 1;
    CalibrationBin& bin = result.bins[std::min(last, static_cast<size_t>(probability * 10))];
    ++bin.positions;
    bin.probability += probability;
    bin.share += json[4].get<double>();
    bin.hits += json[5].get<bool>() ? 1 : 0;
    return true;
  };
  DoInOrder(0, static_cast<int64_t>(wanted),
            {.threads = run.threads(), .journal = journal.get(), .progress = progress}, work, take);
  result.one_ply = asker.one_ply();
  return result;
}

double LabelResult::calibration_error() const {
  double sum = 0;
  for (const CalibrationBin& bin : bins) {
    sum += std::abs(bin.probability - static_cast<double>(bin.hits));
  }
  return positions == 0 ? 0 : sum / static_cast<double>(positions);
}

Json LabelResult::ToJson() const {
  const auto accuracy = [&](int64_t hits) {
    const Interval interval = WilsonInterval(hits, positions);
    return Json{
        {"value", ShareOf(hits, positions)}, {"low", interval.low}, {"high", interval.high}};
  };
  Json json = {
      {"player", player},
      {"one_ply", OnePlyJson(one_ply)},
      {"positions", positions},
      {"top1", accuracy(first)},
      {"top5", accuracy(five)},
      {"cross_entropy", positions == 0 ? 0 : cross_entropy / static_cast<double>(positions)},
      {"calibration_error", calibration_error()},
      {"calibration", Json::array()},
      {"skipped", skipped.ToJson()}};
  for (const CalibrationBin& bin : bins) {
    if (bin.positions == 0) continue;
    const auto n = static_cast<double>(bin.positions);
    json["calibration"].push_back({{"positions", bin.positions},
                                   {"probability", bin.probability / n},
                                   {"best", ShareOf(bin.hits, bin.positions)},
                                   {"label", bin.share / n}});
  }
  return json;
}

std::string LabelResult::Text() const {
  const auto line = [&](const char* name, int64_t hits) {
    const Interval interval = WilsonInterval(hits, positions);
    return fmt::format("{:6} {:5.1f}%  ({:.1f} to {:.1f}%)\n", name, 100 * ShareOf(hits, positions),
                       100 * interval.low, 100 * interval.high);
  };
  std::string text = fmt::format("{}: {} positions\n", player, positions);
  text += line("top-1", first) + line("top-5", five);
  text += fmt::format("cross-entropy {:.4f}, calibration error {:.4f}\n",
                      positions == 0 ? 0 : cross_entropy / static_cast<double>(positions),
                      calibration_error());
  text += fmt::format("{:>12} {:>10} {:>12} {:>12}\n", "probability", "positions", "label's best",
                      "label's share");
  for (const CalibrationBin& bin : bins) {
    if (bin.positions == 0) continue;
    const auto n = static_cast<double>(bin.positions);
    text += fmt::format("{:>11.1f}% {:>10} {:>11.1f}% {:>12.1f}%\n", 100 * bin.probability / n,
                        bin.positions, 100 * ShareOf(bin.hits, bin.positions), 100 * bin.share / n);
  }
  text += OnePlyText({&player, 1}, {&one_ply, 1});
  if (!skipped.empty()) text += fmt::format("skipped: {}\n", skipped.Text());
  return text;
}

Page LabelResult::ToPage() const {
  Page page("Labels: " + player);
  page.Verbatim(Text());
  PlotLine best{.name = "label's best"};
  PlotLine share{.name = "label's share"};
  for (const CalibrationBin& bin : bins) {
    if (bin.positions == 0) continue;
    const auto n = static_cast<double>(bin.positions);
    const Interval interval = WilsonInterval(bin.hits, bin.positions);
    best.x.push_back(bin.probability / n);
    best.y.push_back(ShareOf(bin.hits, bin.positions));
    best.low.push_back(interval.low);
    best.high.push_back(interval.high);
    share.x.push_back(bin.probability / n);
    share.y.push_back(bin.share / n);
  }
  page.Plot(LinePlot({.title = "Calibration of the likeliest move",
                      .x_title = "probability that the player gives",
                      .lines = {best, share},
                      .diagonal = true,
                      .points = true}));
  return page;
}

}  // namespace kibitz::arena
