// A program whose kernels are in the disk cache runs without code generation, renderer and
// compiler.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/session.h"
#include "errors/fresh_process.h"
#include "plugrad/tensor.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;

namespace {

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != line.npos) return true;
  return false;
}

void compute() {
  const Tensor x = Tensor::from<float>({1, 2, 3});
  if ((x * 2 + 1).to_vector<float>() != std::vector<float>{3, 5, 7})
    throw std::runtime_error("wrong numbers");
}

}  // namespace

TEST(WarmStart, TheFirstKernelNeedsNoCompiler) {
  TemporaryDirectory cache;
  const auto use_cache = [&](Settings& s) { s.cache_dir = cache.path(); };
  EXPECT_EQ(run_in_fresh_process(use_cache,
                                 [] {
                                   compute();
                                   if (!is_mapped("libplugrad_clang"))
                                     throw std::runtime_error("compiled without the compiler");
                                 })
                .error,
            "");
  EXPECT_EQ(
      run_in_fresh_process(use_cache,
                           [] {
                             compute();
                             for (const char* library :
                                  {"libLLVM", "libclang", "libplugrad_clang", "libplugrad_render"})
                               if (is_mapped(library)) throw std::runtime_error(library);
                             if (engine::Session::current().statistics().codegen_ns != 0)
                               throw std::runtime_error("code was generated");
                           })
          .error,
      "");
}
