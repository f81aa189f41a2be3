# generated/cytra_pages.h: the files of share/pages as texts, pages::report_css of report.css. No program looks for the files.
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/share/pages/*.css ${CMAKE_SOURCE_DIR}/share/pages/*.html
  ${CMAKE_SOURCE_DIR}/share/pages/*.js)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages})
set(texts "#pragma once\nnamespace cytra::pages {\n")
foreach(page ${pages})
  get_filename_component(name ${page} NAME)
  string(MAKE_C_IDENTIFIER ${name} name)
  file(READ ${page} text)
  string(APPEND texts "inline constexpr char ${name}[] = R\"page(${text})page\";\n")
endforeach()
string(APPEND texts "}  // namespace cytra::pages\n")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/cytra_pages.h CONTENT "@texts@" @ONLY)
