// Implausible device capabilities: the host refuses the device, or its kernels are correct.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "gpu.h"
#include "kernels.h"
#include "plugrad/error.h"
#include "runtime/device/device_facts.h"

using namespace plugrad;
using namespace plugrad::test;

namespace {

struct Fact {
  const char* name;
  std::function<void(pgr_device_caps& caps, uint64_t value)> set;
};

#define PLUGRAD_FACT(field)                                                          \
  {#field, [](pgr_device_caps& caps, uint64_t value) {                               \
     caps.field = static_cast<std::remove_reference_t<decltype(caps.field)>>(value); \
   }}
const Fact kFacts[] = {
    PLUGRAD_FACT(vector_lanes[PGR_DTYPE_F32]),
    PLUGRAD_FACT(vector_registers),
    PLUGRAD_FACT(subgroup_size),
    PLUGRAD_FACT(has_local),
    PLUGRAD_FACT(threads),
    PLUGRAD_FACT(max_local_size[0]),
    PLUGRAD_FACT(max_local_size[2]),
    PLUGRAD_FACT(max_local_total),
    PLUGRAD_FACT(division),
    PLUGRAD_FACT(max_groups[0]),
    PLUGRAD_FACT(local_bytes),
    PLUGRAD_FACT(core_local_bytes),
    PLUGRAD_FACT(local_banks),
    PLUGRAD_FACT(local_bank_bytes),
    PLUGRAD_FACT(async_copy_bytes),
    PLUGRAD_FACT(private_bytes),
    PLUGRAD_FACT(cache_bytes[0]),
    PLUGRAD_FACT(cache_bytes[1]),
    PLUGRAD_FACT(cache_bytes[2]),
    PLUGRAD_FACT(cache_line_bytes),
    PLUGRAD_FACT(max_params),
    PLUGRAD_FACT(buffer_align_bytes),
};
#undef PLUGRAD_FACT

// True if the host accepts the device; its kernels are then correct or rejected with a reason.
bool is_taken(pgr_device_caps caps) {
  std::vector<pgr_tensor_core> cores;
  try {
    runtime::check_caps("ACME:0", caps, cores);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Device) << error.what();
    return false;
  }
  constexpr int64_t kSize = 24;
  const codegen::Options options;
  for (const Ast& ast : {matmul(256, 256, 256), softmax2(64, 1000), relu_sum(100000)}) try {
      generate(ast.graph, ast.sink, caps, options);
    } catch (const Error& error) {
      EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    }
  const Ast ast = matmul(kSize, kSize, kSize);
  std::vector<float> a = small_integers(kSize * kSize, 1), b = small_integers(kSize * kSize, 2);
  std::vector<float> c(kSize * kSize);
  run(generate(ast.graph, ast.sink, caps, options), {&c, &a, &b});
  EXPECT_EQ(c, matmul_loops(a, b, kSize, kSize, kSize));
  return true;
}

TEST(HostileCaps, EachFactAlone) {
  int taken = 0, refused = 0;
  for (const pgr_device_caps& base : {small_cpu(), gpu(32, 16, 64)})
    for (const Fact& fact : kFacts)
      for (const uint64_t value :
           {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{1} << 31, uint64_t{UINT32_MAX},
            uint64_t{1} << 50, uint64_t{1} << 63, uint64_t{INT64_MAX}, UINT64_MAX}) {
        SCOPED_TRACE(fmt::format("{} = {}", fact.name, value));
        pgr_device_caps caps = base;
        fact.set(caps, value);
        ++(is_taken(caps) ? taken : refused);
      }
  EXPECT_GT(taken, 200);
  EXPECT_GT(refused, 10);
}

TEST(HostileCaps, AllFactsAtOnce) {
  for (const uint64_t value : {uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 50, UINT64_MAX}) {
    SCOPED_TRACE(value);
    pgr_device_caps caps = gpu(32, 16, 64);
    for (const Fact& fact : kFacts) {
      pgr_device_caps with = caps;
      fact.set(with, value);
      std::vector<pgr_tensor_core> cores;
      try {
        runtime::check_caps("ACME:0", with, cores);
        fact.set(caps, value);
      } catch (const Error&) {  // caused by this capability
      }
    }
    is_taken(caps);
  }
}

}  // namespace
