# The kinds of target this project has, each with one function: rooms of core, plugins, tests.

include(PlugradPlugin)
include(PlugradEmbed)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(launcher ${CCACHE_PROGRAM})
  if(PLUGRAD_PRECOMPILE)  # the standard headers alone: they change with the compiler, which ccache sees
    set(launcher /usr/bin/env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  endif()
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# plugrad_unite(TARGET): compiles the files of TARGET in batches of PLUGRAD_UNITY, in the order of its list. Names of
# anonymous namespaces must differ for it: tools/check/unity.py.
function(plugrad_unite target)
  if(NOT PLUGRAD_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${PLUGRAD_UNITY})
  if( CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # a batch is one file of one program
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

# plugrad_precompile(TARGET [HEADERS…]): where PLUGRAD_PRECOMPILE is on, TARGET reads the standard headers that most
# files include from one precompiled file: from that of all libraries, or from one of its own with these headers more.
set(PLUGRAD_STANDARD_HEADERS
  <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex> <numeric>
  <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <vector>)
if(PLUGRAD_PRECOMPILE)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "")
endif()
set(PLUGRAD_PRECOMPILED_OPTIONS -pthread)  # equal in the file and in all that reads it
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND PLUGRAD_PRECOMPILED_OPTIONS -fpch-preprocess)  # ccache looks into the precompiled file by it
endif()
function(plugrad_precompile target)
  if(NOT PLUGRAD_PRECOMPILE)
    return()
  endif()
  target_compile_options(${target} PRIVATE ${PLUGRAD_PRECOMPILED_OPTIONS})
  if(ARGN)
    target_precompile_headers(${target} PRIVATE ${PLUGRAD_STANDARD_HEADERS} ${ARGN})
    return()
  endif()
  if(NOT TARGET plugrad_precompiled)
    # Of no definition: one that only some targets have would make it useless to the others.
    add_library(plugrad_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
    target_compile_options(plugrad_precompiled PRIVATE ${PLUGRAD_PRECOMPILED_OPTIONS})
    target_precompile_headers(plugrad_precompiled PRIVATE ${PLUGRAD_STANDARD_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM plugrad_precompiled)
endfunction()

# plugrad_precompile_test(TARGET): the same for a test or an example, with the headers of GoogleTest. Its own code is
# optimised less, which compiles in three quarters of the time; the code under test is not.
set(PLUGRAD_TEST_OPTIONS ${PLUGRAD_PRECOMPILED_OPTIONS} -O1)
function(plugrad_precompile_test target)
  if(NOT PLUGRAD_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET plugrad_precompiled_test)
    add_library(plugrad_precompiled_test OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
    target_link_libraries(plugrad_precompiled_test PRIVATE GTest::gtest GTest::gmock)
    set_target_properties(plugrad_precompiled_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(plugrad_precompiled_test PRIVATE
      ${PLUGRAD_TEST_OPTIONS} -fPIE)  # as executables are compiled
    target_precompile_headers(plugrad_precompiled_test PRIVATE
      ${PLUGRAD_STANDARD_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_compile_options(${target} PRIVATE ${PLUGRAD_TEST_OPTIONS})
  target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
  target_precompile_headers(${target} REUSE_FROM plugrad_precompiled_test)
endfunction()

# Programs of a build tree are linked by mold or else lld, in a fifth of the time. What is installed is linked by the
# compiler's own linker.
find_program(PLUGRAD_MOLD mold)
find_program(PLUGRAD_LLD ld.lld)
if(PLUGRAD_MOLD)
  set(PLUGRAD_LINKER mold)
elseif(PLUGRAD_LLD)
  set(PLUGRAD_LINKER lld)
endif()
if(PLUGRAD_LINKER AND NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-fuse-ld=${PLUGRAD_LINKER}>)
endif()

# To Clang, and to GCC in C, -Wconversion means -Wsign-conversion too.
add_compile_options(-Wall -Wextra -Wpedantic $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wconversion>)
if(PLUGRAD_WERROR)
  add_compile_options(-Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # GCC 12 finds these in its own std::string, where they are not
    add_compile_options(-Wno-error=array-bounds -Wno-error=restrict -Wno-error=stringop-overflow)
  endif()
endif()
if(PLUGRAD_SANITIZE)
  add_compile_options(-fsanitize=${PLUGRAD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLUGRAD_SANITIZE})
endif()

# plugrad_add_room(NAME SOURCES a.cpp … [LINK targets…]): one room of core, an object library plugrad_<NAME>.
# Its sources include as "<room>/file.h", from core/src.
function(plugrad_add_room name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(plugrad_${name} OBJECT ${arg_SOURCES})
  target_include_directories(plugrad_${name} PUBLIC ${PROJECT_SOURCE_DIR}/core/src
                                                    ${PROJECT_SOURCE_DIR}/core/include)
  target_link_libraries(plugrad_${name} PUBLIC plugrad::plugin_api ${arg_LINK})
  target_compile_definitions(plugrad_${name} PRIVATE PLUGRAD_BUILDING_CORE)
  plugrad_precompile(plugrad_${name})
  plugrad_unite(plugrad_${name})
endfunction()

# plugrad_add_component(NAME SOURCES … [LINK …]): lib/libplugrad_<NAME>.so with one exported symbol, opened at run
# time by plugins and hosts (a renderer, a compiler). Templates of the standard library are weak and visible
# whatever the visibility preset says; only a version script keeps them in.
function(plugrad_add_component name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  set(target plugrad_${name})
  add_library(${target} SHARED ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/sdk)
  target_link_libraries(${target} PRIVATE plugrad::sdk ${arg_LINK})
  plugrad_precompile(${target})
  set(version_script ${PROJECT_SOURCE_DIR}/cmake/component.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${version_script} -Wl,--exclude-libs,ALL)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${version_script})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# plugrad_set_test(NAME [LABELS …] [TIMEOUT seconds] [ENV A=b …]): what every ctest entry is given: a limit of time,
# longer under sanitizers, a kernel cache inside the build tree, schedules that stay, and the sanitizers' options.
# The limit ends hangs and nothing else: without TIMEOUT it is twenty times the seconds in tests/costs.txt, and 5 minutes
# at least.
function(plugrad_set_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "LABELS;ENV" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
    file(STRINGS ${PROJECT_SOURCE_DIR}/tests/costs.txt cost REGEX "^${name} ")
    if(cost MATCHES " ([0-9]+)$" AND CMAKE_MATCH_1 GREATER 15)
      math(EXPR arg_TIMEOUT "${CMAKE_MATCH_1} * 20")
    endif()
  endif()
  list(APPEND arg_ENV PLUGRAD_CACHE_DIR=${CMAKE_BINARY_DIR}/test-cache)
  if(NOT "${arg_ENV}" MATCHES "PLUGRAD_TUNE")  # replays keep the schedules that a test is about
    list(APPEND arg_ENV PLUGRAD_TUNE=0)
  endif()
  if(PLUGRAD_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 10")
    list(APPEND arg_ENV UBSAN_OPTIONS=print_stacktrace=1)
    # GCC 12's leak checker crashed at exit on a pool thread's thread-local storage, at an address that is none, after
    # kernels were compiled on it. Without looking there it finishes, at the price of fewer roots.
    if(NOT "${arg_ENV}" MATCHES "LSAN_OPTIONS")
      list(APPEND arg_ENV LSAN_OPTIONS=use_tls=0)
    endif()
  endif()
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENV}")
endfunction()

# plugrad_add_test(NAME SOURCES … [LINK …] [LABELS …] [TIMEOUT seconds] [ENV A=b …]): one GoogleTest program, one ctest entry.
# With the label foundation or threads the target foundation_tests or threads_tests builds it too: what CI runs with the
# address and undefined-behaviour sanitizers, or the thread sanitizer.
function(plugrad_add_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS;ENV" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/core/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  plugrad_precompile_test(${name})
  plugrad_unite(${name})
  foreach(label foundation threads)
    if(label IN_LIST arg_LABELS)
      if(NOT TARGET ${label}_tests)
        add_custom_target(${label}_tests)
      endif()
      add_dependencies(${label}_tests ${name})
    endif()
  endforeach()
  add_test(NAME ${name} COMMAND ${name})
  plugrad_set_test(${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} ENV ${arg_ENV})
endfunction()

# plugrad_add_check(NAME [ENV A=b …] COMMAND … ): a script as a test.
function(plugrad_add_check name)
  cmake_parse_arguments(arg "" "TIMEOUT" "COMMAND;ENV" ${ARGN})
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  plugrad_set_test(${name} LABELS checks TIMEOUT ${arg_TIMEOUT} ENV ${arg_ENV})
endfunction()
