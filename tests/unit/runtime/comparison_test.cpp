// The parts of the compare layer: values, kernel lines, bounds, differences, recordings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "base/file.h"
#include "plugrad/error.h"
#include "runtime/checks/compare/differences.h"
#include "runtime/checks/compare/report.h"
#include "runtime/checks/compare/rounding.h"
#include "runtime/checks/compare/shrink_kernel.h"
#include "runtime/checks/compare/time_share.h"
#include "runtime/checks/compare/values.h"
#include "runtime/checks/record/recorded_call.h"
#include "unit/base/temporary_directory.h"
#include "unit/runtime/fake_plugins.h"

using namespace plugrad;
using namespace plugrad::runtime;
using testing::HasSubstr;

namespace {

// out[i] = op(in[i]) for 8 groups.
KernelLines unary_kernel(uint32_t op, uint32_t dtype) {
  KernelLines k;
  k.name = "k";
  k.group_count = {8, 1, 1};
  k.params = {{PGR_PARAM_BUFFER, dtype, PGR_PARAM_WRITE, 0, 8, 0, 0},
              {PGR_PARAM_BUFFER, dtype, PGR_PARAM_READ, 0, 8, 0, 0}};
  k.lines = {{PGR_OP_PARAM, dtype, 1, 0, {}},
             {PGR_OP_PARAM, dtype, 1, 1, {}},
             {PGR_OP_GROUP_ID, PGR_DTYPE_I32, 1, 0, {}},
             {PGR_OP_LOAD, dtype, 1, 0, {1, 2}},
             {op, dtype, 1, 0, {3}},
             {PGR_OP_STORE, PGR_DTYPE_VOID, 1, 0, {0, 2, 4}}};
  return k;
}

std::vector<std::byte> bytes_of_floats(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST(Values, BitsAndNumbersOfEveryFloatRoundTrip) {
  for (const uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32, PGR_DTYPE_F64})
    for (const double value : {0.0, 1.0, -1.5, 0.0078125, 1024.0, -3.0})
      EXPECT_EQ(number_of(dtype, bits_of(dtype, value)), value) << dtype << " " << value;
  EXPECT_EQ(bits_of(PGR_DTYPE_F32, 0.1f), std::bit_cast<uint32_t>(0.1f));
  EXPECT_TRUE(std::isinf(number_of(PGR_DTYPE_F16, 0x7c00)));
  EXPECT_TRUE(is_nan(PGR_DTYPE_F8E4M3, 0x7f));
  EXPECT_EQ(number_of(PGR_DTYPE_F8E4M3, 0x7e), 448);
}

TEST(Values, UlpsCountRepresentableValuesAcrossZero) {
  const auto bits = [](float x) { return uint64_t{std::bit_cast<uint32_t>(x)}; };
  EXPECT_EQ(ulps_between(PGR_DTYPE_F32, bits(1.0f), bits(std::nextafter(1.0f, 2.0f))), 1u);
  EXPECT_EQ(ulps_between(PGR_DTYPE_F32, bits(0.0f), bits(-0.0f)), 0u);
  EXPECT_EQ(ulps_between(PGR_DTYPE_F32, 1, 0x80000001), 2u);
  EXPECT_EQ(ulps_between(PGR_DTYPE_I8, 0xff, 1), 2u);
  EXPECT_EQ(ulps_between(PGR_DTYPE_F32, bits(NAN), bits(1)), UINT64_MAX);
}

TEST(KernelLines, ABlockIsReadAndWrittenBack) {
  const KernelLines kernel = unary_kernel(PGR_OP_NEG, PGR_DTYPE_F32);
  const auto block = kernel.encode();
  const auto again = read_kernel_lines(block);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->encode(), block);
  EXPECT_EQ(again->name, "k");
  EXPECT_THAT(print(*again), HasSubstr("f32 = NEG %3"));
  EXPECT_EQ(operations_text(*again), "NEG f32");
  for (std::size_t cut : {std::size_t{0}, std::size_t{8}, sizeof(pgr_ir_header), block.size() / 2})
    EXPECT_FALSE(read_kernel_lines(std::span(block).first(cut))) << cut;
}

TEST(KernelLines, ASourceThatIsNoEarlierLineIsRefused) {
  KernelLines kernel = unary_kernel(PGR_OP_NEG, PGR_DTYPE_F32);
  kernel.lines[3].sources[1] = 40;
  EXPECT_FALSE(read_kernel_lines(kernel.encode()));
}

