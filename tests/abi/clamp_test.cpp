// Writes to a caller's struct never exceed the caller's size: every struct that a plugin fills, at
// every size, with an inaccessible page behind it.
#include <gtest/gtest.h>

#include <cstring>

#include "abi/guarded.h"
#include "abi/plugin_host.h"

namespace plugrad::abi {
namespace {

// Calls `call` with structs of every size, from the bare header to longer than the current struct.
template <typename Struct, typename Call>
void check_all_sizes(const Call& call, uint32_t id) {
  Struct full;
  std::memset(&full, 0, sizeof full);
  full.struct_size = sizeof full;
  full.struct_id = id;
  ASSERT_EQ(call(&full), PGR_STATUS_OK);
  for (size_t size = sizeof(pgr_struct_header); size <= sizeof(Struct) + 16; size += 8) {
    GuardedBytes bytes(size);
    std::memset(bytes.data(), 0x5a, size);
    Struct* out = reinterpret_cast<Struct*>(bytes.data());
    out->struct_size = static_cast<uint32_t>(size);
    out->struct_id = id;
    out->next = nullptr;
    ASSERT_EQ(call(out), PGR_STATUS_OK) << "size " << size;
    EXPECT_EQ(out->struct_size, size);
    EXPECT_EQ(out->next, nullptr);
    const size_t known = std::min(size, sizeof(Struct));
    EXPECT_EQ(std::memcmp(bytes.data() + 16, reinterpret_cast<const char*>(&full) + 16, known - 16),
              0)
        << "size " << size;
    for (size_t i = known; i < size; ++i) EXPECT_EQ(bytes.data()[i], 0x5a) << "behind our end";
  }
}

class Clamp : public testing::TestWithParam<std::string> {};

TEST_P(Clamp, FilledStructsKeepToTheCallersSize) {
  const pgr_plugin_api* api = open_plugin(GetParam());
  check_all_sizes<pgr_plugin_info>(
      [&](pgr_plugin_info* out) { return api->info(api->plugin, out, nullptr); },
      PGR_STRUCT_PLUGIN_INFO);
  uint32_t count = 0;
  ASSERT_EQ(api->device_count(api->plugin, &count, nullptr), PGR_STATUS_OK);
  if (count == 0) GTEST_SKIP() << "no device";
  pgr_device* device = nullptr;
  ASSERT_EQ(api->device_open(api->plugin, 0, nullptr, 0, 0, &device, nullptr), PGR_STATUS_OK);
  const auto* table = query<pgr_device_api>(api, "pgr.device");
  check_all_sizes<pgr_device_info>([&](auto* out) { return table->info(device, out, nullptr); },
                                   PGR_STRUCT_DEVICE_INFO);
  check_all_sizes<pgr_device_caps>([&](auto* out) { return table->caps(device, out, nullptr); },
                                   PGR_STRUCT_DEVICE_CAPS);
  check_all_sizes<pgr_memory_stats>(
      [&](auto* out) { return table->memory_stats(device, out, nullptr); },
      PGR_STRUCT_MEMORY_STATS);
  api->device_close(api->plugin, device);
}

TEST_P(Clamp, ErrorsKeepToTheCallersSizeAndCapacity) {
  const pgr_plugin_api* api = open_plugin(GetParam());
  for (size_t size = sizeof(pgr_struct_header); size <= sizeof(pgr_error); size += 8)
    for (uint64_t capacity : {0, 1, 5, 200}) {
      GuardedBytes bytes(size), text(capacity + 1);
      std::memset(bytes.data(), 0, size);
      pgr_error* error = reinterpret_cast<pgr_error*>(bytes.data());
      error->struct_size = static_cast<uint32_t>(size);
      error->struct_id = PGR_STRUCT_ERROR;
      if (size > offsetof(pgr_error, message)) error->message = text.data() + 1;
      if (size > offsetof(pgr_error, message_capacity)) error->message_capacity = capacity;
      pgr_device* device = nullptr;
      EXPECT_EQ(api->device_open(api->plugin, 1000, nullptr, 0, 0, &device, error),
                PGR_STATUS_NOT_FOUND);
      if (size > offsetof(pgr_error, message_size)) {
        EXPECT_LE(error->message_size, capacity);
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Plugins, Clamp, testing::ValuesIn(plugin_paths()), [](const auto& plugin) {
  const std::string stem = std::filesystem::path(plugin.param).stem();
  return stem.substr(std::strlen("libplugrad_plugin_"));
});

}  // namespace
}  // namespace plugrad::abi
