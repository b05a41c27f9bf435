# The package plugrad_backend: what the main project installs, and two Python files. In the build tree it is made of links
# into the main project's build tree, or into an installation, which has the same layout.
include(${CMAKE_CURRENT_LIST_DIR}/../version.cmake)
set(PLUGRAD_BUILD_TREE "" CACHE PATH "Build tree of the main project; without one it is built inside this build tree")
set(backend_source ${CMAKE_CURRENT_LIST_DIR})
set(backend_dir ${CMAKE_BINARY_DIR}/plugrad_backend)
set(backend_version ${plugrad_python_version})

if(NOT PLUGRAD_BUILD_TREE AND NOT PLUGRAD_PYTHON_BACKEND)
  find_package(plugrad CONFIG QUIET)
endif()
if(PLUGRAD_BUILD_TREE)
  get_filename_component(tree ${PLUGRAD_BUILD_TREE} ABSOLUTE)
elseif(NOT plugrad_FOUND)
  set(tree ${CMAKE_BINARY_DIR}/main)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${backend_source}/../.. -B ${tree} -G ${CMAKE_GENERATOR}
    -DCMAKE_BUILD_TYPE=Release -DPLUGRAD_BUILD_TESTS=OFF -DPLUGRAD_BUILD_BENCH=OFF COMMAND_ERROR_IS_FATAL ANY)
  add_custom_target(plugrad_backend ALL COMMAND ${CMAKE_COMMAND} --build ${tree}
    BYPRODUCTS ${tree}/lib/libplugrad_core.so ${tree}/lib/libplugrad_onnx.so
    COMMENT "Building the main project in ${tree}" USES_TERMINAL VERBATIM)
endif()
if(tree)
  set(plugrad_DIR ${tree}/lib/cmake/plugrad)
endif()
get_filename_component(backend_prefix ${plugrad_DIR}/../../.. ABSOLUTE)

file(MAKE_DIRECTORY ${backend_dir})
foreach(part bin lib share)
  file(CREATE_LINK ${backend_prefix}/${part} ${backend_dir}/${part} SYMBOLIC)
endforeach()
configure_file(${backend_source}/__init__.py.in ${backend_dir}/__init__.py @ONLY)
configure_file(${backend_source}/__main__.py ${backend_dir}/__main__.py COPYONLY)

if(PLUGRAD_PYTHON_BACKEND)
  set(destination "\${CMAKE_INSTALL_PREFIX}/plugrad_backend")
  install(CODE "set(tree \"${tree}\")\nset(destination \"${destination}\")\nset(strip \"${CMAKE_STRIP}\")")
  install(SCRIPT ${backend_source}/install.cmake)
  install(FILES ${backend_dir}/__init__.py ${backend_dir}/__main__.py DESTINATION plugrad_backend)
  if(PLUGRAD_LICENCES)
    install(DIRECTORY ${PLUGRAD_LICENCES}/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses/third-party)
  endif()
endif()