TEST(Rounding, ExactOpsHaveNoError) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  EXPECT_THAT(allowed_errors(unary_kernel(PGR_OP_SQRT, PGR_DTYPE_F32), caps, caps),
              testing::Each(0));
  const KernelLines sine = unary_kernel(PGR_OP_SIN, PGR_DTYPE_F32);
  const auto errors = allowed_errors(sine, caps, caps);
  EXPECT_EQ(errors[4], 4);
  EXPECT_GT(with_errors(sine, errors, 0).lines.size(), sine.lines.size());
  EXPECT_TRUE(read_kernel_lines(with_errors(sine, errors, 3).encode()));
}

TEST(Differences, TheFirstBeyondItsBoundIsFound) {
  const KernelLines kernel = unary_kernel(PGR_OP_NEG, PGR_DTYPE_F32);
  LaunchData data;
  data.region_of = {0, 1};
  data.regions = {bytes_of_floats(std::vector<float>(8)), bytes_of_floats(std::vector<float>(8))};
  HostMemory got = data.regions, expected = data.regions;
  got[0] = bytes_of_floats({0, 1, NAN, 3, -0.0f, 5, 6, 7});
  expected[0] = bytes_of_floats({0, 1, NAN, 3, 0, 5, 7, 8});
  const auto found = first_difference(kernel, data, got, expected, {}, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->index, 4u) << "the sign of a zero counts";
  EXPECT_EQ(found->count, 3u);
  const auto with_zeros = first_difference(kernel, data, got, expected, {}, {.any_zero = true});
  ASSERT_TRUE(with_zeros);
  EXPECT_EQ(with_zeros->index, 6u);
  HostMemory moved = expected;
  moved[0] = bytes_of_floats({0, 1, NAN, 3, 0, 5, 6.5f, 7.5f});
  const HostMemory variants[] = {moved};
  EXPECT_FALSE(first_difference(kernel, data, got, expected, variants,
                                {.any_zero = true, .is_rounded = true}));
}

TEST(Shrinking, GroupsAndLinesGoThatTheDifferenceDoesNotNeed) {
  KernelLines kernel = unary_kernel(PGR_OP_NEG, PGR_DTYPE_F32);
  kernel.lines.insert(kernel.lines.end() - 1, {PGR_OP_SQRT, PGR_DTYPE_F32, 1, 0, {4}});
  kernel.lines.back().sources[2] = 5;
  LaunchData data;
  data.region_of = {0, 1};
  data.regions.resize(2, std::vector<std::byte>(32));
  data.group_count = {8, 1, 1};
  const auto small = shrink_kernel(
      kernel, data, [](const KernelLines& k, const LaunchData&) { return k.has_op(PGR_OP_NEG); },
      std::chrono::steady_clock::now() + std::chrono::seconds(60));
  EXPECT_TRUE(small.is_complete);
  EXPECT_EQ(small.data.group_count[0], 1u);
  EXPECT_FALSE(small.lines.has_op(PGR_OP_SQRT));
  EXPECT_EQ(operations_text(small.lines), "NEG f32");
}

TEST(Report, ATokenThatIsTooLongForACommandLineIsInAFile) {
  const TemporaryDirectory folder;
  KernelLines kernel = unary_kernel(PGR_OP_NEG, PGR_DTYPE_F32);
  const std::string token = conformance_token(kernel, folder.path());
  EXPECT_EQ(token.substr(0, 12), "bDIucmFuZG9t") << "l2.random";
  for (int i = 0; i < 500; ++i)
    kernel.lines.insert(kernel.lines.end() - 1, {PGR_OP_CONST, PGR_DTYPE_F32, 1, 1, {}});
  const std::string path = conformance_token(kernel, folder.path());
  ASSERT_TRUE(path.starts_with(folder.path() + "/")) << path;
  const auto bytes = read_file(path).value();
  EXPECT_GT(bytes.size(), 8192u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 12), "bDIucmFuZG9t");
  EXPECT_EQ(conformance_token(kernel, folder.path() + "/no/\n" + std::string(300, 'x')), "");
}

TEST(TimeShare, ChecksWaitUntilTheirShareAllowsThem) {
  TimeShare limited(10), unlimited(0);
  CheckTimes kernel;
  EXPECT_GT(unlimited.available_ns(), 1e17);
  limited.spent(kernel, {}, 1'000'000'000'000);
  EXPECT_LT(limited.available_ns(), 0);
}

