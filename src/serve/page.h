// The page, inside the program: the files that 'vite build' made of web/, each plain and gzipped.
//
//   const Response response = PageResponse(request);
#pragma once

#include <span>
#include <string_view>

#include "serve/http/message.h"

namespace kibitz::serve {

struct PageFile {
  std::string_view path;  // "/index.html", "/assets/index-1a2b3c.js"
  std::string_view type;
  std::string_view bytes;
  std::string_view gzipped;
};

// From the generated page_files.cc; empty in a build without the page.
std::span<const PageFile> PageFiles();

// The file, or index.html for the address of one of the pages ("/think", ...); else 404.
Response PageResponse(const Request& request);

}  // namespace kibitz::serve
