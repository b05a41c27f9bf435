// L2 compile: cache identity and validation of binaries.
#include <chrono>
#include <thread>

#include "conformance/levels/compiler/compile_calls.h"

namespace plugrad::conformance {
namespace {

std::string identity_of(const pgr_compiler_api& compiler, pgr_device* device) {
  Blob text;
  expect_ok("compiler.cache_identity",
            [&](pgr_error* error) { return compiler.cache_identity(device, text.get(), error); });
  return text.text();
}

void check_identity_stays(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  const std::string identity = identity_of(compiler, context.device().handle());
  expect(identity.size() >= 4, "cache_identity is \"" + identity + "\": too little to tell by");
  const auto other = context.plugin().open_device();
  for (int i = 0; i < 10; ++i) {
    expect(identity_of(compiler, context.device().handle()) == identity,
           "cache_identity changes from call to call");
    expect(identity_of(compiler, other->handle()) == identity,
           "two handles of one device have different cache identities");
  }
}

void check_identity_is_cheap(Context& context) {
  using Clock = std::chrono::steady_clock;
  const pgr_compiler_api& compiler = compiler_of(context);
  identity_of(compiler, context.device().handle());
  const auto begin = Clock::now();
  constexpr int kCalls = 100;
  for (int i = 0; i < kCalls; ++i) identity_of(compiler, context.device().handle());
  const double us =
      std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCalls;
  expect(us < 1000, "cache_identity takes " + std::to_string(us) + " microseconds a call");
}

void check_other_handle(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  const std::string binary =
      compile(compiler, context.device().handle(), input_of(context, scaled_kernel(21)));
  const auto other = context.plugin().open_device();
  expect_scaled(*other, binary, 21, "a binary of another device handle");
}

void check_binary_is_named(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  Device& device = context.device();
  const std::string binary =
      compile(compiler, device.handle(), input_of(context, scaled_kernel(6, "another_name")));
  const int32_t found = run_binary(device, binary, 10, "another_name");
  expect(found == 61, "the kernel another_name gives " + std::to_string(found) + ", not 61");
}

uint32_t validate(Context& context, const std::string& binary) {
  const pgr_compiler_api& compiler = compiler_of(context);
  require_offered(compiler.validate, "pgr.compiler validate");
  uint32_t verdict = 99;
  expect_ok_or_unsupported("compiler.validate", [&](pgr_error* error) {
    return compiler.validate(context.device().handle(), binary.data(), binary.size(), &verdict,
                             error);
  });
  expect(verdict <= PGR_BINARY_FOREIGN, "validate gave verdict " + std::to_string(verdict));
  return verdict;
}

void check_validate_good(Context& context) {
  for (const Bytes& block : several_blocks()) {
    const std::string binary =
        compile(compiler_of(context), context.device().handle(), input_of(context, block));
    expect(validate(context, binary) == PGR_BINARY_GOOD,
           "validate does not call a binary GOOD that was just compiled");
  }
}

void check_validate_bad(Context& context) {
  const std::string binary =
      compile(compiler_of(context), context.device().handle(), input_of(context, scaled_kernel(7)));
  auto expect_bad = [&](const std::string& bytes, const std::string& what) {
    expect(validate(context, bytes) != PGR_BINARY_GOOD, "validate calls " + what + " GOOD");
  };
  expect_bad("", "nothing at all");
  expect_bad("garbage", "garbage");
  expect_bad(std::string(4096, '\0'), "a page of zeros");
  expect_bad(binary.substr(0, binary.size() / 2), "half a binary");
  expect_bad(binary.substr(0, binary.size() - 1), "a binary without its last byte");
  std::string damaged = binary;
  damaged[0] = static_cast<char>(damaged[0] ^ 0x40);
  expect_bad(damaged, "a binary whose first byte is damaged");
}

// A stale cache entry of an older driver differs in a few bytes: `validate` and `load` must agree
// on it, or the host would fail on a binary that was validated.
void check_validate_agrees(Context& context) {
  const std::string binary =
      compile(compiler_of(context), context.device().handle(), input_of(context, scaled_kernel(7)));
  const Tables t(context);
  for (size_t at = 0; at < binary.size(); at += at < 256 ? 3 : 61) {
    std::string other = binary;
    other[at] = static_cast<char>(other[at] ^ 1);
    if (validate(context, other) != PGR_BINARY_GOOD) continue;
    CallError error;
    pgr_program* program = nullptr;
    const pgr_status status =
        t.runner.load(t.handle, other.data(), other.size(), &program, error.get());
    // A valid binary may still need more than the device has.
    expect(status != PGR_STATUS_BAD_BINARY,
           "validate calls a binary GOOD whose byte " + std::to_string(at) +
               " differs, and load answers BAD_BINARY: " + error.message());
    if (status != PGR_STATUS_OK) continue;
    t.runner.unload(t.handle, program);
  }
}

void check_disassemble(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  require_offered(compiler.disassemble, "pgr.compiler disassemble");
  const std::string binary =
      compile(compiler, context.device().handle(), input_of(context, scaled_kernel(7)));
  Blob text;
  expect_ok_or_unsupported("compiler.disassemble", [&](pgr_error* error) {
    return compiler.disassemble(context.device().handle(), binary.data(), binary.size(), text.get(),
                                error);
  });
  expect(text.text().size() >= 16,
         "the disassembly has " + std::to_string(text.text().size()) + " bytes");
  Blob none;
  CallError error;
  const pgr_status status =
      compiler.disassemble(context.device().handle(), "garbage", 7, none.get(), error.get());
  expect(status != PGR_STATUS_OK || none.text().empty(), "garbage was disassembled");
}

void check_blob_release(Context& context) {
  const pgr_compiler_api& compiler = compiler_of(context);
  pgr_blob blob;
  PGR_INIT(blob, BLOB);
  expect_ok("compiler.cache_identity", [&](pgr_error* error) {
    return compiler.cache_identity(context.device().handle(), &blob, error);
  });
  if (!blob.release) return;
  std::thread([&] { blob.release(&blob); }).join();  // on any thread
  if (blob.release) blob.release(&blob);             // again: harmless
}

}  // namespace

void add_cache_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run,
                 const char* unlocked_by = "") {
    Test& test = add_test(tests, Level::L2, "l2.compile." + id, std::move(run));
    test.claim = "pgr.compiler";
    test.unlocked_by = unlocked_by;
  };
  add("identity.stays", check_identity_stays);
  add("identity.cheap", check_identity_is_cheap);
  add("binary.other_handle", check_other_handle);
  add("binary.name", check_binary_is_named);
  add("blob.release", check_blob_release);
  add("validate.good", check_validate_good, "pgr.compiler validate");
  add("validate.bad", check_validate_bad, "pgr.compiler validate");
  add("validate.agrees", check_validate_agrees, "pgr.compiler validate");
  add("disassemble", check_disassemble, "pgr.compiler disassemble");
}

}  // namespace plugrad::conformance
