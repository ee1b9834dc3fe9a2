# The page of 'kibitz serve': built from web/ by vite and put into the program, plain and gzipped.

option(KIBITZ_WEB "Put the page of 'kibitz serve' into the program (needs node and npm)" ON)

# kibitz_page(target): adds the generated page_files.cc to the target.
function(kibitz_page target)
  set(out ${CMAKE_BINARY_DIR}/web)
  if(NOT KIBITZ_WEB)
    file(CONFIGURE OUTPUT ${out}/page_files.cc CONTENT
"#include \"serve/page.h\"
namespace kibitz::serve {
std::span<const PageFile> PageFiles() { return {}; }
}
")
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/* ${CMAKE_SOURCE_DIR}/web/public/*)
    add_custom_command(OUTPUT ${out}/page_files.cc
                       COMMAND node build.mjs ${out}
                       WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/web
                       DEPENDS ${sources} ${CMAKE_SOURCE_DIR}/web/index.html ${CMAKE_SOURCE_DIR}/web/build.mjs
                               ${CMAKE_SOURCE_DIR}/web/vite.config.ts ${CMAKE_SOURCE_DIR}/web/package-lock.json
                       COMMENT "Building the page (vite)" VERBATIM)
  endif()
  set_source_files_properties(${out}/page_files.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
                              SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${out}/page_files.cc)
endfunction()
