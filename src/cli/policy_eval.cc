#include <fmt/format.h>

#include <string>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "students/policy/play/evaluate.h"

namespace kibitz::cli {
namespace {

using policy::Accuracy;
using policy::Evaluation;
using policy::EvaluationPart;
using Json = nlohmann::ordered_json;

struct PolicyEvalOptions {
  nn::NetworkOptions network;
  std::string data;
  policy::EvaluateOptions evaluate;
};

Fields FieldsOf(PolicyEvalOptions& options) {
  Fields fields;
  fields.Add("data", options.data, "folder of the data set",
             {.required = true, .positional = true, .metavar = "DIR"});
  fields.Add("model", options.network.path,
             "model folder, .pt, .safetensors, or the name of a model that ships",
             {.required = true, .metavar = "PATH"});
  fields.AddAll(FieldsOf(options.evaluate));
  fields.Add("threads", options.network.threads, "threads; 0: one for each core",
             {.min = 0, .max = 1024});
  return fields;
}

Json ToJson(const Accuracy& accuracy) {
  return {{"value", accuracy.rate()}, {"low", accuracy.low()}, {"high", accuracy.high()}};
}

Json ToJson(const EvaluationPart& part) {
  Json json = {{"positions", part.first.trials}};
  if (part.first.trials == 0) return json;
  json["move_acc"] = ToJson(part.first);
  json["top5_acc"] = ToJson(part.five);
  json["loss"] = {{"value", part.loss.value()},
                  {"low", part.loss.value() - part.loss.error()},
                  {"high", part.loss.value() + part.loss.error()}};
  return json;
}

std::string Percent(const Accuracy& accuracy) {
  return fmt::format("{:5.2f}%  ({:.2f}% to {:.2f}%)", 100 * accuracy.rate(), 100 * accuracy.low(),
                     100 * accuracy.high());
}

void Print(const std::string& name, const EvaluationPart& part) {
  fmt::print("{}: {} positions\n", name, part.first.trials);
  if (part.first.trials == 0) return;
  fmt::print("  top-1 accuracy  {}\n", Percent(part.first));
  fmt::print("  top-5 accuracy  {}\n", Percent(part.five));
  fmt::print("  cross-entropy   {:.4f} +- {:.4f}\n", part.loss.value(), part.loss.error());
}

int Run(const PolicyEvalOptions& options, const Context& context) {
  const policy::Dataset data = policy::Dataset::Open(options.data);
  policy::Player player(options.network);
  const Evaluation result = Evaluate(player, data, options.evaluate);
  const std::string split(NameOf(options.evaluate.split));
  if (context.json) {
    Json json = {{"model", options.network.path}, {"data", options.data}, {"split", split}};
    json.update(ToJson(result.all));
    json["deep"] = ToJson(result.deep);
    json["deep"]["min_depth"] = options.evaluate.deep_min_depth;
    json["skipped"] = result.skipped.ToJson();
    json["complete"] = result.complete;
    PrintJson(json);
  } else {
    if (!result.complete) fmt::print("interrupted; of the positions before that:\n");
    Print(split, result.all);
    Print(fmt::format("{}, depth {} or more", split, options.evaluate.deep_min_depth), result.deep);
    if (!result.skipped.empty()) fmt::print("skipped: {}\n", result.skipped.Text());
  }
  return result.complete ? 0 : kExitInterrupted;
}

}  // namespace

Command PolicyEval() {
  return MakeCommand<PolicyEvalOptions>(
      {.name = "policy eval",
       .group = "Policy",
       .summary = "measure the accuracy and loss of a policy on a data set",
       .details =
           "Compares the network's answer with the label of each position: top-1 and top-5\n"
           "accuracy, cross-entropy with the soft label, and the same for deep positions, all "
           "with\n"
           "95% confidence intervals. Illegal moves count as moves, as in training. Training "
           "picks\n"
           "its best checkpoint by the split val; report the split test. Ctrl-C reports the\n"
           "positions so far and exits with 130.",
       .example = "kibitz policy eval data --model models/policy-small --split test"},
      Run);
}

}  // namespace kibitz::cli
