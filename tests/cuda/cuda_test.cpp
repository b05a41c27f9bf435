// Cases that the suite cannot produce: a missing, old or failing driver, exhausted memory, lost
// devices, and leaks.
#include "cuda_device.h"

namespace plugrad::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kOutOfMemory = 2, kNoDevice = 100, kDeviceUnavailable = 46, kInvalidPtx = 218;
constexpr int kOperatingSystem = 304, kIllegalAddress = 700, kEccUncorrectable = 214;

// The number of devices that the plugin finds with this library as its driver, and its message.
uint32_t count_devices(const std::string& driver, std::string& said) {
  CudaPlugin plugin(driver);
  uint32_t count = 99;
  EXPECT_EQ(plugin.api->device_count(plugin.api->plugin, &count, &plugin.error.error),
            PGR_STATUS_OK);
  said = plugin.error.text();
  return count;
}

TEST(CudaDriver, Absent_IsNoError_AndTheMessageSaysWhatWouldBringIt) {
  std::string said;
  EXPECT_EQ(count_devices("/nowhere/libcuda.so.1", said), 0u);
  EXPECT_THAT(said,
              AllOf(HasSubstr("/nowhere/libcuda.so.1"), HasSubstr("install NVIDIA's driver")));
}

TEST(CudaDriver, AnotherLibrary_LacksTheFirstFunction) {
  std::string said;
  EXPECT_EQ(count_devices(CUDA_PLUGIN, said), 0u);
  EXPECT_THAT(said, AllOf(HasSubstr("too old"), HasSubstr("without cuInit")));
}

TEST(CudaDriver, TooOld_NamesBothVersions) {
  ::setenv("PLUGRAD_CUDA_DOUBLE_VERSION", "10020", 1);
  std::string said;
  EXPECT_EQ(count_devices(CUDA_DOUBLE, said), 0u);
  EXPECT_THAT(said, AllOf(HasSubstr("CUDA 10.2"), HasSubstr("CUDA 11.4 or newer")));
  ::unsetenv("PLUGRAD_CUDA_DOUBLE_VERSION");
  count_devices("/nowhere", said);
}

TEST(CudaDriver, FailureOfItsStart_IsNamedWithARemedy) {
  const Double control;
  for (const auto& [result, name, remedy] :
       {std::tuple(kNoDevice, "CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"),
        std::tuple(kOperatingSystem, "CUDA_ERROR_OPERATING_SYSTEM", "/dev/nvidia*")}) {
    control.fail("cuInit", 0, result);
    std::string said;
    EXPECT_EQ(count_devices(CUDA_DOUBLE, said), 0u);
    EXPECT_THAT(said, AllOf(HasSubstr(name), HasSubstr(remedy)));
    count_devices("/nowhere", said);  // resets the cached result
  }
  std::string said;
  EXPECT_EQ(count_devices(CUDA_DOUBLE, said), 1u);
}

TEST_F(CudaDevice, OfAnotherProcess_IsBusy) {
  close();
  double_.fail("cuDevicePrimaryCtxRetain", 0, kDeviceUnavailable);
  EXPECT_EQ(open(), PGR_STATUS_BUSY);
  EXPECT_THAT(error_.text(), HasSubstr("exclusively"));
  EXPECT_EQ(open(), PGR_STATUS_OK);
}

TEST_F(CudaDevice, Enumeration_MakesNoContext) {
  close();
  uint32_t count = 0;
  plugin_.api->device_count(plugin_.api->plugin, &count, nullptr);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(double_.live("stream"), 0);
  ASSERT_EQ(open(), PGR_STATUS_OK);
  EXPECT_EQ(double_.live("stream"), 2);  // the default queue's and the clock's
}

// Large copies are split; host memory may be modified after the return.
TEST_F(CudaDevice, Copies_AreOfTheBytesAtTheCall) {
  std::vector<int32_t> values(1'000'003), seen(values.size());
  pgr_buffer* buffer = alloc(values.size() * 4);
  pgr_queue* queue = nullptr;
  ASSERT_EQ(queues_.create(device_, &queue, &error_.error), PGR_STATUS_OK);
  for (int32_t round = 0; round < 3; ++round) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i) * 7 + round;
    const std::vector<int32_t> before = values;
    ASSERT_EQ(write(buffer, values, queue), PGR_STATUS_OK);
    std::fill(values.begin(), values.end(), -1);
    ASSERT_EQ(read(buffer, seen, queue), PGR_STATUS_OK);
    EXPECT_EQ(seen, before);
  }
  queues_.destroy(device_, queue);
  memory_.free(device_, buffer);
}

