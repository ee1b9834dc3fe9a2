// The part of DuckDB's C interface that Kibitz uses. The library is loaded on first use: it has 60
// MB, and most commands never read a Parquet file. Only parquet*.cc and duckdb_query.cc include
// this.
//
//   const DuckDbApi& duckdb = DuckDb();   // throws Error with the remedy when there is no library
//   duckdb.connect(database, &connection);
//
// The types are declared here, so that the build needs no DuckDB; the interface is stable between
// versions. When DuckDB's own header is included first, its types are used instead:
// duckdb_api_test.cc compares the two that way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kibitz::io {

#ifndef DUCKDB_C_API
using idx_t = uint64_t;
using duckdb_database = struct DuckDbDatabaseHandle*;
using duckdb_connection = struct DuckDbConnectionHandle*;
using duckdb_config = struct DuckDbConfigHandle*;
using duckdb_prepared_statement = struct DuckDbStatementHandle*;
using duckdb_pending_result = struct DuckDbPendingHandle*;
using duckdb_data_chunk = struct DuckDbChunkHandle*;
using duckdb_vector = struct DuckDbVectorHandle*;
using duckdb_logical_type = struct DuckDbLogicalTypeHandle*;
using duckdb_table_function = struct DuckDbTableFunctionHandle*;
using duckdb_bind_info = struct DuckDbBindHandle*;
using duckdb_init_info = struct DuckDbInitHandle*;
using duckdb_scalar_function = struct DuckDbScalarFunctionHandle*;
using duckdb_function_info = struct DuckDbFunctionHandle*;
using duckdb_delete_callback_t = void (*)(void*);
using duckdb_table_function_bind_t = void (*)(duckdb_bind_info);
using duckdb_table_function_init_t = void (*)(duckdb_init_info);
using duckdb_table_function_t = void (*)(duckdb_function_info, duckdb_data_chunk);
using duckdb_scalar_function_t = void (*)(duckdb_function_info, duckdb_data_chunk, duckdb_vector);

enum duckdb_state { DuckDBSuccess = 0, DuckDBError = 1 };
enum duckdb_type {
  DUCKDB_TYPE_BOOLEAN = 1,
  DUCKDB_TYPE_BIGINT = 5,
  DUCKDB_TYPE_DOUBLE = 11,
  DUCKDB_TYPE_VARCHAR = 17,
  DUCKDB_TYPE_ANY = 34,
};

// Passed by value; all but the last field are leftovers.
struct duckdb_result {
  uint64_t unused[5];
  void* internal_data;
};
#endif

// A text cell: up to 12 bytes sit in place, longer ones behind the pointer.
struct DuckDbText {
  static constexpr uint32_t kInPlace = 12;
  uint32_t length;
  char head[4];
  union {
    char tail[8];
    const char* pointer;
  };
  const char* data() const { return length <= kInPlace ? head : pointer; }
};
static_assert(sizeof(DuckDbText) == 16);

