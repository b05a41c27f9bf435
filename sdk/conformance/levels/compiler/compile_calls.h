// Calls of renderer and compiler, shared by their tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/levels/kernels.h"

namespace plugrad::conformance {

using Bytes = std::vector<std::byte>;

// Unsupported if the plugin has none.
const pgr_renderer_api& renderer_of(Context& context);
const pgr_compiler_api& compiler_of(Context& context);

std::string render(const pgr_renderer_api& renderer, pgr_device* device, const Bytes& block);

// The compiler's input for a kernel: source, or the block itself.
std::string input_of(Context& context, const Bytes& block);

struct Compiled {
  pgr_status status;
  std::string binary, log, message;
};
Compiled try_compile(const pgr_compiler_api& compiler, pgr_device* device, const std::string& input,
                     uint32_t optimize = 2);
std::string compile(const pgr_compiler_api& compiler, pgr_device* device, const std::string& input,
                    uint32_t optimize = 2);

// value[0] = value[0] * factor + 1: binaries that differ in one number.
Bytes scaled_kernel(int64_t factor, const std::string& name = "scaled");
// A few kernels for the tests.
std::vector<Bytes> several_blocks();

// Loads the binary of a scaled kernel, runs it on one value, and unloads it.
int32_t run_binary(Device& device, const std::string& binary, int32_t value,
                   std::string_view name = "scaled");
void expect_scaled(Device& device, const std::string& binary, int32_t factor,
                   const std::string& what);

// Calls it on several threads concurrently; the first failure ends the test.
void on_threads(int count, const std::function<void(int)>& run);

// The groups of compile tests.
void add_render_tests(Tests& tests);
void add_cache_tests(Tests& tests);

}  // namespace plugrad::conformance
