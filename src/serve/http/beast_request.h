// What request_parser.cc and server.cc share: Boost.Beast's request as ours. Sees Boost.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "serve/http/request_parser.h"

namespace kibitz::serve {

using BeastParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

void SetLimits(BeastParser& parser, const RequestLimits& limits);
Result<Request> RequestOf(boost::beast::http::request<boost::beast::http::string_body>&& message);

}  // namespace kibitz::serve