// result, name without "duckdb_", arguments.
#define KIBITZ_DUCKDB_FUNCTIONS(X)                                                                 \
  X(duckdb_state, create_config, (duckdb_config*))                                                 \
  X(duckdb_state, set_config, (duckdb_config, const char*, const char*))                           \
  X(void, destroy_config, (duckdb_config*))                                                        \
  X(duckdb_state, open_ext, (const char*, duckdb_database*, duckdb_config, char**))                \
  X(void, close, (duckdb_database*))                                                               \
  X(duckdb_state, connect, (duckdb_database, duckdb_connection*))                                  \
  X(void, disconnect, (duckdb_connection*))                                                        \
  X(void, free, (void*))                                                                           \
  X(const char*, library_version, ())                                                              \
  X(duckdb_state, query, (duckdb_connection, const char*, duckdb_result*))                         \
  X(duckdb_state, prepare, (duckdb_connection, const char*, duckdb_prepared_statement*))           \
  X(const char*, prepare_error, (duckdb_prepared_statement))                                       \
  X(void, destroy_prepare, (duckdb_prepared_statement*))                                           \
  X(duckdb_state, pending_prepared_streaming, (duckdb_prepared_statement, duckdb_pending_result*)) \
  X(const char*, pending_error, (duckdb_pending_result))                                           \
  X(duckdb_state, execute_pending, (duckdb_pending_result, duckdb_result*))                        \
  X(void, destroy_pending, (duckdb_pending_result*))                                               \
  X(const char*, result_error, (duckdb_result*))                                                   \
  X(void, destroy_result, (duckdb_result*))                                                        \
  X(duckdb_data_chunk, fetch_chunk, (duckdb_result))                                               \
  X(void, destroy_data_chunk, (duckdb_data_chunk*))                                                \
  X(idx_t, data_chunk_get_size, (duckdb_data_chunk))                                               \
  X(void, data_chunk_set_size, (duckdb_data_chunk, idx_t))                                         \
  X(duckdb_vector, data_chunk_get_vector, (duckdb_data_chunk, idx_t))                              \
  X(void*, vector_get_data, (duckdb_vector))                                                       \
  X(uint64_t*, vector_get_validity, (duckdb_vector))                                               \
  X(void, vector_ensure_validity_writable, (duckdb_vector))                                        \
  X(void, vector_assign_string_element_len, (duckdb_vector, idx_t, const char*, idx_t))            \
  X(void, validity_set_row_invalid, (uint64_t*, idx_t))                                            \
  X(duckdb_logical_type, create_logical_type, (duckdb_type))                                       \
  X(void, destroy_logical_type, (duckdb_logical_type*))                                            \
  X(duckdb_table_function, create_table_function, ())                                              \
  X(void, destroy_table_function, (duckdb_table_function*))                                        \
  X(void, table_function_set_name, (duckdb_table_function, const char*))                           \
  X(void, table_function_set_extra_info, (duckdb_table_function, void*, duckdb_delete_callback_t)) \
  X(void, table_function_set_bind, (duckdb_table_function, duckdb_table_function_bind_t))          \
  X(void, table_function_set_init, (duckdb_table_function, duckdb_table_function_init_t))          \
  X(void, table_function_set_function, (duckdb_table_function, duckdb_table_function_t))           \
  X(duckdb_state, register_table_function, (duckdb_connection, duckdb_table_function))             \
  X(void*, bind_get_extra_info, (duckdb_bind_info))                                                \
  X(void, bind_add_result_column, (duckdb_bind_info, const char*, duckdb_logical_type))            \
  X(void, init_set_max_threads, (duckdb_init_info, idx_t))                                         \
  X(void*, function_get_extra_info, (duckdb_function_info))                                        \
  X(void, function_set_error, (duckdb_function_info, const char*))                                 \
  X(duckdb_scalar_function, create_scalar_function, ())                                            \
  X(void, destroy_scalar_function, (duckdb_scalar_function*))                                      \
  X(void, scalar_function_set_name, (duckdb_scalar_function, const char*))                         \
  X(void, scalar_function_add_parameter, (duckdb_scalar_function, duckdb_logical_type))            \
  X(void, scalar_function_set_varargs, (duckdb_scalar_function, duckdb_logical_type))              \
  X(void, scalar_function_set_return_type, (duckdb_scalar_function, duckdb_logical_type))          \
  X(void, scalar_function_set_special_handling, (duckdb_scalar_function))                          \
  X(void, scalar_function_set_volatile, (duckdb_scalar_function))                                  \
  X(void, scalar_function_set_function, (duckdb_scalar_function, duckdb_scalar_function_t))        \
  X(void, scalar_function_set_error, (duckdb_function_info, const char*))                          \
  X(duckdb_state, register_scalar_function, (duckdb_connection, duckdb_scalar_function))

struct DuckDbApi {
// NOLINTNEXTLINE(bugprone-macro-parentheses): parts of a declaration.
#define KIBITZ_DECLARE(result, name, arguments) result(*name) arguments = nullptr;
  KIBITZ_DUCKDB_FUNCTIONS(KIBITZ_DECLARE)
#undef KIBITZ_DECLARE
};

// The functions of the installed library, loaded at the first call; safe from any thread.
const DuckDbApi& DuckDb();

// Where DuckDb() looks, in order: the path known to the build, beside the executable, the system's.
std::vector<std::string> DuckDbPlaces();

// Loads the first library of the list that can be loaded. Throws Error that names them all.
DuckDbApi LoadDuckDb(const std::vector<std::string>& places);

}  // namespace kibitz::io
