# libcytra_nccl.so: gradients of several GPUs. A library of its own, since it needs torch's CUDA libraries; built where
# they and the headers of CUDA and NCCL are.
if(CYTRA_CUDA STREQUAL "OFF")
  return()
endif()
file(GLOB wheel_cuda ${CYTRA_TORCH_LIB}/../../nvidia/cu*/include)
find_path(CYTRA_CUDA_INCLUDE cuda_runtime.h HINTS $ENV{CUDA_HOME}/include ${wheel_cuda} /usr/local/cuda/include)
find_path(CYTRA_NCCL_INCLUDE nccl.h HINTS ${CYTRA_TORCH_LIB}/../../nvidia/nccl/include /usr/local/cuda/include)
if(NOT CYTRA_CUDA_INCLUDE OR NOT CYTRA_NCCL_INCLUDE OR NOT EXISTS ${CYTRA_TORCH_LIB}/libtorch_cuda.so)
  message(STATUS "No NCCL, or no torch with CUDA: training is for one GPU")
  return()
endif()
add_library(cytra_nccl SHARED ${CMAKE_SOURCE_DIR}/src/training/cuda/nccl.cpp)
target_include_directories(cytra_nccl PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_include_directories(cytra_nccl SYSTEM PRIVATE ${CYTRA_CUDA_INCLUDE} ${CYTRA_NCCL_INCLUDE})
target_link_libraries(cytra_nccl PRIVATE cytra_flags cytra_torch ${CYTRA_TORCH_LIB}/libtorch_cuda.so
  ${CYTRA_TORCH_LIB}/libc10_cuda.so)
