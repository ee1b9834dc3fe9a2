# What 'make install' and 'make deb' put where, in three components:
#   kibitz        the program (in packages once for each level of the processor), the models and openings that ship, configs, DuckDB's library, shell completion, documentation
#   kibitz-train  the program that trains (needs libtorch)
#   libkibitz-dev headers, static libraries and the CMake package: find_package(kibitz)

include(CMakePackageConfigHelpers)

set(KIBITZ_SHARE ${CMAKE_INSTALL_DATADIR}/kibitz)
install(TARGETS kibitz RUNTIME COMPONENT kibitz)
if(KIBITZ_TORCH)
  install(TARGETS kibitz-train RUNTIME COMPONENT kibitz-train)
endif()
install(DIRECTORY models configs data DESTINATION ${KIBITZ_SHARE} COMPONENT kibitz)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT kibitz)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT kibitz)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT kibitz)
if(KIBITZ_DUCKDB_LIBRARY MATCHES "node_modules" AND EXISTS ${KIBITZ_DUCKDB_LIBRARY})
  # Debian has no DuckDB: the library comes along, where src/io/tables/duckdb_api.cc looks for it.
  install(FILES ${KIBITZ_DUCKDB_LIBRARY} DESTINATION lib/kibitz COMPONENT kibitz)
endif()

# Completion for three shells, written by the program itself.
foreach(place bash:bash-completion/completions/kibitz zsh:zsh/vendor-completions/_kibitz
              fish:fish/vendor_completions.d/kibitz.fish)
  string(REGEX MATCH "^([a-z]+):(.*)/([^/]+)$" match ${place})
  set(file ${CMAKE_BINARY_DIR}/completion/${CMAKE_MATCH_1}/${CMAKE_MATCH_3})
  install(CODE "
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/completion/${CMAKE_MATCH_1})
    execute_process(COMMAND $<TARGET_FILE:kibitz> completion ${CMAKE_MATCH_1}
                    OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)" COMPONENT kibitz)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${CMAKE_MATCH_2} COMPONENT kibitz)
endforeach()

# The torch-free libraries for other programs: kibitz::kibitz is all of them. Their headers choose code by the
# instructions of the machine, so who uses them compiles for the same ones.
get_property(libraries GLOBAL PROPERTY KIBITZ_INSTALLED_LIBRARIES)
list(REMOVE_ITEM libraries kibitz_cli)  # Commands, not a library for others.
add_library(kibitz_all INTERFACE)
target_link_libraries(kibitz_all INTERFACE ${libraries})
set_target_properties(kibitz_all PROPERTIES EXPORT_NAME kibitz)
foreach(library ${libraries})
  string(REPLACE "kibitz_" "" short ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${short})
endforeach()
target_compile_features(kibitz_base PUBLIC cxx_std_20)
target_compile_options(kibitz_base INTERFACE $<INSTALL_INTERFACE:${KIBITZ_ARCH}>)
install(TARGETS kibitz_all ${libraries} EXPORT kibitz COMPONENT libkibitz-dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/kibitz
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kibitz)
install(EXPORT kibitz NAMESPACE kibitz:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kibitz
        FILE kibitz-targets.cmake COMPONENT libkibitz-dev)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kibitz COMPONENT libkibitz-dev
        FILES_MATCHING PATTERN "*.h" PATTERN "learn" EXCLUDE PATTERN "net" EXCLUDE PATTERN "cli" EXCLUDE
        PATTERN "beast_request.h" EXCLUDE)  # The one header that needs Boost; only the server includes it.
install(DIRECTORY src/learn/options DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kibitz/learn COMPONENT libkibitz-dev
        FILES_MATCHING PATTERN "*.h")
configure_package_config_file(cmake/kibitz-config.cmake.in ${CMAKE_BINARY_DIR}/kibitz-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kibitz)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kibitz-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/kibitz-config.cmake ${CMAKE_BINARY_DIR}/kibitz-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kibitz COMPONENT libkibitz-dev)

# Everything that is installed, without tests and benches.
get_property(level_programs GLOBAL PROPERTY KIBITZ_LEVEL_PROGRAMS)
get_property(python_module GLOBAL PROPERTY KIBITZ_PYTHON_MODULE)
add_custom_target(kibitz_installed DEPENDS kibitz ${libraries} ${python_module} ${level_programs} $<$<BOOL:${KIBITZ_TORCH}>:kibitz-train>)

# Debian packages, one for each component: 'make deb'.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Kibitz maintainers <maintainers@kibitz.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_SECTION games)
set(CPACK_COMPONENTS_ALL kibitz libkibitz-dev)
set(CPACK_DEBIAN_KIBITZ_PACKAGE_NAME kibitz)
set(CPACK_DEBIAN_KIBITZ_DESCRIPTION "The program: plays chess and 2048 with such networks, also as a UCI engine,
measures them, and makes training records. Models that play are included.")
set(CPACK_DEBIAN_KIBITZ_PACKAGE_SUGGESTS "stockfish, kibitz-train")
if(KIBITZ_TORCH)
  list(APPEND CPACK_COMPONENTS_ALL kibitz-train)
  set(CPACK_DEBIAN_KIBITZ-TRAIN_PACKAGE_NAME kibitz-train)
  set(CPACK_DEBIAN_KIBITZ-TRAIN_DESCRIPTION "The program that runs the training commands of kibitz, with libtorch.")
  # Without OpenBLAS libtorch multiplies matrices 100 times slower.
  set(CPACK_DEBIAN_KIBITZ-TRAIN_PACKAGE_DEPENDS "kibitz (= ${PROJECT_VERSION}), libopenblas0")
endif()
set(CPACK_DEBIAN_LIBKIBITZ-DEV_PACKAGE_NAME libkibitz-dev)
set(CPACK_DEBIAN_LIBKIBITZ-DEV_DESCRIPTION "The C++ library: headers, static libraries and a CMake package for
find_package(kibitz).")
# Its models, and DuckDB's library for Parquet files.
set(CPACK_DEBIAN_LIBKIBITZ-DEV_PACKAGE_RECOMMENDS "kibitz (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBKIBITZ-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBKIBITZ-DEV_PACKAGE_DEPENDS
    "libfmt-dev, nlohmann-json3-dev, libyaml-cpp-dev, zlib1g-dev, libzstd-dev, libsimdjson-dev, libsqlite3-dev")
include(CPack)
