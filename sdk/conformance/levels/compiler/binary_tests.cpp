// L1 errors: programs; damaged and foreign binaries and kernel IR.
#include <malloc.h>

#include <algorithm>

#include "conformance/levels/error_families.h"
#include "conformance/levels/heap_slack.h"
#include "conformance/levels/kernels.h"

namespace plugrad::conformance {
namespace {

// A loaded program, unloaded by the destructor.
class Program {
 public:
  Program(const Tables& t, std::span<const std::byte> binary) : t_(t) {
    expect_ok("runner.load", [&](pgr_error* error) {
      return t_.runner.load(t_.handle, binary.data(), binary.size(), &handle_, error);
    });
  }
  ~Program() { t_.runner.unload(t_.handle, handle_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pgr_kernel* kernel(std::string_view name) const {
    pgr_kernel* kernel = nullptr;
    const pgr_string text = sdk::to_pgr(name);
    expect_ok("runner.kernel", [&](pgr_error* error) {
      return t_.runner.kernel(t_.handle, handle_, &text, &kernel, error);
    });
    return kernel;
  }
  pgr_program* handle() const { return handle_; }

 private:
  const Tables& t_;
  pgr_program* handle_ = nullptr;
};

void expect_spread_works(const Tables& t, const Kernel& made, pgr_kernel* kernel, uint64_t seed) {
  const auto in = random_ints(30, seed);
  Buffer source = make_ints(t.device, in), out = make_ints(t.device, std::vector<int32_t>(30));
  Launch launch(made, {out.handle(), source.handle()}, {11}, {30, 1, 1});
  launch.kernel = kernel;
  launch.start(t);
  expect_ints("out", read_ints(out), spread_result(in, 11));
}

void check_kernel_names(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(spread_kernel(30));
  const Program program(t, made->binary());
  for (std::string_view name : {"", "sprea", "spreads", "Spread", "slow", "spread\n", "main"}) {
    pgr_kernel* const untouched = reinterpret_cast<pgr_kernel*>(&t);
    pgr_kernel* kernel = untouched;
    const pgr_string text = sdk::to_pgr(name);
    expect_status("kernel \"" + std::string(name) + "\" of a program that has spread",
                  PGR_STATUS_NOT_FOUND, [&](pgr_error* error) {
                    return t.runner.kernel(t.handle, program.handle(), &text, &kernel, error);
                  });
    expect(kernel == untouched, "a failed kernel() touched *out");
  }
  expect_spread_works(t, *made, program.kernel("spread"), context.seed());
}

void check_name_is_counted(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(spread_kernel(30));
  const Program program(t, made->binary());
  // Strings are not NUL-terminated: bytes behind the size are not part of the name.
  expect_spread_works(t, *made, program.kernel(std::string_view("spreadsheet").substr(0, 6)),
                      context.seed());
}

void check_null_programs(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(spread_kernel(30));
  const pgr_string name = sdk::to_pgr("spread");
  pgr_kernel* kernel = nullptr;
  pgr_program* program = nullptr;
  expect_status("kernel of a NULL program", PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
    return t.runner.kernel(t.handle, nullptr, &name, &kernel, error);
  });
  expect_status("load without an out-pointer", PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
    return t.runner.load(t.handle, made->binary().data(), made->binary().size(), nullptr, error);
  });
  CallError error;
  const pgr_status status = t.runner.load(t.handle, nullptr, 0, &program, error.get());
  expect(status == PGR_STATUS_INVALID_ARGUMENT || status == PGR_STATUS_BAD_BINARY,
         "load of NULL answered " + status_name(status));
  t.runner.unload(t.handle, nullptr);
}

void check_binary_is_copied(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(spread_kernel(30));
  std::vector<std::byte> binary(made->binary().begin(), made->binary().end());
  const Program program(t, binary);
  std::fill(binary.begin(), binary.end(), std::byte{0xcc});
  binary = {};
  expect_spread_works(t, *made, program.kernel("spread"), context.seed());
}

void check_programs_are_apart(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(spread_kernel(30)), slow = t.device.compile(slow_kernel());
  auto first = std::make_unique<Program>(t, made->binary());
  const Program second(t, made->binary()), third(t, slow->binary());
  pgr_kernel* kernel = second.kernel("spread");
  expect_spread_works(t, *made, first->kernel("spread"), context.seed());
  first.reset();
  expect_spread_works(t, *made, kernel, context.seed());
  pgr_kernel* none = nullptr;
  const pgr_string name = sdk::to_pgr("spread");
  expect_status("the kernel of another program", PGR_STATUS_NOT_FOUND, [&](pgr_error* error) {
    return t.runner.kernel(t.handle, third.handle(), &name, &none, error);
  });
}

void check_unload_waits(Context& context) {
  Tables t(context);
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(30);
  Buffer value = make_ints(t.device, std::vector<int32_t>{3});
  {
    const Program program(t, slow.kernel().binary());
    Launch launch(slow.kernel(), {value.handle()}, {steps});
    launch.kernel = program.kernel("slow");
    launch.start(t);
  }
  // read before the expected value is computed, which takes long
  const std::vector<int32_t> seen = read_ints(value);
  expect_ints("a launch whose program was unloaded at once", seen,
              std::vector<int32_t>{slow_result(3, steps)});
}

bool is_refusal(pgr_status status) {
  return status == PGR_STATUS_INVALID_ARGUMENT || status == PGR_STATUS_COMPILE_FAILED ||
         status == PGR_STATUS_BAD_BINARY || status == PGR_STATUS_UNSUPPORTED ||
         status == PGR_STATUS_LIMIT_EXCEEDED || status == PGR_STATUS_INCOMPATIBLE;
}

// Expects BAD_BINARY; if `is_mostly_good`, any other valid status is accepted.
void expect_bad(const Tables& t, const std::string& what, std::span<const std::byte> bytes,
                bool is_mostly_good = false) {
  CallError error;
  pgr_program* program = nullptr;
  const pgr_status status =
      t.runner.load(t.handle, bytes.data(), bytes.size(), &program, error.get());
  if (status == PGR_STATUS_OK) t.runner.unload(t.handle, program);
  if (status == PGR_STATUS_OK && is_mostly_good) return;
  if (status == PGR_STATUS_BAD_BINARY || (is_mostly_good && is_refusal(status))) return;
  throw Failed("load of " + what + " answered " + status_name(status) + ", not BAD_BINARY" +
               (error.message().empty() ? "" : ": " + error.message()));
}

void check_garbage(Context& context) {
  Tables t(context);
  for (uint64_t size : {1, 3, 4, 15, 16, 31, 32, 64, 100, 1000, 65'536}) {
    const std::string bytes_of = std::to_string(size) + " bytes of ";
    expect_bad(t, bytes_of + "noise", patterned(size, context.seed() + size));
    expect_bad(t, bytes_of + "zeros", std::vector<std::byte>(size));
    expect_bad(t, bytes_of + "ones", std::vector<std::byte>(size, std::byte{0xff}));
  }
}

void check_foreign(Context& context) {
  Tables t(context);
  const char elf[] =
      "\x7f"
      "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0";
  const char ptx[] = "//\n.version 8.3\n.target sm_90\n.address_size 64\n.visible .entry spread()";
  const char spirv[] = "\x03\x02\x23\x07\0\0\x01\0\x0b\0\x08\0\x10\0\0\0\0\0\0\0";
  auto bytes = [](const auto& text) { return std::as_bytes(std::span(text)); };
  expect_bad(t, "the start of an ELF file", bytes(elf));
  expect_bad(t, "PTX", bytes(ptx));
  expect_bad(t, "the start of a SPIR-V module", bytes(spirv));
}

void check_truncated(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(spread_kernel(30));
  const std::span<const std::byte> binary = made->binary();
  std::vector<size_t> lengths = {1, 4, 8, 16, 32, binary.size() - 1, binary.size() / 2};
  for (size_t i = 1; i < 16; ++i) lengths.push_back(binary.size() * i / 16);
  for (size_t length : lengths) {
    if (length >= binary.size()) continue;
    // A separate allocation: sanitizers then detect reads behind its end.
    const std::vector<std::byte> part(binary.begin(),
                                      binary.begin() + static_cast<ptrdiff_t>(length));
    expect_bad(
        t,
        "the first " + std::to_string(length) + " of " + std::to_string(binary.size()) + " bytes",
        part);
  }
}

// A flipped bit may be irrelevant; a binary that loads is not run.
void check_flipped(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(spread_kernel(30));
  const std::vector<std::byte> binary(made->binary().begin(), made->binary().end());
  uint64_t state = context.seed();
  for (int i = 0; i < 400; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::vector<std::byte> damaged = binary;
    const size_t at =
        i < 64 ? static_cast<size_t>(i) % binary.size() : (state >> 20) % binary.size();
    damaged[at] ^= static_cast<std::byte>(1u << (state >> 10 & 7));
    expect_bad(t, "a binary with a bit of byte " + std::to_string(at) + " changed", damaged, true);
  }
  const Program good(t, binary);
  expect_spread_works(t, *made, good.kernel("spread"), context.seed());
}

void check_load_leak(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(spread_kernel(30));
  const auto garbage = patterned(200, context.seed());
  auto round = [&] {
    {
      const Program program(t, made->binary());
    }
    expect_bad(t, "noise", garbage);
  };
  for (int i = 0; i < 50; ++i) round();
  const struct mallinfo2 before = ::mallinfo2();
  constexpr int kRounds = 500;
  for (int i = 0; i < kRounds; ++i) round();
  const struct mallinfo2 after = ::mallinfo2();
  const uint64_t now = after.uordblks + after.hblkhd, then = before.uordblks + before.hblkhd;
  expect(now <= then + kRounds * heap_slack_a_round(), "loading and unloading 500 times left " +
                                                           std::to_string(now - then) +
                                                           " bytes of the heap behind");
}

void check_launch_leak(Context& context) {
  Tables t(context);
  const auto made = t.device.compile(slow_kernel());
  Buffer value = make_ints(t.device, std::vector<int32_t>{3});
  Launch launch(*made, {value.handle()}, {1});
  auto round = [&] {
    launch.start(t);
    t.device.synchronize();
  };
  for (int i = 0; i < 100; ++i) round();
  const struct mallinfo2 before = ::mallinfo2();
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds; ++i) round();
  const struct mallinfo2 after = ::mallinfo2();
  const uint64_t now = after.uordblks + after.hblkhd, then = before.uordblks + before.hblkhd;
  expect(now <= then + kRounds * heap_slack_a_round(),
         "2,000 launches left " + std::to_string(now - then) + " bytes of the heap behind");
}

// Passes kernel IR to the plugin: its renderer, else its compiler, else its runner.
pgr_status translate(const Tables& t, std::span<const std::byte> block, pgr_error* error) {
  Plugin& plugin = t.device.plugin();
  Blob out, log;
  if (const pgr_renderer_api* renderer = plugin.renderer_api()) {
    pgr_render_desc desc;
    PGR_INIT(desc, RENDER_DESC);
    desc.ir = block.data();
    desc.ir_bytes = block.size();
    desc.option_stride = sizeof(pgr_option);
    return renderer->render(t.handle, &desc, out.get(), error);
  }
  if (const pgr_compiler_api* compiler = plugin.compiler_api()) {
    pgr_compile_desc desc;
    PGR_INIT(desc, COMPILE_DESC);
    desc.input = block.data();
    desc.input_bytes = block.size();
    desc.option_stride = sizeof(pgr_option);
    return compiler->compile(t.handle, &desc, out.get(), log.get(), error);
  }
  pgr_program* program = nullptr;
  const pgr_status status = t.runner.load(t.handle, block.data(), block.size(), &program, error);
  if (status == PGR_STATUS_OK) t.runner.unload(t.handle, program);
  return status;
}

void expect_ir_refused(const Tables& t, const std::string& what, std::span<const std::byte> block,
                       bool may_be_good = false) {
  CallError error;
  const pgr_status status = translate(t, block, error.get());
  if (is_refusal(status) || (may_be_good && status == PGR_STATUS_OK)) return;
  throw Failed("kernel IR that is " + what + " was answered with " + status_name(status) +
               (error.message().empty() ? "" : ": " + error.message()));
}

void check_ir_truncated(Context& context) {
  Tables t(context);
  const auto block = spread_kernel(30);
  for (size_t length = 0; length < block.size(); length += length < 160 ? 1 : 24) {
    const std::vector<std::byte> part(block.begin(),
                                      block.begin() + static_cast<ptrdiff_t>(length));
    expect_ir_refused(t, "cut off after " + std::to_string(length) + " bytes", part);
  }
}

void check_ir_flipped(Context& context) {
  Tables t(context);
  const auto block = spread_kernel(30);
  for (size_t at = 0; at < block.size(); ++at)
    for (uint32_t bit : {0u, 7u}) {
      auto damaged = block;
      damaged[at] ^= static_cast<std::byte>(1u << bit);
      expect_ir_refused(t, "damaged at byte " + std::to_string(at), damaged, true);
    }
}

void check_ir_garbage(Context& context) {
  Tables t(context);
  for (uint64_t size : {8, 64, 160, 1000})
    expect_ir_refused(t, std::to_string(size) + " bytes of noise",
                      patterned(size, context.seed() + size));
}

}  // namespace

void add_binary_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run) {
    add_test(tests, Level::L1, "l1.error." + id, std::move(run)).alone = id.ends_with(".leak");
  };
  add("kernel.not_found", check_kernel_names);
  add("kernel.name_is_counted", check_name_is_counted);
  add("program.null_arguments", check_null_programs);
  add("program.binary_copied", check_binary_is_copied);
  add("program.apart", check_programs_are_apart);
  add("program.unload_waits", check_unload_waits);
  add("program.leak", check_load_leak);
  add("launch.leak", check_launch_leak);
  add("binary.garbage", check_garbage);
  add("binary.foreign", check_foreign);
  add("binary.truncated", check_truncated);
  add("binary.flipped", check_flipped);
  add("ir.garbage", check_ir_garbage);
  add("ir.truncated", check_ir_truncated);
  add("ir.flipped", check_ir_flipped);
}

}  // namespace plugrad::conformance
