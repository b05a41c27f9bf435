// Tests the hello and its negotiation for every built plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "abi/plugin_host.h"
#include "plugrad/sdk/c_plugin.h"
#include "plugrad/sdk/entry.h"

namespace plugrad::abi {
namespace {

class Hello : public testing::TestWithParam<std::string> {};

TEST_P(Hello, IsAnsweredByItsHeaders) {
  pgr_hello hello = make_hello(shared_host(), GetParam());
  const pgr_plugin_api* api = nullptr;
  Error error;
  ASSERT_EQ(entry_of(GetParam())(&hello, &api, error.get()), PGR_STATUS_OK) << error.message();
  EXPECT_EQ(hello.plugin_minor, PGR_API_MINOR);
  EXPECT_LE(hello.need_host_minor, PGR_API_MINOR);
  EXPECT_EQ(hello.canary_error_size, sizeof(pgr_error));
  EXPECT_EQ(hello.canary_hello_offset, offsetof(pgr_hello, plugin_minor));
  ASSERT_NE(api, nullptr);
  EXPECT_EQ(api->struct_id, uint32_t{PGR_STRUCT_PLUGIN_API});
  EXPECT_GE(api->struct_size, offsetof(pgr_plugin_api, shutdown));
}

// The answer of a later minor's plugin that needs its full host.
TEST(Hello, AnOlderHostIsToldToBeNewer) {
  const pgr_host_api older = make_host();
  pgr_hello hello = make_hello(older, "acme");
  try {
    sdk::answer_hello(&hello, PGR_API_MINOR + 1, "acme");
    ADD_FAILURE() << "the older host was accepted";
  } catch (const sdk::StatusError& e) {
    EXPECT_EQ(e.status(), PGR_STATUS_NEED_NEWER_HOST);
    EXPECT_THAT(e.what(), testing::HasSubstr("acme needs a host of API 1.1 or newer"));
  }
  EXPECT_EQ(hello.need_host_minor, PGR_API_MINOR + 1);
}

// The same with the C helpers.
TEST(Hello, AnOlderHostIsToldByAPluginInC) {
  const pgr_host_api older = make_host();
  pgr_hello hello = make_hello(older, "acme");
  const pgr_plugin_api* api = nullptr;
  Error error;
  EXPECT_EQ(pgr_answer(&hello, &api, PGR_API_MINOR + 1, error.get()), PGR_STATUS_NEED_NEWER_HOST);
  EXPECT_EQ(error.message(), "the host has API minor 0, 1 is needed");
  EXPECT_EQ(hello.need_host_minor, PGR_API_MINOR + 1);
  EXPECT_EQ(hello.plugin_minor, PGR_API_MINOR);
  EXPECT_EQ(pgr_answer(&hello, &api, PGR_API_MINOR, error.get()), PGR_STATUS_OK);
  EXPECT_EQ(hello.need_host_minor, PGR_API_MINOR);
}

// A host of the next minor: one more field in the hello, one more slot in its table.
TEST_P(Hello, ANewerHostIsWelcome) {
  struct NextHost {
    pgr_host_api base;
    void (*added)(pgr_host*);
  };
  struct NextHello {
    pgr_hello base;
    uint64_t added;
  };
  static NextHost host{make_host(PGR_API_MINOR + 1), nullptr};
  host.base.struct_size = sizeof host;
  NextHello hello{make_hello(host.base, GetParam()), 0x5555};
  hello.base.struct_size = sizeof hello;
  const pgr_plugin_api* api = nullptr;
  Error error;
  EXPECT_EQ(entry_of(GetParam())(&hello.base, &api, error.get()), PGR_STATUS_OK) << error.message();
  EXPECT_EQ(hello.added, 0x5555u);
  EXPECT_EQ(hello.base.plugin_minor, PGR_API_MINOR);
}

TEST_P(Hello, MandatoryInterfacesAreThereAndUnknownOnesAreNot) {
  const pgr_plugin_api* api = open_plugin(GetParam());
  EXPECT_EQ(query<pgr_device_api>(api, "pgr.device")->struct_id, uint32_t{PGR_STRUCT_DEVICE_API});
  EXPECT_EQ(query<pgr_allocator_api>(api, "pgr.allocator")->struct_id,
            uint32_t{PGR_STRUCT_ALLOCATOR_API});
  EXPECT_EQ(query<pgr_runner_api>(api, "pgr.runner")->struct_id, uint32_t{PGR_STRUCT_RUNNER_API});
  const pgr_string name = to_pgr("com.nobody.nothing");
  const void* table = &name;
  Error error;
  EXPECT_EQ(api->query_interface(api->plugin, &name, PGR_API_MINOR, &table, error.get()),
            PGR_STATUS_UNSUPPORTED);
  EXPECT_THAT(error.message(), testing::HasSubstr("com.nobody.nothing"));
}

TEST_P(Hello, DestroyersAcceptNull) {
  const pgr_plugin_api* api = open_plugin(GetParam());
  api->device_close(api->plugin, nullptr);
  query<pgr_allocator_api>(api, "pgr.allocator")->free(nullptr, nullptr);
  query<pgr_runner_api>(api, "pgr.runner")->unload(nullptr, nullptr);
}

TEST_P(Hello, ADeviceThatIsNotThereIsNotFound) {
  const pgr_plugin_api* api = open_plugin(GetParam());
  uint32_t count = 0;
  ASSERT_EQ(api->device_count(api->plugin, &count, nullptr), PGR_STATUS_OK);
  pgr_device* device = nullptr;
  Error error;
  EXPECT_EQ(api->device_open(api->plugin, count, nullptr, 0, 0, &device, error.get()),
            PGR_STATUS_NOT_FOUND);
  EXPECT_EQ(device, nullptr);
  EXPECT_THAT(error.message(), testing::HasSubstr(std::to_string(count)));
}

INSTANTIATE_TEST_SUITE_P(Plugins, Hello, testing::ValuesIn(plugin_paths()), [](const auto& plugin) {
  const std::string stem = std::filesystem::path(plugin.param).stem();
  return stem.substr(std::strlen("libplugrad_plugin_"));
});

TEST(Plugins, AreBuilt) {
  EXPECT_FALSE(plugin_paths().empty());
}

}  // namespace
}  // namespace plugrad::abi
