# The package plugrad_backend: what the main project installs, and two Python files. In the build tree it is made of links
# into the main project's build tree, which has the same layout.
set(backend_source ${CMAKE_CURRENT_LIST_DIR})
set(main_source ${CMAKE_CURRENT_LIST_DIR}/../..)
set(backend_dir ${CMAKE_BINARY_DIR}/plugrad_backend)
set(backend_version ${plugrad_python_version})

set(tree ${PLUGRAD_BUILD_TREE})
if(tree)
  get_filename_component(tree ${tree} ABSOLUTE BASE_DIR ${CMAKE_BINARY_DIR})
elseif(NOT plugrad_DIR AND NOT CMAKE_PREFIX_PATH)
  set(tree ${CMAKE_BINARY_DIR}/main)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${main_source} -B ${tree} -G ${CMAKE_GENERATOR}
    -DCMAKE_BUILD_TYPE=Release -DPLUGRAD_BUILD_TESTS=OFF -DPLUGRAD_BUILD_BENCH=OFF COMMAND_ERROR_IS_FATAL ANY)
  add_custom_target(plugrad_backend ALL COMMAND ${CMAKE_COMMAND} --build ${tree}
    COMMENT "Building the main project in ${tree}" USES_TERMINAL VERBATIM)
endif()

if(tree)
  set(plugrad_DIR ${tree}/lib/cmake/plugrad)
  set(backend_prefix ${tree})
else()
  find_package(plugrad CONFIG REQUIRED)
  get_filename_component(backend_prefix ${plugrad_DIR}/../../.. ABSOLUTE)
endif()
file(MAKE_DIRECTORY ${backend_dir})
foreach(part bin lib share include)
  if(IS_DIRECTORY ${backend_prefix}/${part})
    file(CREATE_LINK ${backend_prefix}/${part} ${backend_dir}/${part} SYMBOLIC)
  endif()
endforeach()
configure_file(${backend_source}/__init__.py.in ${backend_dir}/__init__.py @ONLY)
configure_file(${backend_source}/__main__.py ${backend_dir}/__main__.py COPYONLY)
