# Installs the build tree of the main project without symbols, with the Clang that carries its LLVM along, in `destination`.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()
run(${CMAKE_COMMAND} --install ${tree} --prefix ${destination} --strip)
run(${CMAKE_COMMAND} --build ${tree} --target plugrad_clang_carried)
run(${CMAKE_COMMAND} --install ${tree} --prefix ${destination} --strip --component carried)
file(GLOB archives ${destination}/lib/*.a)
foreach(archive ${archives})
  run(${strip} --strip-debug ${archive})
endforeach()
# Benchmarks are for who works on plugrad; the peers that they run against are not in a wheel.
file(REMOVE ${destination}/bin/plugrad-bench)
