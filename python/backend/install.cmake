# Installs the build tree of the main project without symbols in `destination`.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()
run(${CMAKE_COMMAND} --install ${tree} --prefix ${destination} --strip)
file(GLOB archives ${destination}/lib/*.a)
foreach(archive ${archives})
  run(${strip} --strip-debug ${archive})
endforeach()
# Benchmarks are for who works on plugrad; the peers that they run against are not in a wheel.
file(REMOVE ${destination}/bin/plugrad-bench)
