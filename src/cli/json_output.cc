#include "cli/json_output.h"

#include <fmt/format.h>

namespace kibitz::cli {

void PrintJson(const nlohmann::ordered_json& object) {
  using Handler = nlohmann::ordered_json::error_handler_t;
  fmt::print("{}\n", object.dump(-1, ' ', false, Handler::replace));
}

}  // namespace kibitz::cli
