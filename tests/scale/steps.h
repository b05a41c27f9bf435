// Steps of training as textual IR, and a machine with round figures.
#pragma once

#include <fmt/format.h>

#include <string>

#include "scale/program.h"

namespace plugrad::tools::scale {

/// One step of SGD with momentum for the sum of the squares of x w: inputs x (rows, in), w
/// (in, out) and the momentum; results the loss, w and the momentum.
inline TracedPlan linear_step(int64_t rows, int64_t in, int64_t out) {
  const std::string text = fmt::format(R"(%0 = buffer f32 [0, 1, {0}, {1}]
%1 = buffer f32 [1, 1, {1}, {2}]
%2 = buffer f32 [2, 1, {1}, {2}]
%3 = reshape f32 %0 [{0}, {1}, 1]
%4 = expand f32 %3 [{0}, {1}, {2}]
%5 = reshape f32 %1 [1, {1}, {2}]
%6 = expand f32 %5 [{0}, {1}, {2}]
%7 = mul f32 %4, %6
%8 = reduce f32 %7 [add, 1]
%9 = mul f32 %8, %8
%10 = reduce f32 %9 [add, 0, 1, 2]
%11 = const f32 2
%12 = mul f32 %8, %11
%13 = expand f32 %12 [{0}, {1}, {2}]
%14 = mul f32 %4, %13
%15 = reduce f32 %14 [add, 0]
%16 = reshape f32 %15 [{1}, {2}]
%17 = detach f32 %16
%18 = const f32 0.5
%19 = mul f32 %2, %18
%20 = add f32 %17, %19
%21 = detach f32 %1
%22 = const f32 -0.125
%23 = mul f32 %20, %22
%24 = add f32 %21, %23
return %10, %24, %20
)",
                                       rows, in, out);
  return {.id = 7, .recorded = text, .replaces = {-1, 1, 2}, .measured = {}};
}

inline Program linear_program(int64_t rows, int64_t in, int64_t out) {
  return program_of({linear_step(rows, in, out)}, {});
}

/// Devices of 1 GB, 1 gigaflop a second and 1 GB/s, launches of 1 us; messages of 1 us and 1 GB/s.
inline constexpr const char* kRound = R"({
  "name": "round",
  "device": {"name": "round device", "memory_gigabytes": 1, "memory_gigabytes_per_second": 1,
             "vector_teraflops": 0.001, "launch_us": 1},
  "nodes": 1, "devices_per_node": 4,
  "link": {"gigabytes_per_second": 1, "latency_us": 1, "algorithm": "direct"}
})";

}  // namespace plugrad::tools::scale
