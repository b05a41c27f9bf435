// Tests the suite's own host and the tables that it gives to tests.
#include "conformance/plugin/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "conformance/plugin/calls.h"
#include "conformance/plugin/tables.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::conformance {
namespace {

using testing::HasSubstr;

const pgr_host_api& api() {
  return Host::of("/some/library.so").api();
}

struct Counts {
  std::vector<std::atomic<int>> visits;
  std::atomic<bool> worker_out_of_range{false};
};

void visit(void* context, uint64_t begin, uint64_t end, uint32_t worker) {
  auto& counts = *static_cast<Counts*>(context);
  if (worker >= api().thread_count(api().host)) counts.worker_out_of_range = true;
  for (uint64_t i = begin; i < end; ++i) ++counts.visits[i];
}

TEST(Host, ParallelForVisitsEachIndexOnce) {
  for (const size_t count : {0, 1, 2, 7, 1000, 100000}) {
    for (const uint64_t span : {0, 1, 64}) {
      Counts counts{std::vector<std::atomic<int>>(count)};
      api().parallel_for(api().host, count, span, visit, &counts);
      for (const auto& visits : counts.visits) ASSERT_EQ(visits, 1);
      EXPECT_FALSE(counts.worker_out_of_range);
    }
  }
}

TEST(Host, ParallelForMayBeNestedAndCalledFromManyThreads) {
  const auto outer = [](void*, uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) {
      Counts counts{std::vector<std::atomic<int>>(50)};
      api().parallel_for(api().host, 50, 1, visit, &counts);
      for (const auto& visits : counts.visits) ASSERT_EQ(visits, 1);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { api().parallel_for(api().host, 200, 1, outer, nullptr); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Host, RemembersMemoryLogAndCache) {
  Host& host = Host::of("/another/library.so");
  const pgr_host_api& calls = host.api();
  void* memory = calls.alloc(calls.host, 100, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  EXPECT_EQ(host.live_allocations(), 1u);
  EXPECT_EQ(host.live_bytes(), 100u);
  calls.free(calls.host, memory);
  calls.free(calls.host, nullptr);
  EXPECT_EQ(host.live_allocations(), 0u);
  const pgr_string text = sdk::to_pgr("said"), key = sdk::to_pgr("key");
  calls.log(calls.host, PGR_LOG_WARNING, &text);
  ASSERT_EQ(host.log().size(), 1u);
  EXPECT_EQ(host.log()[0].text, "said");
  Blob blob;
  EXPECT_EQ(calls.cache_get(calls.host, &key, blob.get(), nullptr), PGR_STATUS_NOT_FOUND);
  EXPECT_EQ(calls.cache_put(calls.host, &key, "bytes", 5, nullptr), PGR_STATUS_OK);
  EXPECT_EQ(calls.cache_get(calls.host, &key, blob.get(), nullptr), PGR_STATUS_OK);
  EXPECT_EQ(blob.text(), "bytes");
}

TEST(Host, AComponentThatIsNotThereIsNotFound) {
  CallError error;
  const void* table = nullptr;
  const pgr_string interface_name = sdk::to_pgr("pgr.renderer");
  for (const auto& [library, status] : {std::pair("plugrad_nothing", PGR_STATUS_NOT_FOUND),
                                        std::pair("../evil", PGR_STATUS_INVALID_ARGUMENT)}) {
    const pgr_string name = sdk::to_pgr(library);
    EXPECT_EQ(api().open_component(api().host, &name, &interface_name, 9, &table, error.get()),
              status);
    EXPECT_NE(error.message(), "");
  }
}

TEST(Tables, AreClampedAndAbsentSlotsAnswerUnsupported) {
  pgr_device_api theirs;
  PGR_INIT(theirs, DEVICE_API);
  theirs.info = [](pgr_device*, pgr_device_info*, pgr_error*) -> pgr_status { return 0; };
  theirs.synchronize = [](pgr_device*, pgr_error*) -> pgr_status { return 0; };
  theirs.struct_size = offsetof(pgr_device_api, synchronize);  // of an older plugin
  pgr_device_api own;
  ASSERT_EQ(clamp_table(&theirs, PGR_STRUCT_DEVICE_API, own), "");
  EXPECT_TRUE(offered(own.info));
  EXPECT_FALSE(offered(own.health));
  EXPECT_FALSE(offered(own.synchronize));
  CallError error;
  EXPECT_EQ(own.synchronize(nullptr, error.get()), PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error.message(), HasSubstr("does not offer"));
  EXPECT_NE(clamp_table(&theirs, PGR_STRUCT_RUNNER_API, own), "");
  EXPECT_NE(clamp_table(nullptr, PGR_STRUCT_DEVICE_API, own), "");
}

}  // namespace
}  // namespace plugrad::conformance
