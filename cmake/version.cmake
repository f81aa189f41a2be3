# Run at every build: writes cytra_version.h when the commit or the release changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --match=NoTag OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT commit)
  set(commit "no commit")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define CYTRA_VERSION \"${VERSION} (${commit})\"\n")
