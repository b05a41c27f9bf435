# The module's sources that are written by hand; bindings.py writes the others.
set(plugrad_python_sources
  arguments.cpp
  arrays.cpp
  data.cpp
  devices.cpp
  dlpack.cpp
  dtypes.cpp
  errors.cpp
  exchange.cpp
  held_objects.cpp
  host_array.cpp
  host_values.cpp
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
  values.cpp)
list(TRANSFORM plugrad_python_sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
