// How training commands tell what a run did.
#pragma once

#include "cli/command.h"
#include "learn/loop.h"

namespace kibitz::cli {

// The figures all students share, as JSON, with those of `more` before the folder.
nlohmann::ordered_json ReportJson(const learn::RunReport& report, const std::string& unit,
                                  const nlohmann::ordered_json& more);
// For people: metrics, then a line of figures and the checkpoint.
void PrintReport(const learn::RunReport& report, const std::string& unit);
// Either, as the context asks; returns the command's exit code.
int TellReport(const learn::RunReport& report, const std::string& unit, const Context& context);

}  // namespace kibitz::cli
