# How everything is compiled, and the three words the CMakeLists use: kibitz_library,
# kibitz_program, kibitz_test.

option(KIBITZ_PORTABLE "Run on any x86-64-v2 machine instead of tuning for this one" OFF)
option(KIBITZ_TORCH "Build what learns (needs libtorch)" ON)
option(KIBITZ_PYTHON "Build the Python module (needs pybind11)" ON)
option(KIBITZ_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(KIBITZ_UNITY "Compile several files of a folder as one: a third of the time" ON)
set(KIBITZ_SANITIZE "" CACHE STRING "Sanitizers, such as address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")  # CHECK stays on; nothing uses assert.

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The precompiled header's time stamp would make every ccache look-up miss.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime
      CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
endif()

include(KibitzLevels)
set(KIBITZ_ARCH -march=native)
if(KIBITZ_LEVEL)
  set(KIBITZ_ARCH ${KIBITZ_LEVEL_FLAGS_${KIBITZ_LEVEL}})
elseif(KIBITZ_PORTABLE)
  set(KIBITZ_ARCH "")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(KIBITZ_ARCH ${KIBITZ_LEVEL_FLAGS_v2})
  endif()
endif()
add_compile_options(${KIBITZ_ARCH})
if(KIBITZ_SANITIZE)
  # -g1: functions and lines, all that a report shows.
  add_compile_options(-fsanitize=${KIBITZ_SANITIZE} -O1 -fno-omit-frame-pointer -g1
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KIBITZ_SANITIZE})
  if(KIBITZ_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ThreadSanitizer does not follow fences, and says so. Ours (nn/kernels/team.cc) orders atomics alone.
    add_compile_options(-Wno-tsan)
  endif()
endif()

if(KIBITZ_SANITIZE OR KIBITZ_LEVELS)
  # Python itself has no sanitizers; in packages, programs choose their code, and a module cannot.
  set(KIBITZ_PYTHON OFF)
endif()

if(KIBITZ_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # The fuzzer sees which branches an input takes.
endif()

find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(zstd REQUIRED)
find_package(simdjson REQUIRED)
find_package(SQLite3 REQUIRED)
# Parquet: the system's DuckDB, else the one scripts/setup gets. Loaded at run time, when needed.
find_library(KIBITZ_DUCKDB_LIBRARY duckdb)
if(NOT KIBITZ_DUCKDB_LIBRARY)
  set(KIBITZ_DUCKDB_LIBRARY
      ${CMAKE_SOURCE_DIR}/node_modules/@duckdb/node-bindings-linux-x64/libduckdb.so)
endif()
if(KIBITZ_TORCH)
  find_package(Torch REQUIRED)
  # torch's loops are templates over OpenMP: compiled without it they run on one thread.
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  separate_arguments(KIBITZ_TORCH_FLAGS UNIX_COMMAND "${TORCH_CXX_FLAGS} ${OpenMP_CXX_FLAGS}")
endif()

option(KIBITZ_TESTS "Build the tests and benches (needs GoogleTest)" ON)
if(KIBITZ_TESTS)
  find_package(GTest REQUIRED)
  enable_testing()
  include(GoogleTest)
endif()

add_compile_definitions(KIBITZ_VERSION="${PROJECT_VERSION}")
set(KIBITZ_WARNINGS -Wall -Wextra -Wconversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlaps and overflows inside its own std::string where there are none.
  list(APPEND KIBITZ_WARNINGS -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
       -Wno-stringop-overread)
endif()

# Our own code: include root, warnings, and one of three precompiled headers: torch for what learns,
# GoogleTest for tests, JSON and formatting for the rest. LEVEL: see KibitzLevels.cmake.
function(kibitz_configure target torch)
  cmake_parse_arguments(ARG "TEST" "LEVEL" "" ${ARGN})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
  target_compile_options(${target} PRIVATE ${KIBITZ_WARNINGS})
  if(NOT torch AND NOT ARG_TEST AND NOT target MATCHES "^kibitz_test_pch")
    # The libraries are linked into programs and into the Python module.
    target_compile_options(${target} PRIVATE -fPIC -fno-semantic-interposition)
  endif()
  set(pch kibitz_pch)
  if(torch)
    target_include_directories(${target} SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
    target_link_libraries(${target} PUBLIC ${TORCH_LIBRARIES} ${OpenMP_CXX_LIBRARIES})
    target_compile_options(${target} PRIVATE ${KIBITZ_TORCH_FLAGS})
    set(pch kibitz_torch_pch)
  elseif(ARG_TEST)
    set(pch kibitz_test_pch)
  endif()
  if(ARG_LEVEL)
    target_compile_options(${target} PRIVATE ${KIBITZ_LEVEL_FLAGS_${ARG_LEVEL}})
    set(pch ${pch}_${ARG_LEVEL})
  endif()
  if(NOT target MATCHES "_pch")
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
  if(KIBITZ_UNITY AND NOT target MATCHES "_pch")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # GCC takes every file but the first for a header, and warns of its anonymous types.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# kibitz_pch_library(name torch HEADERS ... LINK ...): a precompiled header that targets reuse, and one for each level.
function(kibitz_pch_library name torch)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cc CONTENT "")
  foreach(level "" ${KIBITZ_LEVELS})
    set(target ${name})
    set(options "")
    if(level)
      set(target ${name}_${level})
      set(options LEVEL ${level})
    endif()
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${name}.cc)
    target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
    target_link_libraries(${target} PUBLIC ${ARG_LINK})
    kibitz_configure(${target} ${torch} ${options})
  endforeach()
endfunction()

set(KIBITZ_COMMON_HEADERS <fmt/format.h> <nlohmann/json.hpp> <algorithm> <array> <filesystem> <functional> <memory>
    <optional> <span> <string> <vector>)
kibitz_pch_library(kibitz_pch FALSE HEADERS ${KIBITZ_COMMON_HEADERS} LINK fmt::fmt nlohmann_json::nlohmann_json)
if(KIBITZ_TESTS)
  kibitz_pch_library(kibitz_test_pch FALSE HEADERS ${KIBITZ_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h>
                     LINK fmt::fmt nlohmann_json::nlohmann_json GTest::gmock)
endif()
if(KIBITZ_TORCH)
  kibitz_pch_library(kibitz_torch_pch TRUE HEADERS <torch/torch.h>)
endif()

# What tests share: where data is, temporary folders, running programs.
if(KIBITZ_TESTS)
  add_library(kibitz_test_support STATIC ${CMAKE_SOURCE_DIR}/tests/support/test_data.cc
              ${CMAKE_SOURCE_DIR}/tests/support/corruption.cc ${CMAKE_SOURCE_DIR}/tests/support/child.cc)
  kibitz_configure(kibitz_test_support FALSE)
  target_include_directories(kibitz_test_support PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_definitions(kibitz_test_support PRIVATE KIBITZ_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                                                         KIBITZ_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(kibitz_test_support PUBLIC kibitz_base GTest::gtest)
endif()

# kibitz_library(games/chess [TORCH] [HOT] [LEVELS] LINK ... [TEST_LINK ...] [SEPARATE file.cc ...]): the folder's .cc files
# as kibitz_games_chess, its *_test.cc files as the test program kibitz_games_chess_test. HOT code gets -O3.
# HOT and LEVELS: in packages, compiled for each level of the processor.
# SEPARATE files are compiled alone: they use a name that another file of the folder uses for something else.
function(kibitz_library folder)
  cmake_parse_arguments(ARG "TORCH;HOT;LEVELS" "" "LINK;TEST_LINK;SEPARATE" ${ARGN})
  string(REPLACE "/" "_" name kibitz_${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*_test.cc)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  list(TRANSFORM ARG_SEPARATE PREPEND ${CMAKE_SOURCE_DIR}/src/${folder}/)
  set_source_files_properties(${ARG_SEPARATE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(${name} STATIC ${sources})
  kibitz_configure(${name} ${ARG_TORCH})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(NOT ARG_TORCH)
    set_property(GLOBAL APPEND PROPERTY KIBITZ_INSTALLED_LIBRARIES ${name})
  endif()
  if(ARG_HOT AND NOT KIBITZ_SANITIZE)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O3>)
  endif()
  if(ARG_HOT OR ARG_LEVELS)
    kibitz_level_libraries(${name} ${ARG_TORCH} "${sources}" "${ARG_LINK}")
  endif()
  if(tests AND KIBITZ_TESTS)
    set(torch "")
    if(ARG_TORCH)
      set(torch TORCH)
    endif()
    kibitz_test(${name}_test ${torch} SOURCES ${tests} LINK ${name} ${ARG_TEST_LINK})
  endif()
endfunction()

# kibitz_program(kibitz SOURCES file-or-pattern ... [TORCH] LINK ...)
function(kibitz_program name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;LINK" ${ARGN})
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/)
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES})
  add_executable(${name} ${sources})
  kibitz_configure(${name} ${ARG_TORCH})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  kibitz_level_programs(${name} ${ARG_TORCH} "${sources}" "${ARG_LINK}")
endfunction()

# kibitz_test(name [TORCH] SOURCES ... LINK ... [LABELS ...] [TIMEOUT s]): a GoogleTest program, each test
# on its own under CTest. Tests find data through these variables; both may be set from outside.
function(kibitz_test name)
  cmake_parse_arguments(ARG "TORCH" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(KIBITZ_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 4")  # Sanitizers take 2 to 15 times as long.
  endif()
  add_executable(${name} ${ARG_SOURCES})
  kibitz_configure(${name} ${ARG_TORCH} TEST)
  if(NOT KIBITZ_SANITIZE)
    target_compile_options(${name} PRIVATE -O1)  # A third less to compile; tests are no hot code.
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINK} kibitz_base kibitz_test_support GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(ARG_TORCH)
    # OpenMP's threads would spin while they wait, and starve each other when tests run side by side.
    list(APPEND properties ENVIRONMENT OMP_WAIT_POLICY=passive)
  endif()
  if(ARG_LABELS)
    list(APPEND properties LABELS ${ARG_LABELS})
  endif()
  gtest_discover_tests(${name} PROPERTIES ${properties} DISCOVERY_TIMEOUT 60)
endfunction()
