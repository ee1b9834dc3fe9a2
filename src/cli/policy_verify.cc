#include <fmt/format.h>

#include <string>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "students/policy/data/verify.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;
using policy::VerifyReport;

struct PolicyVerifyOptions {
  std::string data;
  policy::VerifyOptions verify;
};

Fields FieldsOf(PolicyVerifyOptions& options) {
  Fields fields;
  fields.Add("data", options.data, "folder of the data set",
             {.required = true, .positional = true, .metavar = "DIR"});
  fields.Add("checksums", options.verify.checksums,
             "read every byte and compare with the manifest");
  fields.Add("legal_sample", options.verify.legal_sample,
             "positions of each split whose moves are checked to be legal", {.min = 0});
  fields.Add("seed", options.verify.seed, "which positions");
  return fields;
}

Json ToJson(const VerifyReport& report) {
  Json faults = Json::array();
  for (const auto& [what, finding] : report.faults) {
    faults.push_back({{"what", what}, {"count", finding.count}, {"first", finding.first}});
  }
  Json splits = Json::object();
  for (policy::Split split : policy::kSplits) {
    const policy::SplitCounts& counts = report.splits[static_cast<size_t>(split)];
    splits[std::string(NameOf(split))] = {{"positions", counts.positions},
                                          {"analyses", counts.analyses}};
  }
  Json depths = Json::object();
  for (const auto& [depth, count] : report.deepest) depths[std::to_string(depth)] = count;
  return {{"good", report.good()},
          {"faults", faults},
          {"splits", splits},
          {"legal_checked", report.legal_checked},
          {"soft_labels", report.soft},
          {"hard_labels", report.hard},
          {"positions_by_deepest", depths}};
}

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// Ten depths a line, and the positions that --min-depth would keep.
void PrintDepths(const VerifyReport& report) {
  const uint64_t all = report.AtLeast(0);
  if (all == 0) return;
  fmt::print("{:>9} {:>12} {:>7}   {:>12} {:>7}\n", "deepest", "positions", "", "min-depth keeps",
             "");
  for (int from = 0; from <= policy::kMaxDepth; from += 10) {
    const uint64_t left = report.AtLeast(from);
    if (left == 0) break;
    const uint64_t here = left - report.AtLeast(from + 10);
    if (here == 0) continue;
    fmt::print("{:>4} to {:<3} {:>10} {:>6.1f}%   {:>15} {:>6.1f}%  {}\n", from, from + 9, here,
               Share(here, all), left, Share(left, all),
               std::string(static_cast<size_t>(Share(here, all) / 2.5), '#'));
  }
}

int Run(const PolicyVerifyOptions& options, const Context& context) {
  const policy::Dataset data = policy::Dataset::Open(options.data);
  const VerifyReport report = Verify(data, options.verify);
  if (context.json) {
    PrintJson(ToJson(report));
    return report.good() ? 0 : 1;
  }
  for (policy::Split split : policy::kSplits) {
    const policy::SplitCounts& counts = report.splits[static_cast<size_t>(split)];
    fmt::print("{:6} {:>12} positions {:>12} analyses\n", NameOf(split), counts.positions,
               counts.analyses);
  }
  const uint64_t labelled = report.soft + report.hard;
  fmt::print("labels: {:.1f}% soft (two moves or more at the greatest depth), {:.1f}% hard\n",
             Share(report.soft, labelled), Share(report.hard, labelled));
  PrintDepths(report);
  for (const auto& [what, finding] : report.faults) {
    fmt::print("fault: {} {}; first: {}\n", finding.count, what, finding.first);
  }
  if (report.good()) fmt::print("good: {} moves checked\n", report.legal_checked);
  return report.good() ? 0 : 1;
}

}  // namespace

Command PolicyVerify() {
  return MakeCommand<PolicyVerifyOptions>(
      {.name = "policy verify",
       .group = "Policy",
       .summary = "check a data set: checksums, ranges, duplicates, splits, legal moves",
       .details = "Checks checksums, offsets, ranges, rows of zeros, one "
                  "king each, duplicates, splits, and\n"
                  "on a sample that moves are legal; prints a table of "
                  "depths. Exits with 1 after a fault.",
       .example = "kibitz policy verify data"},
      Run);
}

}  // namespace kibitz::cli
