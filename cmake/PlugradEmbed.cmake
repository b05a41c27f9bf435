# plugrad_embed_text(TARGET NAMESPACE HEADER FILES…): the sources of TARGET may include HEADER, which has the text of each
# file as a constant: kReportHtml is that of report.html. This file is also the script that writes HEADER in the build.
function(plugrad_embed_text target namespace header)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  add_custom_command(OUTPUT ${folder}/${header}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${folder}/${header} -DNAMESPACE=${namespace} "-DFILES=${files}"
      -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    DEPENDS ${files} ${CMAKE_CURRENT_FUNCTION_LIST_FILE} VERBATIM)
  string(MAKE_C_IDENTIFIER "${target}_${header}" name)
  add_custom_target(${name} DEPENDS ${folder}/${header})
  add_dependencies(${target} ${name})
  target_include_directories(${target} PRIVATE ${folder})
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  return()
endif()
set(constants "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  string(REGEX MATCHALL "[A-Za-z0-9]+" words ${name})
  set(constant k)
  foreach(word ${words})
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND constant ${first}${rest})
  endforeach()
  file(READ ${file} text)
  if(text MATCHES "\\)plugrad\"")
    message(FATAL_ERROR "${file} contains the end mark of its constant: )plugrad\"")
  endif()
  string(APPEND constants "inline constexpr std::string_view ${constant} = R\"plugrad(${text})plugrad\";\n")
endforeach()
file(WRITE ${OUTPUT}
  "#pragma once\n\n#include <string_view>\n\nnamespace ${NAMESPACE} {\n\n${constants}\n}  // namespace ${NAMESPACE}\n")
