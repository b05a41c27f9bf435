// Tests replay tokens and the shrinking of failing kernels.
#include "conformance/driver/replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "conformance/driver/shrink.h"
#include "conformance/suite_run.h"
#include "plugrad/sdk/ir_builder.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 3);
  return bytes;
}

TEST(ReplayToken, HoldsTestSeedAndPayload) {
  for (const size_t size : {0, 1, 2, 3, 1000}) {
    const Replay given{"l2.random.17", 0xfedcba9876543210, some_bytes(size)};
    const std::string token = encode_replay(given);
    EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                      "0123456789-_"),
              token.npos);
    const Replay got = decode_replay(token);
    EXPECT_EQ(got.id, given.id);
    EXPECT_EQ(got.seed, given.seed);
    EXPECT_EQ(got.payload, given.payload);
  }
}

TEST(ReplayToken, ALongOneIsAFile) {
  const Replay given{"l2.random.17", 1, some_bytes(100000)};
  const std::string token = encode_replay(given);
  EXPECT_EQ(token.front(), '/');
  EXPECT_EQ(decode_replay(token).payload, given.payload);
}

// Another user may have placed a link at the folder's path.
TEST(ReplayToken, IsNotWrittenThroughALink) {
  const Replay given{"l2.random.17", 1, some_bytes(100000)};
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("pgr_replay_link_{}", static_cast<int>(getpid()));
  std::filesystem::create_directories(folder / "elsewhere");
  const auto link = folder / fmt::format("plugrad-replay-{}", geteuid());
  std::filesystem::create_directory_symlink(folder / "elsewhere", link);
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", folder.c_str(), 1);
  EXPECT_THROW(encode_replay(given), std::runtime_error);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "elsewhere"));
  std::filesystem::remove(link);
  EXPECT_TRUE(encode_replay(given).starts_with(link.string()));
  before ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
  std::filesystem::remove_all(folder);
}

TEST(ReplayToken, DamageIsNoticed) {
  std::string token = encode_replay({"l1.memory.size.1", 42, some_bytes(40)});
  for (size_t i = 0; i < token.size(); ++i) {
    std::string damaged = token;
    damaged[i] = damaged[i] == 'A' ? 'Q' : 'A';
    EXPECT_THROW(decode_replay(damaged), std::runtime_error) << "at " << i;
  }
  EXPECT_THROW(decode_replay(""), std::runtime_error);
  EXPECT_THROW(decode_replay("no token!"), std::runtime_error);
  EXPECT_THROW(decode_replay("/no/such/file"), std::runtime_error);
}

TEST(ReplayToken, SeedsOfTestsDifferAndStay) {
  EXPECT_NE(seed_of_test(0, "l2.random.1"), seed_of_test(0, "l2.random.2"));
  EXPECT_NE(seed_of_test(0, "l2.random.1"), seed_of_test(1, "l2.random.1"));
  EXPECT_EQ(seed_of_test(7, "l2.random.1"), seed_of_test(7, "l2.random.1"));
}

// Sums, products and an exclusive or, with loops, conditions, vectors and arrays.
std::vector<std::byte> large_kernel() {
  sdk::IrBuilder b("large");
  b.set_groups(8);
  const auto in = b.buffer(PGR_DTYPE_I32, 64, PGR_PARAM_READ);
  const auto unrelated = b.buffer(PGR_DTYPE_I32, 64);
  const auto out = b.buffer(PGR_DTYPE_I32, 64, PGR_PARAM_WRITE);
  const auto sum = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_I32, 1);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0), eight = b.constant_int(PGR_DTYPE_I32, 8);
  const auto group = b.group_id(0);
  const auto base = b.alu(PGR_OP_MUL, {group, eight});
  b.store(sum, zero, zero);
  const auto loop = b.loop(zero, eight);
  const auto index = b.alu(PGR_OP_ADD, {base, loop});
  const auto value = b.load(in, index);
  const auto before = b.load(sum, zero);
  b.store(sum, zero, b.alu(PGR_OP_ADD, {before, value}));
  b.store(unrelated, index, b.alu(PGR_OP_MUL, {value, value}));
  b.end_loop(loop);
  const auto wide = b.load(in, base, 8);
  const auto total = b.load(sum, zero);
  const auto mixed = b.alu(PGR_OP_XOR, {wide, total});
  const auto shifted = b.alu(PGR_OP_SHL, {mixed, b.constant_int(PGR_DTYPE_I32, 1)});
  b.store(out, base, b.alu(PGR_OP_SUB, {shifted, wide}));
  return b.finish();
}

