#include "io/tables/duckdb_api.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/shipped.h"

namespace kibitz::io {
namespace {

void Resolve(void* library, const std::string& path, const char* name, void** target) {
  *target = dlsym(library, name);
  if (*target == nullptr) {
    throw Error("{}: has no function {}; Kibitz needs DuckDB 1.3 or newer: run 'make setup'", path,
                name);
  }
}

}  // namespace

std::vector<std::string> DuckDbPlaces() {
  const std::string program = ProgramFolder();
  return {program + "/libduckdb.so", program + "/../lib/kibitz/libduckdb.so",
          KIBITZ_INSTALLED_DUCKDB, KIBITZ_DUCKDB_LIBRARY, "libduckdb.so"};
}

DuckDbApi LoadDuckDb(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    DuckDbApi api;
#define KIBITZ_RESOLVE(result, name, arguments) \
  Resolve(library, place, "duckdb_" #name, reinterpret_cast<void**>(&api.name));
    KIBITZ_DUCKDB_FUNCTIONS(KIBITZ_RESOLVE)
#undef KIBITZ_RESOLVE
    return api;  // The library stays loaded to the end of the process.
  }
  throw Error(
      "Parquet files need DuckDB's library, and none of these could be loaded: {}; run 'make "
      "setup'",
      fmt::join(places, ", "));
}

const DuckDbApi& DuckDb() {
  static const DuckDbApi api = LoadDuckDb(DuckDbPlaces());
  return api;
}

}  // namespace kibitz::io
