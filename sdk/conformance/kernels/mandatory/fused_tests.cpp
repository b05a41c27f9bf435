// Tests fused kernels that plugrad's compiler generated for a device with only the mandatory ops.
// tools/update-blocks writes them to blocks/. The interpreter gives the expected results.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/mandatory/core.h"

namespace plugrad::conformance {
namespace {

struct FusedBlock {
  const char* name;
  std::span<const uint8_t> bytes;
};

#include "fused_blocks.inc"

// Integers are indices into tables, or labels: all are in range.
std::vector<uint64_t> fused_input(const pgr_ir_param& param, Random& random) {
  std::vector<uint64_t> values = tame_values(param.dtype, param.elem_count, random);
  if (is_integer(param.dtype))
    for (uint64_t& value : values) value = random() % 8;
  return values;
}

// Tolerates the error of devices that round quotients differently or flush denormals.
void expect_near(uint32_t dtype, const std::vector<uint64_t>& want,
                 const std::vector<uint64_t>& got, const std::string& what) {
  constexpr double kPart = 1e-4;  // of the largest result
  double most = 0;
  std::vector<double> numbers[2];
  for (size_t i = 0; i < want.size(); ++i) {
    Real value;
    set_value(value, dtype, want[i]);
    numbers[0].push_back(mpfr_get_d(value, MPFR_RNDN));
    set_value(value, dtype, got[i]);
    numbers[1].push_back(mpfr_get_d(value, MPFR_RNDN));
    if (std::isfinite(numbers[0][i])) most = std::max(most, std::fabs(numbers[0][i]));
  }
  for (size_t i = 0; i < want.size(); ++i)
    expect(want[i] == got[i] || (std::isnan(numbers[0][i]) && std::isnan(numbers[1][i])) ||
               std::fabs(numbers[0][i] - numbers[1][i]) <= kPart * most,
           fmt::format("{}: element {} is {}, expected about {}", what, i, describe(dtype, got[i]),
                       describe(dtype, want[i])));
}

void run_fused(Context& context, const FusedBlock& fused) {
  const std::span<const std::byte> block = std::as_bytes(fused.bytes);
  const sdk::IrView ir = sdk::decode_ir(block);
  Random random(context.seed());
  std::vector<Bytes> contents;
  for (const pgr_ir_param& param : ir.params())
    contents.push_back(pack(param.dtype, fused_input(param, random)));
  std::vector<Bytes> want = contents;
  interpret(ir, want);
  run_block(context, block, contents);
  const pgr_device_caps& caps = context.device().caps();
  const bool is_exact = caps.division == 0 && caps.denormals == PGR_DENORMALS_PRESERVE;
  for (size_t i = 0; i < contents.size(); ++i) {
    const uint32_t dtype = ir.params()[i].dtype;
    const std::string what = fmt::format("{}, buffer {}", fused.name, i);
    if (is_exact || !is_float(dtype))
      expect_equal(dtype, unpack(dtype, want[i]), unpack(dtype, contents[i]), what);
    else
      expect_near(dtype, unpack(dtype, want[i]), unpack(dtype, contents[i]), what);
  }
}

}  // namespace

void add_fused_tests(Tests& tests) {
  for (const FusedBlock& block : kFusedBlocks) {
    Test test;
    test.id = "l1.fused." + std::string(block.name);
    test.run = [&block](Context& context) { run_fused(context, block); };
    tests.push_back(std::move(test));
  }
}

}  // namespace plugrad::conformance
