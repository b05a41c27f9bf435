# What makes find_package(plugrad) work in an installed tree.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/plugrad)
foreach(name plugin_api sdk core)
  if(TARGET plugrad_${name})
    set_target_properties(plugrad_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS plugrad_${name} EXPORT plugradTargets
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
install(EXPORT plugradTargets NAMESPACE plugrad:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/plugradConfig.cmake.in
  ${CMAKE_BINARY_DIR}/plugradConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break what is compiled against it.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/plugradConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/plugradConfig.cmake ${CMAKE_BINARY_DIR}/plugradConfigVersion.cmake
  DESTINATION ${package_dir})
