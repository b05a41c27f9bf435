// Compares random kernels with the interpreter. The shrinker passes its candidates as payload.
#include <fmt/format.h>

#include "conformance/kernels/random/random_kernel.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::conformance {
namespace {

constexpr int kKernels = 3;  // of a test

// Inputs depend only on a kernel's parameters, so that shrunk kernels get the same ones.
struct Arguments {
  std::vector<Bytes> buffers;
  std::vector<uint64_t> scalars;
};

Arguments random_arguments(const sdk::IrView& ir, uint64_t seed) {
  Arguments arguments;
  for (size_t i = 0; i < ir.params().size(); ++i) {
    const pgr_ir_param& param = ir.params()[i];
    Random random(seed + 977 * param.dtype);
    if (param.kind == PGR_PARAM_SCALAR) {
      const auto span = static_cast<uint64_t>(param.max - param.min) + 1;
      arguments.scalars.push_back(static_cast<uint64_t>(param.min) + (span ? random() % span : 0));
    } else if (param.flags & PGR_PARAM_WRITE) {
      arguments.buffers.emplace_back(param.elem_count * sdk::dtype_size(param.dtype));
    } else {
      arguments.buffers.push_back(
          pack(param.dtype, mixed_values(param.dtype, param.elem_count, random)));
    }
  }
  return arguments;
}

// Within `tolerance` ulp; tiny values may be flushed.
bool is_near(uint32_t dtype, uint64_t want, uint64_t got, double tolerance, bool may_flush) {
  if (want == got || (is_nan(dtype, want) && is_nan(dtype, got))) return true;
  const Format& f = format_of(dtype);
  const auto is_tiny = [&](uint64_t bits) { return f.magnitude(bits) <= f.smallest_normal() + 8; };
  if (is_zero(dtype, want) && is_zero(dtype, got)) return true;
  if (may_flush && is_tiny(want) && is_tiny(got)) return true;
  if (is_nan(dtype, want) || is_nan(dtype, got)) return false;
  Real value;
  set_value(value, dtype, want);
  return ulp_error(value, dtype, got) <= tolerance;
}

void compare(Context& context, const sdk::IrView& ir, const Comparison& comparison,
             const Arguments& want, const Arguments& got) {
  size_t buffer = 0;
  for (const pgr_ir_param& param : ir.params()) {
    if (param.kind != PGR_PARAM_BUFFER) continue;
    const double tolerance = comparison.tolerance[buffer];
    const auto expected = unpack(param.dtype, want.buffers[buffer]);
    const auto results = unpack(param.dtype, got.buffers[buffer]);
    const std::string name = fmt::format("buffer {} of a random kernel", buffer++);
    if (tolerance == 0) {
      expect_equal(param.dtype, expected, results, name);
      continue;
    }
    const bool may_flush = context.device().caps().denormals != PGR_DENORMALS_PRESERVE;
    for (size_t i = 0; i < expected.size(); ++i)
      expect(is_near(param.dtype, expected[i], results[i], tolerance, may_flush),
             fmt::format("{}: element {} is {}, expected {} within {} ulp", name, i,
                         describe(param.dtype, results[i]), describe(param.dtype, expected[i]),
                         tolerance));
  }
}

void run_kernel(Context& context, std::span<const std::byte> block) {
  context.about(block);
  const sdk::IrView ir = sdk::decode_ir(block);
  const Comparison comparison = make_comparison(ir, context.device().caps());
  if (!comparison.obstacle.empty())
    throw Unsupported("a device may compute this kernel otherwise: " + comparison.obstacle);
  Arguments want = random_arguments(ir, context.seed()), got = want;
  try {
    interpret(ir, want.buffers, want.scalars, 1 << 20);
  } catch (const sdk::StatusError& e) {
    if (context.payload().empty()) throw;
    throw Unsupported(fmt::format("a smaller kernel that is none: {}", e.what()));
  }
  context.device().require_claims(block);
  context.device().run(block, got.buffers, got.scalars);
  compare(context, ir, comparison, want, got);
}

void run_random(Context& context) {
  if (!context.payload().empty()) return run_kernel(context, context.payload());
  Random random(context.seed());
  for (int i = 0; i < kKernels; ++i)
    run_kernel(context, make_random_kernel(context.device().caps(), random));
}

}  // namespace

void add_random_tests(Tests& tests) {
  constexpr int kQuick = 40, kAll = 400;
  for (int i = 0; i < kAll; ++i) {
    Test test;
    test.id = fmt::format("l2.random.{:03}", i);
    test.level = Level::L2;
    test.quick = i < kQuick;
    test.shrinks = true;
    test.run = run_random;
    tests.push_back(std::move(test));
  }
}

}  // namespace plugrad::conformance
