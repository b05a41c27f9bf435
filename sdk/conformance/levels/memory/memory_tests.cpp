// L1 memory: allocation.
#include <bit>

#include "conformance/levels/expect.h"
#include "conformance/levels/memory/memory_families.h"

namespace plugrad::conformance {
namespace {

Buffer allocate_aligned(const Tables& t, uint64_t size, uint64_t align, uint32_t flags = 0) {
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.size_bytes = size;
  desc.align_bytes = align;
  desc.flags = flags;
  pgr_buffer* buffer = nullptr;
  expect_ok("allocator.alloc",
            [&](pgr_error* error) { return t.memory.alloc(t.handle, &desc, &buffer, error); });
  expect(buffer != nullptr, "allocator.alloc answered OK without a buffer");
  return Buffer(t.device, buffer, size);
}

void check_size(Context& context, uint64_t size) {
  Buffer buffer = context.device().allocate(size);
  const auto bytes = patterned(size, context.seed());
  buffer.write(bytes);
  expect_bytes("what was written is read back", read_all(buffer), bytes);
}

void check_empty_buffers(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(0), other = t.device.allocate(0);
  expect(buffer.handle() != other.handle(), "two buffers of size 0 are one");
  buffer.write({});
  buffer.read({});
  std::byte one{};
  expect_status("copy_out of 1 byte of a buffer of size 0", PGR_STATUS_INVALID_ARGUMENT,
                [&](pgr_error* error) {
                  return t.memory.copy_out(t.handle, nullptr, &one, buffer.handle(), 0, 1, error);
                });
}

// The address of the buffer, if mapping gives the device's own memory.
uintptr_t address_of(const Tables& t, const Buffer& buffer) {
  void* at = nullptr;
  expect_ok_or_unsupported("allocator.map", [&](pgr_error* error) {
    return t.memory.map(t.handle, buffer.handle(), &at, error);
  });
  expect_ok_or_unsupported("allocator.unmap", [&](pgr_error* error) {
    return t.memory.unmap(t.handle, buffer.handle(), error);
  });
  return reinterpret_cast<uintptr_t>(at);
}

void expect_aligned(const Tables& t, const Buffer& buffer, uint64_t align) {
  const uintptr_t address = address_of(t, buffer);
  expect(address % align == 0, "a buffer of " + std::to_string(buffer.size_bytes()) +
                                   " bytes is not aligned to " + std::to_string(align));
}

void check_alignment(Context& context) {
  Tables t(context);
  require_offered(t.memory.map, "pgr.allocator map");
  if (!t.device.caps().unified_memory)
    throw Unsupported("map is a copy (unified_memory is 0), addresses tell nothing");
  const uint32_t align = t.device.caps().buffer_align_bytes;
  std::vector<Buffer> kept;  // keeps the addresses distinct
  for (uint64_t size : {1, 3, 7, 8, 33, 64, 100, 4096, 5000, 100'000, 3'000'000})
    for (int again = 0; again < 4; ++again) {
      kept.push_back(t.device.allocate(size));
      expect_aligned(t, kept.back(), align);
    }
}

void check_requested_alignment(Context& context) {
  Tables t(context);
  require_offered(t.memory.map, "pgr.allocator map");
  if (!t.device.caps().unified_memory)
    throw Unsupported("map is a copy (unified_memory is 0), addresses tell nothing");
  std::vector<Buffer> kept;
  for (uint64_t align = 1; align <= 65536; align *= 4)
    for (uint64_t size : {1, 100, 70'000, 3'000'000}) {
      kept.push_back(allocate_aligned(t, size, align));
      expect_aligned(t, kept.back(), std::max<uint64_t>(align, t.device.caps().buffer_align_bytes));
    }
}

void check_bad_alignment(Context& context) {
  Tables t(context);
  for (uint64_t align : {3, 48, 96, 65537}) {
    pgr_alloc_desc desc;
    PGR_INIT(desc, ALLOC_DESC);
    desc.size_bytes = 64;
    desc.align_bytes = align;
    pgr_buffer* const untouched = reinterpret_cast<pgr_buffer*>(&desc);
    pgr_buffer* buffer = untouched;
    expect_status(
        "alloc with alignment " + std::to_string(align), PGR_STATUS_INVALID_ARGUMENT,
        [&](pgr_error* error) { return t.memory.alloc(t.handle, &desc, &buffer, error); });
    expect(buffer == untouched, "a failed alloc touched *out");
  }
}

void check_align_is_claimed_sanely(Context& context) {
  const uint32_t align = context.device().caps().buffer_align_bytes;
  expect(std::has_single_bit(align),
         "caps.buffer_align_bytes is " + std::to_string(align) + ", not a power of two");
  expect(align >= 8,
         "caps.buffer_align_bytes is " + std::to_string(align) + ": an f64 would not be aligned");
}

void check_zero(Context& context) {
  Tables t(context);
  for (uint64_t size : {1, 7, 4096, 70'001, 3'000'000}) {
    // The allocator probably returns previously used memory.
    for (int round = 0; round < 3; ++round) {
      {
        t.device.allocate(size).write(patterned(size, context.seed() + 1));
      }
      Buffer buffer = t.device.allocate(size, PGR_ALLOC_ZERO);
      expect_bytes("PGR_ALLOC_ZERO", read_all(buffer), std::vector<std::byte>(size));
    }
  }
}

void check_unknown_flags(Context& context) {
  Buffer buffer = context.device().allocate(64, 0x80000000u | PGR_ALLOC_HOST_VISIBLE);
  const auto bytes = patterned(64, context.seed());
  buffer.write(bytes);
  expect_bytes("a buffer with unknown flags", read_all(buffer), bytes);
}

void check_distinct(Context& context) {
  std::vector<Buffer> buffers;
  for (uint64_t i = 0; i < 200; ++i) {
    const uint64_t size = 1 + i * 13 % 300;
    buffers.push_back(context.device().allocate(size));
    buffers.back().write(patterned(size, context.seed() + i));
  }
  for (uint64_t i = 0; i < buffers.size(); ++i)
    expect_bytes("buffer " + std::to_string(i) + " of many", read_all(buffers[i]),
                 patterned(buffers[i].size_bytes(), context.seed() + i));
}

void check_many(Context& context) {
  Tables t(context);
  constexpr size_t kCount = 10'000;
  std::vector<Buffer> buffers;
  buffers.reserve(kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    buffers.push_back(t.device.allocate(16));
    buffers.back().write(std::as_bytes(std::span(&i, 1)));
  }
  for (uint64_t i = 0; i < kCount; i += 97) {
    uint64_t seen = 0;
    buffers[i].read(std::as_writable_bytes(std::span(&seen, 1)));
    expect(seen == i, "buffer " + std::to_string(i) + " of 10,000 holds another one's value");
  }
}

void check_free_null(Context& context) {
  Tables t(context);
  t.memory.free(t.handle, nullptr);
}

pgr_memory_stats stats_of(const Tables& t) {
  pgr_memory_stats stats;
  PGR_INIT(stats, MEMORY_STATS);
  expect_ok("device.memory_stats",
            [&](pgr_error* error) { return t.devices.memory_stats(t.handle, &stats, error); });
  return stats;
}

void check_stats(Context& context) {
  const auto device = context.plugin().open_device();
  Tables t(*device);
  const pgr_memory_stats before = stats_of(t);
  expect(before.total_bytes > 0, "memory_stats.total_bytes is 0");
  constexpr uint64_t kBytes = 8u << 20;
  uint64_t most = 0;
  {
    Buffer a = device->allocate(kBytes), b = device->allocate(kBytes);
    most = stats_of(t).used_bytes;
  }
  expect(most >= before.used_bytes + 2 * kBytes,
         "used_bytes went from " + std::to_string(before.used_bytes) + " to " +
             std::to_string(most) + " with 16 MiB allocated");
  expect(most <= before.used_bytes + 4 * kBytes, "used_bytes grew by more than twice the bytes");
  const pgr_memory_stats after = stats_of(t);
  expect(after.used_bytes == before.used_bytes,
         "used_bytes is " + std::to_string(after.used_bytes) + " when all is freed, was " +
             std::to_string(before.used_bytes));
  expect(after.used_bytes <= after.total_bytes && after.free_bytes <= after.total_bytes,
         "memory_stats: more is used or free than there is");
}

void check_out_of_memory(Context& context) {
  Tables t(context);
  const uint64_t kAbsurd[] = {uint64_t{1} << 60, UINT64_MAX - 4096, UINT64_MAX};
  for (uint64_t size : kAbsurd) {
    pgr_alloc_desc desc;
    PGR_INIT(desc, ALLOC_DESC);
    desc.size_bytes = size;
    pgr_buffer* const untouched = reinterpret_cast<pgr_buffer*>(&desc);
    pgr_buffer* buffer = untouched;
    expect_status(
        "alloc of " + std::to_string(size) + " bytes", PGR_STATUS_OUT_OF_MEMORY,
        [&](pgr_error* error) { return t.memory.alloc(t.handle, &desc, &buffer, error); });
    expect(buffer == untouched, "a failed alloc touched *out");
  }
  check_size(context, 4096);
}

void check_stats_after_failure(Context& context) {
  const auto device = context.plugin().open_device();
  Tables t(*device);
  const uint64_t before = stats_of(t).used_bytes;
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.size_bytes = uint64_t{1} << 60;
  pgr_buffer* buffer = nullptr;
  expect_status("alloc of 2^60 bytes", PGR_STATUS_OUT_OF_MEMORY,
                [&](pgr_error* error) { return t.memory.alloc(t.handle, &desc, &buffer, error); });
  expect(stats_of(t).used_bytes == before, "a failed alloc counts as used memory");
}

}  // namespace

void add_memory_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run,
                 const char* unlocked_by = "") {
    add_test(tests, Level::L1, "l1.memory." + id, std::move(run)).unlocked_by = unlocked_by;
  };
  for (uint64_t size : {1u, 2u, 7u, 63u, 64u, 65u, 4095u, 4096u, 4097u, 65'537u, 2'097'151u,
                        2'097'152u, 16'777'217u})
    add("size." + std::to_string(size), [size](Context& context) { check_size(context, size); });
  add("size.0", check_empty_buffers);
  add("alignment.claimed", check_align_is_claimed_sanely);
  add("alignment.own", check_alignment, "pgr.allocator map");
  add("alignment.requested", check_requested_alignment, "pgr.allocator map");
  add("alignment.not_a_power", check_bad_alignment);
  add("zero_flag", check_zero);
  add("unknown_flags", check_unknown_flags);
  add("distinct", check_distinct);
  add("many", check_many);
  add("free_null", check_free_null);
  add("stats", check_stats);
  add("stats_after_failure", check_stats_after_failure);
  add("out_of_memory", check_out_of_memory);
  add_copy_tests(tests);
  add_map_tests(tests);
}

}  // namespace plugrad::conformance
