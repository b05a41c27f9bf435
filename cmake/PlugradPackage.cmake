# What makes find_package(plugrad) work: in an installed tree, and in the build tree, which looks the same.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/plugrad)
foreach(name plugin_api sdk interpreter core onnx plugrad)
  if(TARGET plugrad_${name})
    set_target_properties(plugrad_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS plugrad_${name} EXPORT plugradTargets
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
install(EXPORT plugradTargets NAMESPACE plugrad:: DESTINATION ${package_dir})
export(EXPORT plugradTargets NAMESPACE plugrad:: FILE ${CMAKE_BINARY_DIR}/${package_dir}/plugradTargets.cmake)

# The suite as a library needs fmt, nlohmann_json, MPFR and OpenSSL: only who asks for it looks for them.
if(TARGET plugrad_conformance)
  set_target_properties(plugrad_conformance PROPERTIES EXPORT_NAME conformance
    INTERFACE_LINK_LIBRARIES "plugrad::interpreter;fmt::fmt;nlohmann_json::nlohmann_json;mpfr;gmp;crypto;dl")
  install(TARGETS plugrad_conformance EXPORT plugradConformanceTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT plugradConformanceTargets NAMESPACE plugrad:: DESTINATION ${package_dir})
  export(EXPORT plugradConformanceTargets NAMESPACE plugrad::
    FILE ${CMAKE_BINARY_DIR}/${package_dir}/plugradConformanceTargets.cmake)
endif()

# An earlier version put it where find_package looks first.
file(REMOVE ${CMAKE_BINARY_DIR}/plugradConfig.cmake ${CMAKE_BINARY_DIR}/plugradConfigVersion.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/plugradConfig.cmake.in
  ${CMAKE_BINARY_DIR}/${package_dir}/plugradConfig.cmake INSTALL_DESTINATION ${package_dir})
# What was written for a minor builds with every later one of its major.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/${package_dir}/plugradConfigVersion.cmake
  COMPATIBILITY SameMajorVersion)
foreach(file PlugradPlugin.cmake plugin.map)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${file} ${CMAKE_BINARY_DIR}/${package_dir}/${file} COPYONLY)
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/${package_dir}/ DESTINATION ${package_dir}
  FILES_MATCHING PATTERN "plugradConfig*" PATTERN "PlugradPlugin.cmake" PATTERN "plugin.map")

# What `plugrad new-plugin` copies, and the pages for who writes plugins and programs.
install(DIRECTORY sdk/template/ DESTINATION ${CMAKE_INSTALL_DATADIR}/plugrad/template)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/plugrad)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/sdk/template ${CMAKE_BINARY_DIR}/share/plugrad/template SYMBOLIC)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/plugrad PATTERN "CMakeLists.txt" EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/plugrad)
install(DIRECTORY LICENSES DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/plugrad)