bool has_op(std::span<const std::byte> block, uint32_t op) {
  const sdk::IrView ir = sdk::decode_ir(block);
  return std::any_of(ir.insts().begin(), ir.insts().end(),
                     [&](const pgr_ir_inst& inst) { return inst.op == op; });
}

TEST(Shrink, KeepsWhatFailsAndLittleElse) {
  const auto fails = [](std::span<const std::byte> block) { return has_op(block, PGR_OP_XOR); };
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::byte> small = shrink_kernel(large_kernel(), fails, start + 20s);
  const sdk::IrView ir = sdk::decode_ir(small);
  EXPECT_TRUE(has_op(small, PGR_OP_XOR));
  // Output, index, a constant, the exclusive or, the store.
  EXPECT_LE(ir.insts().size(), 6u) << sdk::print_ir(ir);
  EXPECT_EQ(ir.params().size(), 1u);
  EXPECT_EQ(ir.header().group_count[0], 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(Shrink, AKernelThatNeedsItsLoopKeepsIt) {
  const auto fails = [](std::span<const std::byte> block) {
    return has_op(block, PGR_OP_LOOP) && has_op(block, PGR_OP_MUL);
  };
  const std::vector<std::byte> small =
      shrink_kernel(large_kernel(), fails, std::chrono::steady_clock::now() + 20s);
  EXPECT_TRUE(has_op(small, PGR_OP_LOOP));
  EXPECT_FALSE(has_op(small, PGR_OP_XOR));
  EXPECT_LE(sdk::decode_ir(small).insts().size(), 10u) << sdk::print_ir(sdk::decode_ir(small));
}

// An unused value may trigger the failure: it must not be removed together with another change.
TEST(Shrink, KeepsAnUnusedValueThatFails) {
  sdk::IrBuilder b("unused");
  b.set_groups(4);
  const auto out = b.buffer(PGR_DTYPE_I32, 4, PGR_PARAM_WRITE),
             in = b.buffer(PGR_DTYPE_I32, 4, PGR_PARAM_READ);
  const auto i = b.group_id(0), x = b.load(in, i);
  b.alu(PGR_OP_XOR, {b.alu(PGR_OP_MUL, {x, x}), i});
  b.alu(PGR_OP_AND, {x, i});
  for (int k = 0; k < 4; ++k)
    b.store(out, i, b.alu(PGR_OP_ADD, {x, b.constant_int(PGR_DTYPE_I32, k)}));
  const auto fails = [](std::span<const std::byte> block) { return has_op(block, PGR_OP_XOR); };
  const std::vector<std::byte> small =
      shrink_kernel(b.finish(), fails, std::chrono::steady_clock::now() + 20s);
  EXPECT_TRUE(has_op(small, PGR_OP_XOR));
  EXPECT_FALSE(has_op(small, PGR_OP_AND));
  EXPECT_FALSE(has_op(small, PGR_OP_MUL));
  EXPECT_LE(sdk::decode_ir(small).insts().size(), 7u) << sdk::print_ir(sdk::decode_ir(small));
}

TEST(Shrink, StopsAtItsDeadline) {
  const std::vector<std::byte> kernel = large_kernel();
  const auto never_asked = [](std::span<const std::byte>) -> bool { throw std::logic_error(""); };
  EXPECT_EQ(shrink_kernel(kernel, never_asked, std::chrono::steady_clock::now()), kernel);
}

// A device with a wrong exclusive or: random kernels detect it, the kernel is shrunk, and the token
// alone reproduces it.
TEST(Suite, ShrinksARandomKernelAndReplaysIt) {
  Options options = faulty_options("xor", "l2.random");
  const Report report = run_suite(options);
  for (const TestResult& test : report.tests)
    EXPECT_LE(std::count(test.ir.begin(), test.ir.end(), '\n'), 12) << test.id << "\n" << test.ir;
  const auto failure =
      std::find_if(report.tests.begin(), report.tests.end(),
                   [](const TestResult& test) { return test.status == Status::Fail; });
  ASSERT_NE(failure, report.tests.end());
  EXPECT_NE(failure->ir.find("XOR"), std::string::npos) << failure->ir;
  options.filter.clear();
  options.replay = failure->replay;
  options.seed = 99;  // ignored: the token has its own
  const Report again = run_suite(options);
  ASSERT_EQ(again.tests.size(), 1u);
  EXPECT_EQ(again.tests[0].id, failure->id);
  EXPECT_EQ(again.tests[0].status, Status::Fail);
  EXPECT_EQ(again.tests[0].message, failure->message);
  EXPECT_EQ(again.tests[0].ir, failure->ir);
}

}  // namespace
}  // namespace plugrad::conformance
