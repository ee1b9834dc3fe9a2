// Any bytes as a request: what is taken has a clean path, and the gate and the router's 404 stand
// it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "serve/http/gate.h"
#include "serve/http/request_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kibitz::serve;
  const auto request = ParseRequest({reinterpret_cast<const char*>(data), size});
  if (!request) return 0;
  CHECK(request->path.starts_with('/'));
  CHECK(request->body.size() <= RequestLimits{}.body_bytes);
  for (const std::string_view part :
       kibitz::Split(std::string_view(request->path).substr(1), '/')) {
    CHECK(part != ".." && part != ".");
  }
  CHECK(request->path.find('\0') == std::string::npos);
  static const Gate gate({.hosts = {"127.0.0.1:8080"}, .any_address = true, .token = "secret"});
  const auto refusal = gate.Refuse(*request);
  CHECK(!refusal || refusal->status >= 300);
  return 0;
}
