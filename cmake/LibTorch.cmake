# cytra_torch: LibTorch's CPU libraries and headers, from CYTRA_TORCH, CMAKE_PREFIX_PATH or the project's .venv; what went
# wrong is in CYTRA_TORCH_PROBLEM. Used by our build, and installed for the programs that use us.
# The wheel's own TorchConfig.cmake demands a CUDA toolkit; the CPU libraries alone do not, and CUDA is a plugin here.
set(CYTRA_TORCH_PROBLEM "")
file(GLOB venv_torch ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
set(torch_header torch/csrc/api/include/torch/torch.h)
find_path(CYTRA_TORCH_INCLUDE ${torch_header} PATHS ${CYTRA_TORCH}/include $ENV{CYTRA_TORCH}/include NO_DEFAULT_PATH)
if(NOT CYTRA_TORCH AND NOT DEFINED ENV{CYTRA_TORCH})
  find_path(CYTRA_TORCH_INCLUDE ${torch_header} PATHS ${CMAKE_PREFIX_PATH} ${venv_torch}
    PATH_SUFFIXES include ../../include NO_DEFAULT_PATH)  # the second of torch.utils.cmake_prefix_path
endif()
if(NOT CYTRA_TORCH_INCLUDE)
  string(CONCAT CYTRA_TORCH_PROBLEM "LibTorch not found; name it: -DCYTRA_TORCH=/path/to/torch "
    "(the folder that holds include/ and lib/) or -DCMAKE_PREFIX_PATH=...")
  return()
endif()
get_filename_component(torch_root ${CYTRA_TORCH_INCLUDE}/.. ABSOLUTE)
file(READ ${CYTRA_TORCH_INCLUDE}/torch/headeronly/version.h version_header)
string(REGEX MATCH "TORCH_VERSION_MAJOR ([0-9]+)" _ "${version_header}")
set(torch_major ${CMAKE_MATCH_1})
string(REGEX MATCH "TORCH_VERSION_MINOR ([0-9]+)" _ "${version_header}")
set(CYTRA_TORCH_VERSION ${torch_major}.${CMAKE_MATCH_1})
if(CYTRA_TORCH_VERSION VERSION_LESS 2.11)
  set(CYTRA_TORCH_PROBLEM "LibTorch ${CYTRA_TORCH_VERSION} at ${torch_root} is too old: 2.11 is needed")
  return()
endif()
set(CYTRA_TORCH_LIB ${torch_root}/lib)
if(TARGET cytra_torch)
  return()
endif()
message(STATUS "LibTorch ${CYTRA_TORCH_VERSION}: ${torch_root}")

# Imported, and its libraries by path: exporting our targets must not write down where torch is.
add_library(cytra_torch INTERFACE IMPORTED)
target_include_directories(cytra_torch INTERFACE ${CYTRA_TORCH_INCLUDE} ${CYTRA_TORCH_INCLUDE}/torch/csrc/api/include)
target_link_libraries(cytra_torch INTERFACE ${CYTRA_TORCH_LIB}/libtorch_cpu.so ${CYTRA_TORCH_LIB}/libc10.so)
# libtorch_cpu.so of the CUDA wheel names libcudart and libcupti; its own RPATH finds them at run time.
target_link_options(cytra_torch INTERFACE -Wl,--allow-shlib-undefined)
# at::parallel_for is a template: without this it would be a serial loop in our code.
target_compile_options(cytra_torch INTERFACE -fopenmp)
target_link_options(cytra_torch INTERFACE -fopenmp)
