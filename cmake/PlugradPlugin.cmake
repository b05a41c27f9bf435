# How a plugin is built, in this tree and out of it: find_package(plugrad) brings the same function.
set(PLUGRAD_CMAKE_DIR ${CMAKE_CURRENT_LIST_DIR})

# plugrad_write_note(MANIFEST OUTPUT): a C file that puts the manifest into the library as an ELF note.
function(plugrad_write_note manifest output)
  file(READ ${manifest} json)
  string(REPLACE "\\" "\\\\" json "${json}")
  string(REPLACE "\"" "\\\"" json "${json}")
  string(REPLACE "\n" "\\n\"\n\"" json "${json}")
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
    "#include \"plugrad/plugin_api/plugin.h\"\n__extension__ PGR_PLUGIN_NOTE(\"@json@\");\n")
endfunction()

# plugrad_add_plugin(NAME SOURCES … [LINK …] [MANIFEST manifest.json]): libplugrad_plugin_<NAME>.so with one exported
# symbol and the manifest as a note inside; the same manifest beside it.
function(plugrad_add_plugin name)
  cmake_parse_arguments(arg "" "MANIFEST" "SOURCES;LINK" ${ARGN})
  if(NOT arg_MANIFEST)
    set(arg_MANIFEST ${CMAKE_CURRENT_SOURCE_DIR}/manifest.json)
  endif()
  set(target plugrad_plugin_${name})
  set(plugin_dir ${CMAKE_CURRENT_BINARY_DIR})
  if(PLUGRAD_PLUGIN_DIR)
    set(plugin_dir ${PLUGRAD_PLUGIN_DIR})
  endif()
  set(manifest ${plugin_dir}/libplugrad_plugin_${name}.json)
  set(note ${CMAKE_CURRENT_BINARY_DIR}/${name}_note.c)
  configure_file(${arg_MANIFEST} ${manifest} @ONLY)
  plugrad_write_note(${manifest} ${note})
  add_library(${target} MODULE ${arg_SOURCES} ${note})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${plugin_dir}
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
  set_source_files_properties(${note} PROPERTIES COMPILE_OPTIONS "-Wno-overlength-strings")
  target_link_libraries(${target} PRIVATE plugrad::plugin_api ${arg_LINK})
  # The SDK's headers are there for who links nothing of it: those for C need nothing else.
  target_include_directories(${target} PRIVATE $<TARGET_PROPERTY:plugrad::sdk,INTERFACE_INCLUDE_DIRECTORIES>)
  set(version_script ${PLUGRAD_CMAKE_DIR}/plugin.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${version_script} -Wl,--exclude-libs,ALL)
  if(NOT PLUGRAD_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${version_script})
  include(GNUInstallDirs)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/plugrad/plugins)
  install(FILES ${manifest} DESTINATION ${CMAKE_INSTALL_LIBDIR}/plugrad/plugins)
endfunction()