TEST(TimeShare, CountsWhatTheChecksCostBesideThem) {
  constexpr uint64_t kSecond = 1'000'000'000;
  TimeShare share(10, kSecond);
  EXPECT_EQ(share.available_ns(2 * kSecond), 0.1 * kSecond);
  share.spent_beside(kSecond / 5);
  EXPECT_EQ(share.available_ns(2 * kSecond), -0.1 * kSecond);
  EXPECT_EQ(share.available_ns(4 * kSecond), 0.1 * kSecond);
}

TEST(TimeShare, TheFirstCheckOfAKernelIsExpectedToNeedAllOfItsRuns) {
  TimeShare share(10);
  CheckTimes exact, rounded{.most_runs = 5};
  const double one_run = share.expected_ns(exact, 1e6, 0);
  EXPECT_EQ(share.expected_ns(rounded, 1e6, 0), 5 * one_run);
  share.spent(rounded, {.lines = 1e6, .runs = 5}, 400'000'000);  // 80 ns a line and run, not 40
  EXPECT_EQ(share.expected_ns(rounded, 1e6, 0), 400e6);
  EXPECT_EQ(share.expected_ns(exact, 1e6, 0), 50e6) << "a quarter of the way from 40 to 80";
  share.spent(rounded, {.lines = 1e6, .runs = 1}, 80'000'000);
  EXPECT_EQ(share.expected_ns(rounded, 1e6, 0), 320e6);
}

TEST(Recordings, CallsComeBackInOrder) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.rec";
  {
    RecordingWriter writer(path, "CPU:0");
    writer.write({{"call", "copy_in"}, {"buffer", 1}}, bytes_of_floats({1, 2}));
  }
  RecordingReader reader(path);
  RecordedCall call;
  ASSERT_TRUE(reader.next(call));
  EXPECT_EQ(call.facts["device"], "CPU:0");
  ASSERT_TRUE(reader.next(call));
  EXPECT_EQ(call.data.size(), 8u);
  EXPECT_FALSE(reader.next(call));
  EXPECT_FALSE(reader.is_cut_off());
}

TEST(Recordings, AForkedChildWritesNothing) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.rec";
  {
    auto writer = std::make_unique<RecordingWriter>(path, "CPU:0");
    writer->write({{"call", "free"}, {"buffer", 1}});
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      writer->write({{"call", "free"}, {"buffer", 2}});
      writer.reset();
      std::fflush(nullptr);
      _exit(0);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    writer->write({{"call", "copy_in"}, {"buffer", 3}}, std::vector<std::byte>(3 << 20));
  }
  RecordingReader reader(path);
  std::vector<uint64_t> bytes;
  for (RecordedCall call; reader.next(call);) bytes.push_back(call.data.size());
  EXPECT_EQ(bytes, (std::vector<uint64_t>{0, 0, 3 << 20}));
  EXPECT_FALSE(reader.is_cut_off());
}

TEST(Recordings, ACrashInALaunchLeavesAllCallsUpToIt) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.rec";
  const pid_t child = fork();
  if (child == 0) {
    RecordingWriter writer(path, "CPU:0");
    writer.write({{"call", "copy_in"}, {"buffer", 1}}, bytes_of_floats({1, 2}));
    writer.write({{"call", "launch"}, {"kernel", 7}});
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  RecordingReader reader(path);
  nlohmann::json last;
  for (RecordedCall call; reader.next(call);) last = call.facts;
  EXPECT_EQ(last["kernel"], 7);
  EXPECT_TRUE(reader.is_cut_off());
}

TEST(Recordings, EveryCutIsSeenAndForeignFilesAreRefused) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.rec", cut = folder.path() + "/cut.rec";
  {
    RecordingWriter writer(path, "CPU:0");
  }
  const auto whole = read_file(path).value();
  for (std::size_t size = 8; size < whole.size(); ++size) {
    std::ofstream(cut, std::ios::binary)
        .write(reinterpret_cast<const char*>(whole.data()), static_cast<std::streamsize>(size));
    RecordingReader reader(cut);
    for (RecordedCall call; reader.next(call);) {
    }
    EXPECT_TRUE(reader.is_cut_off()) << size;
  }
  std::ofstream(cut) << "PGRREC99";
  EXPECT_THAT(message_of([&] { RecordingReader reader(cut); }),
              HasSubstr("is a recording of version 99; this program reads version 01"));
  std::ofstream(cut) << "hello, world";
  EXPECT_THAT(message_of([&] { RecordingReader reader(cut); }), HasSubstr("is no recording"));
  EXPECT_THAT(message_of([&] { RecordingWriter writer(folder.path() + "/no/a", "CPU:0"); }),
              HasSubstr("[record] cannot write"));
}
