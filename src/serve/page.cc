#include "serve/page.h"

#include <algorithm>
#include <array>

namespace kibitz::serve {
namespace {

constexpr std::array<std::string_view, 7> kPages = {"/",     "/think",    "/arena", "/data",
                                                    "/2048", "/training", "/models"};

constexpr std::string_view kNoPage =
    "<!doctype html><title>Kibitz</title><h1>Kibitz</h1><p>This program was built without its page "
    "(KIBITZ_WEB=OFF). The interface under /api/v1 is there: see docs/API.md.</p>";

Response ResponseOf(const PageFile& file, const Request& request) {
  const bool gzip = request.Header("accept-encoding").find("gzip") != std::string_view::npos &&
                    file.gzipped.size() < file.bytes.size();
  Response response{.type = std::string(file.type),
                    .body = std::string(gzip ? file.gzipped : file.bytes),
                    .headers = {{"Vary", "Accept-Encoding"}}};
  if (gzip) response.headers.emplace_back("Content-Encoding", "gzip");
  // Names in /assets hold a hash of the content.
  response.headers.emplace_back("Cache-Control", file.path.starts_with("/assets/")
                                                     ? "public, max-age=31536000, immutable"
                                                     : "no-cache");
  return response;
}

}  // namespace

Response PageResponse(const Request& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    return ErrorResponse(405, "pages take GET");
  }
  const bool page = std::find(kPages.begin(), kPages.end(), request.path) != kPages.end();
  const std::string_view path = page ? std::string_view("/index.html") : request.path;
  for (const PageFile& file : PageFiles()) {
    if (file.path == path) return ResponseOf(file, request);
  }
  if (page) return {.type = "text/html; charset=utf-8", .body = std::string(kNoPage)};
  return ErrorResponse(404, "there is no such page",
                       "the pages are /think, /arena, /data, /2048, "
                       "/training and /models");
}

}  // namespace kibitz::serve
