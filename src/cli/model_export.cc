#include "cli/model_export.h"

#include <fmt/format.h>

#include "cli/json_output.h"
#include "io/weights/model_file.h"

namespace kibitz::cli {

int ExportModel(const ExportedModel& model, const std::string& folder, const Context& context) {
  io::WriteModel(folder, model.weights, model.config);
  if (context.json) {
    PrintJson({{"folder", folder}, {"parameters", model.parameters}});
  } else {
    fmt::print("{}: {} parameters\n", folder, model.parameters);
  }
  return 0;
}

}  // namespace kibitz::cli