TEST_F(CudaDevice, SmallCopies_DoNotOverwriteOneAnother) {
  pgr_queue* queue = nullptr;
  ASSERT_EQ(queues_.create(device_, &queue, &error_.error), PGR_STATUS_OK);
  std::vector<pgr_buffer*> buffers;
  for (int32_t i = 0; i < 600; ++i) {
    buffers.push_back(alloc(4096));
    ASSERT_EQ(write(buffers.back(), std::vector<int32_t>(1024, i), queue), PGR_STATUS_OK);
  }
  for (int32_t i = 0; i < 600; ++i) {
    std::vector<int32_t> seen(1024);
    ASSERT_EQ(read(buffers[static_cast<size_t>(i)], seen, queue), PGR_STATUS_OK);
    EXPECT_THAT(seen, Each(i));
    memory_.free(device_, buffers[static_cast<size_t>(i)]);
  }
  queues_.destroy(device_, queue);
}

TEST_F(CudaDevice, MemoryThatRunsOut_IsToldWithSizes_AndNothingElseBreaks) {
  pgr_buffer* buffer = nullptr;
  EXPECT_EQ(try_alloc(uint64_t{1} << 40, &buffer), PGR_STATUS_OUT_OF_MEMORY);
  EXPECT_THAT(error_.text(), AllOf(HasSubstr("1099511627776 bytes"), HasSubstr("free"),
                                   HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
  EXPECT_EQ(error_.error.native_code, kOutOfMemory);
  EXPECT_EQ(try_alloc(UINT64_MAX - 3, &buffer), PGR_STATUS_OUT_OF_MEMORY);
  EXPECT_EQ(buffer, nullptr);
  memory_.free(device_, alloc(1 << 20));
  uint32_t health = 9;
  EXPECT_EQ(devices_.health(device_, &health, nullptr), PGR_STATUS_OK);
  EXPECT_EQ(health, PGR_HEALTH_OK);
}

TEST_F(CudaDevice, CodeThatTheDriverRefuses_IsABadBinaryWithItsLog) {
  const Loaded loaded = load_increment();
  runner_.unload(device_, loaded.program);
  pgr_program* program = nullptr;
  double_.fail("cuModuleLoadDataEx", 0, kInvalidPtx);
  EXPECT_EQ(runner_.load(device_, binary_.data(), binary_.size(), &program, &error_.error),
            PGR_STATUS_BAD_BINARY);
  EXPECT_THAT(error_.text(), AllOf(HasSubstr("sm_90"), HasSubstr("CUDA_ERROR_INVALID_PTX")));
  binary_[binary_.size() / 2] ^= 1;
  EXPECT_EQ(runner_.load(device_, binary_.data(), binary_.size(), &program, &error_.error),
            PGR_STATUS_BAD_BINARY);
  EXPECT_THAT(error_.text(), HasSubstr("damaged"));
}

TEST_F(CudaDevice, Launches_AreCheckedBeforeTheDriverSeesThem) {
  const Loaded loaded = load_increment();
  pgr_buffer* buffer = alloc(256);
  pgr_launch_desc desc = launch_desc(&buffer);
  desc.local_size[0] = 2;  // the kernel was compiled for groups of one
  EXPECT_EQ(runner_.launch(device_, nullptr, loaded.kernel, &desc, nullptr, &error_.error),
            PGR_STATUS_LIMIT_EXCEEDED);
  EXPECT_THAT(error_.text(), AllOf(HasSubstr("increment"), HasSubstr("at most 1")));
  desc = launch_desc(&buffer);
  desc.buffer_count = 0;
  EXPECT_EQ(runner_.launch(device_, nullptr, loaded.kernel, &desc, nullptr, &error_.error),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(error_.text(), HasSubstr("takes 1 buffers and 0 scalars"));
  runner_.unload(device_, loaded.program);
  memory_.free(device_, buffer);
}

// The call that starts the work succeeds; the next wait reports the failure.
TEST_F(CudaDevice, WorkThatFails_LosesTheDevice_AndAnOpenAgainWorks) {
  const Loaded loaded = load_increment();
  pgr_buffer* buffer = alloc(256);
  ASSERT_EQ(write(buffer, std::vector<int32_t>(64)), PGR_STATUS_OK);
  ASSERT_EQ(launch(loaded, buffer, 65), PGR_STATUS_OK);  // one element past the buffer's end
  EXPECT_EQ(devices_.synchronize(device_, &error_.error), PGR_STATUS_DEVICE_LOST);
  EXPECT_THAT(error_.text(),
              AllOf(HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"), HasSubstr("open it again")));
  EXPECT_EQ(error_.error.native_code, kIllegalAddress);
  uint32_t health = 9;
  EXPECT_EQ(devices_.health(device_, &health, nullptr), PGR_STATUS_OK);
  EXPECT_EQ(health, PGR_HEALTH_LOST);
  std::vector<int32_t> seen(64);
  EXPECT_EQ(read(buffer, seen), PGR_STATUS_DEVICE_LOST);
  EXPECT_EQ(launch(loaded, buffer), PGR_STATUS_DEVICE_LOST);
  memory_.free(device_, buffer);  // handles can still be released
  runner_.unload(device_, loaded.program);
  close();
  ASSERT_EQ(open(), PGR_STATUS_OK) << error_.text();
  memory_.free(device_, alloc(64));
}

TEST_F(CudaDevice, AnErrorOfTheHardware_ShowsInEveryKindOfWait) {
  for (const int kind : {0, 1, 2}) {
    pgr_buffer* buffer = alloc(256);
    pgr_queue* queue = nullptr;
    pgr_event* event = nullptr;
    ASSERT_EQ(queues_.create(device_, &queue, &error_.error), PGR_STATUS_OK);
    double_.fail_work(kEccUncorrectable);
    // The failure may be reported before the call returns.
    EXPECT_THAT(write(buffer, {1, 2}, queue), AnyOf(PGR_STATUS_OK, PGR_STATUS_DEVICE_LOST));
    queues_.record(device_, queue, &event, &error_.error);
    std::vector<int32_t> seen(2);
    const pgr_status status = kind == 0   ? queues_.finish(device_, queue, &error_.error)
                              : kind == 1 ? read(buffer, seen, queue)
                                          : devices_.synchronize(device_, &error_.error);
    EXPECT_EQ(status, PGR_STATUS_DEVICE_LOST) << kind;
    EXPECT_THAT(error_.text(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
    queues_.event_destroy(device_, event);
    queues_.destroy(device_, queue);
    memory_.free(device_, buffer);
    close();
    ASSERT_EQ(open(), PGR_STATUS_OK) << error_.text();
  }
}

// Whichever call fails, nothing leaks except the caller's handles.
TEST_F(CudaDevice, AFailureInTheMiddle_LeavesNothingBehind) {
  close();
  for (const char* function : {"cuStreamCreate", "cuEventCreate"})
    for (const int nth : {0, 1}) {
      double_.fail(function, nth, kOutOfMemory);
      if (open() == PGR_STATUS_OK) close();
      EXPECT_EQ(double_.live("stream"), 0) << function << " " << nth;
      EXPECT_STREQ(double_.take_violations(), "") << function << " " << nth;
      double_.fail(function, 1 << 30, 0);
    }
  ASSERT_EQ(open(), PGR_STATUS_OK) << error_.text();
  pgr_buffer* buffer = alloc(64);
  double_.fail("cuMemHostAlloc", 0, kOutOfMemory);
  EXPECT_EQ(write(buffer, {1}), PGR_STATUS_OUT_OF_MEMORY);
  EXPECT_THAT(error_.text(), HasSubstr("pinned"));
  EXPECT_EQ(write(buffer, {1}), PGR_STATUS_OK);
  memory_.free(device_, buffer);
}

TEST_F(CudaDevice, Graph_IsPatchedAndKeepsItsBuffers) {
  const Loaded loaded = load_increment();
  pgr_buffer *first = alloc(256), *second = alloc(256), *copy = alloc(256);
  for (pgr_buffer* buffer : {first, second}) write(buffer, std::vector<int32_t>(64, 5));
  const pgr_launch_desc desc = launch_desc(&first);
  pgr_graph_node nodes[3];
  for (pgr_graph_node& node : nodes) PGR_INIT(node, GRAPH_NODE);
  const uint32_t zero = 0, one = 1;
  nodes[0].kernel = nodes[1].kernel = loaded.kernel;
  nodes[0].launch = nodes[1].launch = &desc;
  nodes[1].depends = &zero;
  nodes[2].kind = PGR_GRAPH_COPY;
  nodes[2].dst = copy;
  nodes[2].src = first;
  nodes[2].size_bytes = 256;
  nodes[2].depends = &one;
  nodes[1].depends_count = nodes[2].depends_count = 1;
  pgr_graph* graph = nullptr;
  ASSERT_EQ(graphs_.build(device_, nodes, 3, sizeof nodes[0], &graph, &error_.error), PGR_STATUS_OK)
      << error_.text();
  std::vector<int32_t> seen(64);
  for (int32_t round = 1; round <= 2; ++round) {
    ASSERT_EQ(graphs_.replay(device_, nullptr, graph, &error_.error), PGR_STATUS_OK);
    ASSERT_EQ(read(copy, seen), PGR_STATUS_OK);
    EXPECT_THAT(seen, Each(5 + 2 * round));
  }
  ASSERT_EQ(graphs_.patch_buffer(device_, graph, 1, 0, second, &error_.error), PGR_STATUS_OK);
  ASSERT_EQ(graphs_.patch_buffer(device_, graph, 2, 1, second, &error_.error), PGR_STATUS_OK);
  memory_.free(device_, second);  // the graph still owns it
  ASSERT_EQ(graphs_.replay(device_, nullptr, graph, &error_.error), PGR_STATUS_OK);
  ASSERT_EQ(read(copy, seen), PGR_STATUS_OK);
  EXPECT_THAT(seen, Each(6));
  EXPECT_EQ(graphs_.patch_buffer(device_, graph, 1, 1, first, &error_.error),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(error_.text(), HasSubstr("node 1 has no buffer 1"));
  graphs_.destroy(device_, graph);
  runner_.unload(device_, loaded.program);
  memory_.free(device_, first);
  memory_.free(device_, copy);
}

TEST_F(CudaDevice, CompilesWithoutADevice_ForTheTargetThatIsNamed) {
  const std::string source =
      "extern \"C\" __attribute__((global)) void __launch_bounds__(1) k(int *a) {}";
  pgr_compile_desc desc;
  PGR_INIT(desc, COMPILE_DESC);
  desc.input = source.data();
  desc.input_bytes = source.size();
  pgr_blob binary;
  PGR_INIT(binary, BLOB);
  EXPECT_EQ(compiler_.compile(nullptr, &desc, &binary, nullptr, &error_.error),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(error_.text(), HasSubstr("target"));
  pgr_option target;
  PGR_INIT(target, OPTION);
  target.key = sdk::to_pgr("target");
  target.value = sdk::to_pgr("sm_5x");
  desc.options = &target;
  desc.option_count = 1;
  desc.option_stride = sizeof target;
  EXPECT_EQ(compiler_.compile(nullptr, &desc, &binary, nullptr, &error_.error),
            PGR_STATUS_INVALID_ARGUMENT);
  target.value = sdk::to_pgr("sm_52");
  EXPECT_EQ(compiler_.compile(nullptr, &desc, &binary, nullptr, &error_.error),
            PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error_.text(), HasSubstr("5.2 is below 6.0"));
  for (const auto& [name, runs_as] :
       {std::pair("sm_80", ".target sm_80"), std::pair("sm_120", ".target sm_90")}) {
    target.value = sdk::to_pgr(name);
    const std::string plain = "extern \"C\" __attribute__((global)) void k(int *a) {}";
    desc.input = plain.data();
    desc.input_bytes = plain.size();
    ASSERT_EQ(compiler_.compile(nullptr, &desc, &binary, nullptr, &error_.error), PGR_STATUS_OK)
        << error_.text();
    EXPECT_THAT(take(binary), HasSubstr(runs_as));
  }
}

}  // namespace
}  // namespace plugrad::testing
