# The module's sources that are written by hand; bindings.py writes the others.
set(plugrad_python_sources
  arguments.cpp
  data.cpp
  devices.cpp
  dtypes.cpp
  errors.cpp
  indexing.cpp
  interpreter.cpp
  layers.cpp
  module.cpp
  operators.cpp
  optimisers.cpp
  place.cpp
  progress.cpp
  state.cpp
  tensor.cpp
  values.cpp
  exchange/arrays.cpp
  exchange/constructors.cpp
  exchange/dlpack.cpp
  exchange/held_objects.cpp
  exchange/host_array.cpp
  exchange/host_values.cpp)
list(TRANSFORM plugrad_python_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
