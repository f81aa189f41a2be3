# Compiler flags, output folders, and the tools that make a build fast where they are present.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
include(GNUInstallDirs)
# One RUNPATH for the build folder and where it is installed. One that is to be changed on installing is padded with ':',
# and each empty element means the folder where the user stands: whatever library lay there would be loaded.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN/../lib;$ORIGIN")
list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)  # torch's folder
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -DNDEBUG")  # NDEBUG: LibTorch's headers lay out RecordFunction by it

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # A precompiled header changes its time stamp, not its content: tell ccache to look at the content. Paths in the checkout
  # are taken as relative ones, so that another clone finds what this one compiled; so does cytra_flags in __FILE__.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

add_library(cytra_flags INTERFACE)
# GCC 12 sees uninitialised values in torch's SmallVector once it is inlined, and overflows in C++20's inlined strings
# (bugs 105329, 105651); there are none.
target_compile_options(cytra_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds>
  $<$<BOOL:${CYTRA_WERROR}>:-Werror>)
target_link_libraries(cytra_flags INTERFACE fmt::fmt)  # header only, a sixth of the build would go into it
target_compile_options(cytra_flags INTERFACE -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
target_include_directories(cytra_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
if(CYTRA_SANITIZE)
  target_compile_options(cytra_flags INTERFACE -fsanitize=${CYTRA_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(cytra_flags INTERFACE -fsanitize=${CYTRA_SANITIZE})
endif()
