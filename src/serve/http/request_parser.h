// From the bytes of a request to a Request that handlers can trust: path decoded and clean.
//
//   const Result<Request> request = ParseRequest("GET /api/v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "serve/http/message.h"

namespace kibitz::serve {

struct RequestLimits {
  size_t header_bytes = 16 * 1024;
  size_t body_bytes = 1024 * 1024;
};

// A whole request in memory, as tests and the fuzz target have it; the server parses as bytes come,
// with the same parser and limits.
Result<Request> ParseRequest(std::string_view bytes, const RequestLimits& limits = {});

// The path and query of a request's target, checked and decoded into `request`; the reason where it
// is not taken, "" where it is.
std::string SetTarget(std::string_view target, Request& request);

}  // namespace kibitz::serve
