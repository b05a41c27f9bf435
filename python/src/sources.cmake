# The module's sources that are written by hand; bindings.py writes the others.
set(plugrad_python_sources
  arguments.cpp
  arrays.cpp
  devices.cpp
  dtypes.cpp
  errors.cpp
  indexing.cpp
  interpreter.cpp
  module.cpp
  modules/copies.cpp
  modules/data.cpp
  modules/layers.cpp
  modules/optimisers.cpp
  modules/progress.cpp
  modules/state.cpp
  operators.cpp
  place.cpp
  programs/callbacks.cpp
  programs/functions.cpp
  programs/jit.cpp
  programs/kernels.cpp
  programs/scopes.cpp
  programs/tree.cpp
  programs/uops.cpp
  tensor.cpp
  values.cpp)
list(TRANSFORM plugrad_python_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
