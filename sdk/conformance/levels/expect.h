// Helpers of the behaviour tests: calls that must fail in a given way, and the tables of the device
// under test.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/plugin/calls.h"
#include "conformance/plugin/device.h"
#include "conformance/plugin/tables.h"
#include "conformance/test.h"

namespace plugrad::conformance {

// Ends the test as failed unless the call returns `wanted`, also in its error struct.
template <typename Call>
void expect_status(std::string_view name, pgr_status wanted, Call&& call) {
  CallError error;
  const pgr_status status = std::forward<Call>(call)(error.get());
  if (status != wanted)
    throw Failed(std::string(name) + " answered " + status_name(status) + ", not " +
                 status_name(wanted) + (error.message().empty() ? "" : ": " + error.message()));
  expect(status == PGR_STATUS_OK || error.get()->code == status,
         std::string(name) + " answered " + status_name(status) + ", and wrote code " +
             status_name(error.get()->code) + " into the error");
}

// For optional functions: UNSUPPORTED ends the test as unsupported.
template <typename Call>
void expect_ok_or_unsupported(std::string_view name, Call&& call) {
  CallError error;
  const pgr_status status = std::forward<Call>(call)(error.get());
  if (status == PGR_STATUS_UNSUPPORTED)
    throw Unsupported(std::string(name) + " answered UNSUPPORTED");
  if (status != PGR_STATUS_OK) fail_call(name, status, error);
}

// Ends the test as unsupported if an optional function is missing.
template <typename Function>
void require_offered(Function slot, std::string_view name) {
  if (!offered(slot)) throw Unsupported("the plugin does not offer " + std::string(name));
}

// The tables and the device of a test.
struct Tables {
  explicit Tables(Device& used)
      : device(used),
        handle(used.handle()),
        plugin(used.plugin().api()),
        devices(*used.plugin().device_api()),
        memory(*used.plugin().allocator_api()),
        runner(*used.plugin().runner_api()) {}
  explicit Tables(Context& context) : Tables(context.device()) {}

  Device& device;
  pgr_device* handle;
  const pgr_plugin_api& plugin;
  const pgr_device_api& devices;
  const pgr_allocator_api& memory;
  const pgr_runner_api& runner;
};

// Bytes that differ from their neighbours and between seeds, so that a shifted copy is detected.
std::vector<std::byte> patterned(uint64_t size, uint64_t seed);

// Ends the test as failed at the first byte that differs: "what: byte 5 is 0x00, not 0x2a".
void expect_bytes(std::string_view what, std::span<const std::byte> found,
                  std::span<const std::byte> wanted);

// All bytes of the buffer.
std::vector<std::byte> read_all(const Buffer& buffer);

// "12 bytes at offset 3": for messages.
std::string describe_range(uint64_t size, uint64_t offset);

}  // namespace plugrad::conformance
