// Who may ask: a request from another site, through a name that is not ours, or without the token
// is refused before a handler sees it.
//
//   const Gate gate({.hosts = {"127.0.0.1:8080", "localhost:8080"}});
//   if (auto refusal = gate.Refuse(request)) Use(*refusal);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"

namespace kibitz::serve {

struct GateOptions {
  // What the header Host may be. A page of another site that lets its name point here (DNS
  // rebinding) sends that name, and is refused.
  std::vector<std::string> hosts = {};
  bool any_address = false;  // Also numeric addresses: they cannot be rebound.
  std::string token = {};    // "": none is asked for.
};

class Gate {
 public:
  explicit Gate(GateOptions options);

  // The refusal; nothing where the request may pass. A page that is opened with ?token=... gets a
  // cookie and is sent to the same address without it.
  std::optional<Response> Refuse(const Request& request) const;

 private:
  bool KnownHost(std::string_view host) const;
  bool HasToken(const Request& request) const;

  GateOptions options_;
};

// Equal, in a time that does not tell how much of it.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace kibitz::serve
