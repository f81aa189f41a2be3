# cytra_suites(test_nn nn unit): a ctest for each suite of a gtest program, nn.Norms and so on, with the label unit. A process
# for each test would load torch 1700 times, half a second each. A typed test is one suite. A suite in which a test is skipped,
# and none fails, is listed as skipped. The second half of this file is what ctest runs: it asks the program that is there.
if(NOT PROGRAM)
  set(CYTRA_SUITES ${CMAKE_CURRENT_LIST_FILE})
  function(cytra_suites target prefix label)
    set(include ${CMAKE_CURRENT_BINARY_DIR}/${target}_include.cmake)
    file(GENERATE OUTPUT ${include} CONTENT
      "set(PROGRAM [[$<TARGET_FILE:${target}>]])\nset(PREFIX ${prefix})\nset(LABEL ${label})\ninclude([[${CYTRA_SUITES}]])\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
  endfunction()
  return()
endif()

if(NOT EXISTS "${PROGRAM}")
  add_test(${PREFIX}_NOT_BUILT "${PROGRAM}")
  return()
endif()
set(list "${PROGRAM}_suites.cmake")
if(NOT EXISTS "${list}" OR NOT "${list}" IS_NEWER_THAN "${PROGRAM}" OR NOT "${list}" IS_NEWER_THAN "${CMAKE_CURRENT_LIST_FILE}"
   OR NOT "${list}" IS_NEWER_THAN "${CMAKE_PARENT_LIST_FILE}")
  execute_process(COMMAND "${PROGRAM}" --gtest_list_tests OUTPUT_VARIABLE output RESULT_VARIABLE result TIMEOUT 60)
  string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\." suites "\n${output}")
  if(NOT result EQUAL 0 OR NOT suites)
    message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${result}\n${output}")
  endif()
  string(REGEX REPLACE "/[0-9]+\\." "/*." suites "${suites}")  # of all types
  string(REGEX REPLACE "[\n.]" "" suites "${suites}")
  list(REMOVE_DUPLICATES suites)
  set(cost "")
  if(LABEL STREQUAL app)  # programs take long; they begin early, so that no core waits for the last of them
    set(cost "COST 10 ")
  endif()
  set(script "")
  foreach(suite ${suites})
    string(REPLACE "/*" "" name "${PREFIX}.${suite}")
    string(APPEND script "add_test(${name} [[${PROGRAM}]] --gtest_filter=${suite}.*)\nset_tests_properties(${name} PROPERTIES "
      "LABELS ${LABEL} TIMEOUT 1200 SKIP_RETURN_CODE 77 ${cost}"
      # Tests side by side: threads that wait leave the core to others.
      "ENVIRONMENT \"CYTRA_SKIPPED=77;OMP_WAIT_POLICY=passive\")\n")
  endforeach()
  file(WRITE "${list}" "${script}")
endif()
include("${list}")
