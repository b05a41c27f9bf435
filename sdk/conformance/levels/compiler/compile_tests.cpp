// L2 compile: repeated and concurrent compilation, optimisation levels, failures.
#include <malloc.h>

#include "conformance/levels/compiler/compile_calls.h"
#include "plugrad/sdk/ir_builder.h"

namespace plugrad::conformance {
namespace {

using sdk::IrBuilder;

void check_compile_twice(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  Device& device = context.device();
  const std::string input = input_of(context, scaled_kernel(7));
  const std::string first = compile(compiler, device.handle(), input);
  const std::string second = compile(compiler, device.handle(), input);
  expect_scaled(device, first, 7, "the first binary");
  expect_scaled(device, second, 7, "the second binary");
}

void check_stale(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  Device& device = context.device();
  // Equal names and lengths: only the factor differs.
  for (int32_t factor : {3, 4, 5, 3, 5})
    expect_scaled(device,
                  compile(compiler, device.handle(), input_of(context, scaled_kernel(factor))),
                  factor, "a kernel that is named as the one compiled before");
  // Loaded side by side.
  const std::string two = compile(compiler, device.handle(), input_of(context, scaled_kernel(2)));
  const std::string nine = compile(compiler, device.handle(), input_of(context, scaled_kernel(9)));
  for (int i = 0; i < 3; ++i) {
    expect_scaled(device, two, 2, "the binary of factor 2");
    expect_scaled(device, nine, 9, "the binary of factor 9");
  }
}

void check_optimize_levels(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  Device& device = context.device();
  const std::string input = input_of(context, scaled_kernel(-3));
  for (uint32_t level = 0; level <= 3; ++level)
    expect_scaled(device, compile(compiler, device.handle(), input, level), -3,
                  "the binary of optimize " + std::to_string(level));
}

void check_no_log_wanted(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  const std::string input = input_of(context, scaled_kernel(7));
  pgr_compile_desc desc;
  PGR_INIT(desc, COMPILE_DESC);
  desc.input = input.data();
  desc.input_bytes = input.size();
  desc.option_stride = sizeof(pgr_option);
  Blob binary;
  expect_ok("compile with a NULL log", [&](pgr_error* error) {
    return compiler.compile(context.device().handle(), &desc, binary.get(), nullptr, error);
  });
  expect_scaled(context.device(), binary.text(), 7, "the binary");
}

void check_compile_threads(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  Device& device = context.device();
  std::vector<std::string> inputs, binaries(8);
  for (int32_t factor = 0; factor < 8; ++factor)
    inputs.push_back(input_of(context, scaled_kernel(factor + 11)));
  on_threads(8, [&](int i) {
    binaries[static_cast<size_t>(i)] =
        compile(compiler, device.handle(), inputs[static_cast<size_t>(i)]);
  });
  for (int32_t i = 0; i < 8; ++i)
    expect_scaled(device, binaries[static_cast<size_t>(i)], i + 11, "a binary made on a thread");
}

void check_failure_log(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  const Compiled bad =
      try_compile(compiler, context.device().handle(), "this ] is ) no { kernel in any language");
  expect(bad.status == PGR_STATUS_COMPILE_FAILED || bad.status == PGR_STATUS_INVALID_ARGUMENT,
         "compiling garbage answered " + status_name(bad.status));
  expect(bad.binary.empty(), "a failed compile gave a binary");
  if (bad.status == PGR_STATUS_COMPILE_FAILED)
    expect(!bad.log.empty(), "COMPILE_FAILED comes without a log that says why");
  else
    expect(!bad.message.empty(), "compiling garbage was refused without a message");
  const std::string good =
      compile(compiler, context.device().handle(), input_of(context, scaled_kernel(7)));
  expect_scaled(context.device(), good, 7, "a binary compiled behind a failure");
}

// A truncated source, e.g. from a full disk.
void check_truncated_input(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  const std::string input = input_of(context, scaled_kernel(7));
  for (size_t part = 1; part < 4; ++part) {
    const std::string cut = input.substr(0, input.size() * part / 4);
    const Compiled bad = try_compile(compiler, context.device().handle(), cut);
    if (bad.status != PGR_STATUS_OK) continue;
    // A prefix may be a valid translation unit, but lacks the kernel.
    const Tables t(context);
    pgr_program* program = nullptr;
    if (t.runner.load(t.handle, bad.binary.data(), bad.binary.size(), &program, nullptr) !=
        PGR_STATUS_OK)
      continue;
    pgr_kernel* kernel = nullptr;
    const pgr_string name = sdk::to_pgr("scaled");
    const pgr_status status = t.runner.kernel(t.handle, program, &name, &kernel, nullptr);
    t.runner.unload(t.handle, program);
    expect(status != PGR_STATUS_OK, "a source that was cut off was compiled to its kernel");
  }
}

void check_compile_leak(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  const std::string input = input_of(context, scaled_kernel(7));
  auto round = [&] { compile(compiler, context.device().handle(), input); };
  for (int i = 0; i < 8; ++i) round();
  const struct mallinfo2 before = ::mallinfo2();
  constexpr uint64_t kRounds = 16, kSlack = 4096;  // vendors' compilers retain a little memory
  for (uint64_t i = 0; i < kRounds; ++i) round();
  const struct mallinfo2 after = ::mallinfo2();
  expect(after.uordblks <= before.uordblks + kRounds * kSlack,
         "compiling 16 times left " + std::to_string(after.uordblks - before.uordblks) +
             " bytes of the heap behind");
}

// x * y + z with and without contraction: out[0] = 0 if the product was rounded.
Bytes contract_kernel() {
  IrBuilder b("contracted");
  b.set_contract(true);
  auto out = b.buffer(PGR_DTYPE_F32, 1), in = b.buffer(PGR_DTYPE_F32, 3);
  auto at = [&](int64_t i) { return b.constant_int(PGR_DTYPE_I32, i); };
  auto product = b.alu(PGR_OP_MUL, {b.load(in, at(0)), b.load(in, at(1))});
  b.store(out, at(0), b.alu(PGR_OP_ADD, {product, b.load(in, at(2))}));
  return b.finish();
}

float contracted_result(Device& device, bool contract) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: rounding the product drops the last term.
  const float x = 1 + 0x1p-12f, in[3] = {x, x, -(1 + 0x1p-11f)};
  Buffer out = device.allocate(4), from = device.allocate(sizeof in);
  from.write(std::as_bytes(std::span(in)));
  const auto kernel = device.compile(contract_kernel(), contract);
  device.launch(*kernel, {{out.handle(), from.handle()}, {}, {1, 1, 1}, {1, 1, 1}});
  float value = 0;
  out.read(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

void check_contract_off(Context& context) {
  Device& device = context.device();
  device.require_claims(contract_kernel());
  context.about(contract_kernel());
  const float value = contracted_result(device, false);
  expect(value == 0,
         "with contract off a multiply and an add rounded once: " + std::to_string(value));
}

void check_contract_allowed(Context& context) {
  Device& device = context.device();
  device.require_claims(contract_kernel());
  context.about(contract_kernel());
  const float value = contracted_result(device, true);
  expect(value == 0 || value == 0x1p-24f,
         "x * y + z is neither rounded once nor twice: " + std::to_string(value));
  if (!device.caps().contract_supported)
    expect(value == 0, "contract has an effect, and caps.contract_supported is 0");
}

}  // namespace

void add_compile_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run) {
    Test& test = add_test(tests, Level::L2, "l2.compile." + id, std::move(run));
    test.claim = "pgr.compiler";
    test.alone = id == "leak";
  };
  add("twice", check_compile_twice);
  add("stale", check_stale);
  add("optimize", check_optimize_levels);
  add("no_log", check_no_log_wanted);
  add("threads", check_compile_threads);
  add("failure", check_failure_log);
  add("truncated_input", check_truncated_input);
  add("leak", check_compile_leak);
  add_test(tests, Level::L2, "l2.compile.contract.off", check_contract_off);
  add_test(tests, Level::L2, "l2.compile.contract.allowed", check_contract_allowed);
  add_render_tests(tests);
  add_cache_tests(tests);
}

}  // namespace plugrad::conformance
