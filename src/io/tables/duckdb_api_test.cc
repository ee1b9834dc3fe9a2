// Our declarations of DuckDB's C interface against its own header, where that is installed.
// Renamed, because in this file the table has the header's types.
#if __has_include(<duckdb.h>)
#include <duckdb.h>
#endif
#define DuckDbApi DuckDbApiOfHeader
#include "io/tables/duckdb_api.h"
#undef DuckDbApi

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace kibitz::io {
namespace {

#ifdef DUCKDB_C_API
#define KIBITZ_COMPARE(result, name, arguments)                                              \
  static_assert(std::is_same_v<decltype(DuckDbApiOfHeader::name), decltype(&duckdb_##name)>, \
                #name " is declared otherwise by duckdb.h");
KIBITZ_DUCKDB_FUNCTIONS(KIBITZ_COMPARE)
static_assert(DUCKDB_TYPE_BOOLEAN == 1 && DUCKDB_TYPE_BIGINT == 5 && DUCKDB_TYPE_DOUBLE == 11 &&
              DUCKDB_TYPE_VARCHAR == 17 && DUCKDB_TYPE_ANY == 34);
static_assert(DuckDBSuccess == 0 && DuckDBError == 1);
static_assert(sizeof(duckdb_result) == 48 && offsetof(duckdb_result, internal_data) == 40);
#endif

TEST(DuckDbApi, TextCellsHaveTheLibrarysLayout) {
#ifdef DUCKDB_C_API
  EXPECT_EQ(sizeof(DuckDbText), sizeof(duckdb_string_t));
  EXPECT_EQ(offsetof(DuckDbText, pointer), offsetof(duckdb_string_t, value.pointer.ptr));
  EXPECT_EQ(offsetof(DuckDbText, head), offsetof(duckdb_string_t, value.inlined.inlined));
#else
  GTEST_SKIP() << "duckdb.h is not installed, so there is nothing to compare with";
#endif
}

}  // namespace
}  // namespace kibitz::io
