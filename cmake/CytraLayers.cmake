# cytra_layer(nn [TORCH] [CALLS] [DEPENDS libs...]): all of src/nn as one OBJECT library, so no static registrar is dropped.
# CALLS: it calls what has hot loops; -O1 compiles it a third faster. Its own are in *_kernels.cpp.
# cytra_library(cytra LAYERS nn ... LINKS libs...): one shared library out of layers.
# cytra_tests(nn LINKS libs...): tests/nn/**_test.cpp as one gtest program, with a ctest for each suite; with FOLDERS for each folder, but for
# the suites APART. ONE_THREAD: OpenMP's, but for the suites ALONE, beside which no other test runs.
# EXCEPT names a folder in it that is a program of its own.
# The sources of a target, 48 as one: what headers declare is compiled once for all of them, in 60 % of the time of 16 as
# one and at most 2 GB. So what they have in anonymous namespaces must differ in name within a layer.
function(cytra_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${CYTRA_UNITY} UNITY_BUILD_BATCH_SIZE 48)
  if(CYTRA_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # meant for headers: each source is included once
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

function(cytra_pch target)
  if(NOT CYTRA_PCH)
    return()
  endif()
  if(NOT TARGET cytra_pch)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch.cpp CONTENT "// Owner of the precompiled header.\n")  # new only where it differs
    add_library(cytra_pch OBJECT ${CMAKE_BINARY_DIR}/pch.cpp)
    target_link_libraries(cytra_pch PRIVATE cytra_flags cytra_torch)
    target_precompile_headers(cytra_pch PRIVATE <torch/nn/module.h> <torch/types.h> <fmt/format.h>
      <map> <memory> <optional> <string> <vector>)
    # ccache can use the header only when the compiler may see it through this flag.
    target_compile_options(cytra_pch PUBLIC -fpch-preprocess)
  endif()
  target_precompile_headers(${target} REUSE_FROM cytra_pch)
  target_compile_options(${target} PRIVATE -fpch-preprocess)
endfunction()

# The header was compiled with -fPIC; programs would get -fPIE.
function(cytra_pch_of_program target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  cytra_pch(${target})
endfunction()

function(cytra_layer name)
  cmake_parse_arguments(ARG "TORCH;CALLS" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/cuda/|/io/(dicom|hdf5|ffmpeg)/|/inference/openvino/")
  if(ARG_CALLS OR CMAKE_BUILD_TYPE STREQUAL Dev)  # loops, for which -O1 is too little
    set(kernels ${sources})
    list(FILTER kernels INCLUDE REGEX "[/_]kernels\\.cpp$")
    set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS -O3 SKIP_PRECOMPILE_HEADERS ON)
  endif()
  add_library(layer_${name} OBJECT ${sources})
  cytra_unity(layer_${name})
  target_link_libraries(layer_${name} PRIVATE cytra_flags PUBLIC ${ARG_DEPENDS})
  if(ARG_CALLS)
    target_compile_options(layer_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(ARG_TORCH)
    target_link_libraries(layer_${name} PUBLIC cytra_torch)
    cytra_pch(layer_${name})
  endif()
endfunction()

function(cytra_library name)
  cmake_parse_arguments(ARG "" "" "LAYERS;LINKS" ${ARGN})
  add_library(${name} SHARED)
  foreach(layer ${ARG_LAYERS})
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:layer_${layer}>)
    get_target_property(depends layer_${layer} INTERFACE_LINK_LIBRARIES)
    if(depends)
      target_link_libraries(${name} PRIVATE ${depends})
    endif()
  endforeach()
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PRIVATE cytra_flags ${CMAKE_DL_LIBS} PUBLIC ${ARG_LINKS})
endfunction()

function(cytra_tests folder)
  cmake_parse_arguments(ARG "TORCH" "EXCEPT;LABEL" "LINKS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cpp)
  if(ARG_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "/${folder}/${ARG_EXCEPT}/")
  endif()
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  cytra_unity(test_${name})
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(NOT name MATCHES "^(base|config|cli|io|samples)$")
    add_dependencies(test_${name} ${CYTRA_PROGRAMS} cytra)
  endif()
  target_link_libraries(test_${name} PRIVATE cytra_flags cytra_test_main ${ARG_LINKS})
  target_compile_definitions(test_${name} PRIVATE CYTRA_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    CYTRA_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(ARG_TORCH)
    cytra_pch_of_program(test_${name})
  endif()
  cytra_suites(test_${name} ${name} ${ARG_LABEL} ${ARG_UNPARSED_ARGUMENTS})
endfunction()
