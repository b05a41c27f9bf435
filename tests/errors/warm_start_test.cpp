// A program whose plans and kernels are in the disk cache runs without planning, code generation,
// renderer and compiler.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/session.h"
#include "errors/fresh_process.h"
#include "plugrad/jit.h"
#include "plugrad/plugrad.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;

namespace {

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(library) != line.npos) return true;
  return false;
}

void compute_warm() {
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
                                   compute_warm();
                                   if (!is_mapped("libplugrad_clang"))
                                     throw std::runtime_error("compiled without the compiler");
                                 })
                .error,
            "");
  EXPECT_EQ(
      run_in_fresh_process(use_cache,
                           [] {
                             compute_warm();
                             for (const char* library :
                                  {"libLLVM", "libclang", "libplugrad_clang", "libplugrad_render"})
                               if (is_mapped(library)) throw std::runtime_error(library);
                             if (engine::Session::current().statistics().codegen_ns != 0)
                               throw std::runtime_error("code was generated");
                           })
          .error,
      "");
}

namespace {

// Kernels that share loops, a table of constants, copies between devices, a jitted call with
// prepared constants and an assignment.
std::string results_of_many_plans() {
  const Tensor table = Tensor::arange(0, 600).reshape({20, 30}).cos();
  const Tensor x = Tensor::arange(0, 20).reshape({1, 20}) / 20;
  Tensor weights = table.clone().realize();
  const auto step = jit([&](const Tensor& input) {
    const Tensor result = matmul(input, weights.transpose(0, 1).contiguous().transpose(0, 1));
    return result.relu() + result.mean();
  });
  std::string text;
  const auto add = [&](const Tensor& result) {
    text += fmt::format("{}\n", fmt::join(result.to_vector<float>(), " "));
  };
  add(matmul(x, table).softmax(-1));
  add((x * 3).to("REFERENCE").exp().to("CPU").sum());
  for (int call = 0; call < 4; ++call) add(step(x + static_cast<float>(call)));
  weights.assign(weights * 2);
  add(step(x));
  add(x.reshape({20}).cumsum(0));
  return text;
}

}  // namespace

TEST(WarmStart, PlansOfAnEarlierProcess_ComputeTheSame) {
  TemporaryDirectory cache;
  const std::string expected = cache.path() + "/expected";
  enum class Finds : uint8_t { Nothing, Some, All };
  const auto run = [&](Finds finds, const char* opened_first) {
    return run_in_fresh_process(
               [&](Settings& s) { s.cache_dir = cache.path(); },
               [&] {
                 Tensor::zeros({1}, DType::F32, opened_first).realize();
                 const auto before = engine::Session::current().statistics();
                 const std::string results = results_of_many_plans();
                 const auto now = engine::Session::current().statistics();
                 const uint64_t made = now.plans_made - before.plans_made;
                 const uint64_t found = now.plans_from_disk - before.plans_from_disk;
                 if (finds != Finds::Some && found != (finds == Finds::All ? made : 0))
                   throw std::runtime_error(fmt::format("{} of {} plans found", found, made));
                 if (made == 0 ||
                     (finds == Finds::All && now.planned_nodes != before.planned_nodes))
                   throw std::runtime_error("graphs were planned, or no plan was needed");
                 if (!std::filesystem::exists(expected)) std::ofstream(expected) << results;
                 std::stringstream read;
                 read << std::ifstream(expected).rdbuf();
                 if (read.str() != results) throw std::runtime_error("other numbers");
               })
        .error;
  };
  EXPECT_EQ(run(Finds::Nothing, "CPU"), "");
  EXPECT_EQ(run(Finds::All, "CPU"), "");
  EXPECT_EQ(run(Finds::Some, "REFERENCE"), "");  // with other numbers of devices
  EXPECT_EQ(run(Finds::All, "REFERENCE"), "");
}
