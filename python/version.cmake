# plugrad_python_version: the version of the main project, which the wheels have too.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../CMakeLists.txt line REGEX "^project\\(plugrad VERSION ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" plugrad_python_version "${line}")
