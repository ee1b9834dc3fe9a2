#include "cli/train/run_training.h"

#include <fmt/format.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "learn/ranks.h"

namespace kibitz::cli {
namespace {

using Json = nlohmann::ordered_json;

double PeakGigabytes() { return static_cast<double>(PeakMemory()) / (1 << 30); }

Json ToJson(const learn::NamedValues& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

void PrintValues(std::string_view title, const learn::NamedValues& values) {
  if (values.empty()) return;
  fmt::print("{}\n", title);
  for (const auto& [name, value] : values) fmt::print("  {:30}{:.6g}\n", name, value);
}

Json ReportJson(const learn::RunReport& report, const Json& more) {
  Json object = {{"stopped", NameOf(report.why)},
                 {"resumed", report.resumed},
                 {"steps", report.steps},
                 {"steps_here", report.steps_here},
                 {"epoch", report.epoch},
                 {"seconds", report.seconds},
                 {"seconds_here", report.seconds_here},
                 {report.unit + "_per_second", report.units_per_second},
                 {"skipped_updates", report.skipped_updates},
                 {"peak_memory_gb", PeakGigabytes()},
                 {"metrics", ToJson(report.last_metrics)},
                 {"validation", ToJson(report.last_validation)}};
  object.update(more);
  object["folder"] = report.folder;
  object["checkpoint"] = report.checkpoint;
  return object;
}

}  // namespace

int PrintReport(const learn::RunReport& report, const Context& context, const Json& more) {
  const int code = report.why == learn::Stopped::kInterrupted ? kExitInterrupted : 0;
  if (!learn::Ranks::Here().first()) return code;  // Rank 0 speaks for all.
  if (context.json) {
    PrintJson(ReportJson(report, more));
    return code;
  }
  PrintValues("last metrics", report.last_metrics);
  PrintValues("last validation", report.last_validation);
  fmt::print("{}: step {} (epoch {}), {} here, {} in all, {} {}/s, {:.1f} GB at most\n",
             NameOf(report.why), report.steps, report.epoch, HumanSeconds(report.seconds_here),
             HumanSeconds(report.seconds), HumanCount(report.units_per_second), report.unit,
             PeakGigabytes());
  fmt::print("checkpoint {}\n", report.checkpoint);
  return code;
}

}  // namespace kibitz::cli
