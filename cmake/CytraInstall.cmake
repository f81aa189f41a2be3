# cmake --install: programs, libraries and configs (component runtime), headers and the CMake package (development),
# relocatable as a whole. The build folder is a package, too: -DCytra_DIR=build/release.
include(CMakePackageConfigHelpers)
foreach(target cytra_cuda cytra_nccl)
  if(TARGET ${target})
    list(APPEND cuda_modules ${target})
  endif()
endforeach()
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Cytra)
set_target_properties(cytra_base PROPERTIES EXPORT_NAME base)
set_target_properties(cytra_io PROPERTIES EXPORT_NAME io)
target_compile_features(cytra_base INTERFACE cxx_std_20)
target_link_libraries(cytra_base INTERFACE $<INSTALL_INTERFACE:fmt::fmt-header-only>)  # base/log.h
install(TARGETS ${CYTRA_PROGRAMS} ${CYTRA_MODULES} ${cuda_modules} RUNTIME COMPONENT runtime LIBRARY COMPONENT runtime)
install(FILES docs/schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/cytra COMPONENT runtime)
install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DATADIR}/cytra COMPONENT runtime)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/cytra COMPONENT runtime)
install(TARGETS cytra_base cytra_io EXPORT CytraIoTargets LIBRARY COMPONENT runtime)
install(TARGETS cytra EXPORT CytraTargets LIBRARY COMPONENT runtime)
foreach(targets CytraIoTargets CytraTargets)
  install(EXPORT ${targets} NAMESPACE Cytra:: DESTINATION ${package} COMPONENT development)
  export(EXPORT ${targets} NAMESPACE Cytra:: FILE ${CMAKE_BINARY_DIR}/${targets}.cmake)
endforeach()

# What users' programs include, and what that includes: scripts/lint/layers.py keeps the list whole.
file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/installed_headers.txt headers)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/installed_headers.txt)
list(TRANSFORM headers PREPEND ${CMAKE_SOURCE_DIR}/src/ OUTPUT_VARIABLE header_files)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/include/cytra.stamp
  DEPENDS ${header_files} ${CMAKE_SOURCE_DIR}/cmake/headers.cmake
  COMMAND ${CMAKE_COMMAND} "-DHEADERS=${headers}" -DSOURCE=${CMAKE_SOURCE_DIR}/src
    -DOUTPUT=${CMAKE_BINARY_DIR}/include/cytra -P ${CMAKE_SOURCE_DIR}/cmake/headers.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/include/cytra.stamp VERBATIM)
add_custom_target(cytra_headers ALL DEPENDS ${CMAKE_BINARY_DIR}/include/cytra.stamp)
install(DIRECTORY ${CMAKE_BINARY_DIR}/include/cytra DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

set(config ${CMAKE_SOURCE_DIR}/cmake/CytraConfig.cmake.in)
set(installed ${CMAKE_BINARY_DIR}/generated/CytraConfig.cmake)
set(include ${CMAKE_INSTALL_INCLUDEDIR})
set(known_torch "")
configure_package_config_file(${config} ${installed} INSTALL_DESTINATION ${package} PATH_VARS include)
set(include include)
set(known_torch ${torch_root})
configure_package_config_file(${config} ${CMAKE_BINARY_DIR}/CytraConfig.cmake PATH_VARS include
  INSTALL_PREFIX ${CMAKE_BINARY_DIR} INSTALL_DESTINATION ${CMAKE_BINARY_DIR})
set(version ${CMAKE_BINARY_DIR}/CytraConfigVersion.cmake)
write_basic_package_version_file(${version} COMPATIBILITY SameMinorVersion)
configure_file(cmake/LibTorch.cmake ${CMAKE_BINARY_DIR}/LibTorch.cmake COPYONLY)
install(FILES ${installed} ${version} cmake/LibTorch.cmake DESTINATION ${package} COMPONENT development)
