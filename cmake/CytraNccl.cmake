# libcytra_nccl.so: gradients of several GPUs. A library of its own, since it needs torch's CUDA libraries; built where
# they and the headers of CUDA and NCCL are.
if(CYTRA_CUDA STREQUAL "OFF")
  return()
endif()
# A toolkit comes first: the wheel's headers of CUDA may lack crt/ and nv/, and do not compile then.
file(GLOB wheel_cuda ${CYTRA_TORCH_LIB}/../../nvidia/cu*/include)
find_path(CYTRA_CUDA_INCLUDE crt/host_config.h HINTS $ENV{CUDA_HOME}/include PATHS /usr/local/cuda/include ${wheel_cuda})
find_path(CYTRA_NCCL_INCLUDE nccl.h HINTS ${CYTRA_TORCH_LIB}/../../nvidia/nccl/include /usr/local/cuda/include)
if(NOT CYTRA_CUDA_INCLUDE OR NOT CYTRA_NCCL_INCLUDE OR NOT EXISTS ${CYTRA_TORCH_LIB}/libtorch_cuda.so)
  message(STATUS "No headers of CUDA or NCCL, or no torch with CUDA: training is for one GPU")
  return()
endif()
set(nccl_headers "${CYTRA_CUDA_INCLUDE} ${CYTRA_NCCL_INCLUDE} ${CYTRA_TORCH_INCLUDE} ${CYTRA_TORCH_VERSION} C++20")
if(NOT CYTRA_NCCL_COMPILES STREQUAL nccl_headers)
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -w -I ${CMAKE_SOURCE_DIR}/src -isystem ${CYTRA_TORCH_INCLUDE}
      -isystem ${CYTRA_TORCH_INCLUDE}/torch/csrc/api/include -isystem ${CYTRA_CUDA_INCLUDE} -isystem ${CYTRA_NCCL_INCLUDE}
      ${CMAKE_SOURCE_DIR}/src/training/cuda/nccl.cpp
    RESULT_VARIABLE code ERROR_VARIABLE reason)
  if(code)
    string(REGEX MATCH "[^\n]*error: [^\n]*" reason "${reason}")
    message(STATUS "torch's NCCL does not compile with ${nccl_headers} (${reason}): training is for one GPU")
    return()
  endif()
  set(CYTRA_NCCL_COMPILES "${nccl_headers}" CACHE INTERNAL "headers that nccl.cpp was compiled with")
endif()
add_library(cytra_nccl SHARED ${CMAKE_SOURCE_DIR}/src/training/cuda/nccl.cpp)
target_include_directories(cytra_nccl PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_include_directories(cytra_nccl SYSTEM PRIVATE ${CYTRA_CUDA_INCLUDE} ${CYTRA_NCCL_INCLUDE})
target_link_libraries(cytra_nccl PRIVATE cytra_flags cytra_torch ${CYTRA_TORCH_LIB}/libtorch_cuda.so
  ${CYTRA_TORCH_LIB}/libc10_cuda.so)
