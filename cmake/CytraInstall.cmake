# cmake --install: bin/, lib/ and share/cytra/configs, relocatable as a whole.
include(GNUInstallDirs)
install(TARGETS ${CYTRA_PROGRAMS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/cytra)
install(TARGETS cytra_base cytra_io cytra ${CYTRA_MODULES} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET cytra_cuda)
  install(TARGETS cytra_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
