# One package that is fast on every x86-64: what users call is compiled for x86-64-v2, and code that the processor
# matters for (HOT and LEVELS libraries) is compiled once more for each level here. The program is linked once for each
# level too, into cpu/LEVEL; src/base/processor.h chooses. Other code is compiled once and shared by all of them.

set(KIBITZ_LEVEL_FLAGS_v2 -march=x86-64-v2)
# Zen 1 and 2 have BMI2, but their PEXT is slow.
set(KIBITZ_LEVEL_FLAGS_v3 -march=x86-64-v3 -DKIBITZ_SLOW_PEXT)
set(KIBITZ_LEVEL_FLAGS_v3-vnni -march=x86-64-v3 -mavxvnni)
set(KIBITZ_LEVEL_FLAGS_v4 -march=x86-64-v4)
set(KIBITZ_LEVEL_FLAGS_v4-vnni -march=x86-64-v4 -mavx512vnni)

set(KIBITZ_LEVEL "" CACHE STRING "Compile everything for one level: v2, v3, v3-vnni, v4 or v4-vnni")
set(all_levels "")
if(KIBITZ_LEVEL)
  if(NOT DEFINED KIBITZ_LEVEL_FLAGS_${KIBITZ_LEVEL})
    message(FATAL_ERROR "KIBITZ_LEVEL is '${KIBITZ_LEVEL}': expected v2, v3, v3-vnni, v4 or v4-vnni")
  endif()
elseif(KIBITZ_PORTABLE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(all_levels v3 v3-vnni v4 v4-vnni)
endif()
set(KIBITZ_LEVELS "${all_levels}" CACHE STRING "Levels that get a program of their own besides the one users call")

# kibitz_level_libraries(name torch sources links): the library once more for each level.
function(kibitz_level_libraries name torch sources links)
  foreach(level ${KIBITZ_LEVELS})
    add_library(${name}_${level} STATIC EXCLUDE_FROM_ALL ${sources})
    kibitz_configure(${name}_${level} ${torch} LEVEL ${level})
    target_link_libraries(${name}_${level} PRIVATE ${links})
    target_compile_options(${name}_${level} PRIVATE -O3)
    if(torch)
      set_property(GLOBAL APPEND PROPERTY KIBITZ_TORCH_LEVEL_LIBRARIES_${level} ${name}_${level})
    else()
      set_property(GLOBAL APPEND PROPERTY KIBITZ_LEVEL_LIBRARIES_${level} ${name}_${level})
    endif()
  endforeach()
endfunction()

# kibitz_level_programs(name torch sources links): the program once more for each level, in cpu/LEVEL. Its level's
# libraries are linked whole and first, so nothing is left for the linker to take from those of x86-64-v2.
function(kibitz_level_programs name torch sources links)
  foreach(level ${KIBITZ_LEVELS})
    get_property(libraries GLOBAL PROPERTY KIBITZ_LEVEL_LIBRARIES_${level})
    if(torch)
      get_property(more GLOBAL PROPERTY KIBITZ_TORCH_LEVEL_LIBRARIES_${level})
      list(APPEND libraries ${more})
    endif()
    list(JOIN libraries "," joined)
    add_executable(${name}_${level} ${sources})
    kibitz_configure(${name}_${level} ${torch})
    target_link_libraries(${name}_${level} PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${joined}>" ${links})
    set_target_properties(${name}_${level} PROPERTIES OUTPUT_NAME ${name}
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/cpu/${level})
    install(TARGETS ${name}_${level} RUNTIME DESTINATION lib/kibitz/cpu/${level} COMPONENT ${name})
    set_property(GLOBAL APPEND PROPERTY KIBITZ_LEVEL_PROGRAMS ${name}_${level})
  endforeach()
  if(KIBITZ_LEVELS)
    target_compile_definitions(${name} PRIVATE KIBITZ_LAUNCHER)
  endif()
endfunction()
