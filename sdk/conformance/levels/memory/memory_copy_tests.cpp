// L1 memory: copies and fills, checked byte by byte including the surrounding bytes.
#include <algorithm>

#include "conformance/levels/expect.h"
#include "conformance/levels/memory/memory_families.h"

namespace plugrad::conformance {
namespace {

// Ranges that start and end near words, cache lines and pages.
struct Range {
  uint64_t offset, size;
};
constexpr uint64_t kCopiedBytes = 9000;
constexpr Range kRanges[] = {{0, 0},    {0, 1},    {1, 1},    {3, 2},       {5, 3},
                             {7, 9},    {1, 63},   {63, 65},  {64, 64},     {100, 1001},
                             {0, 4097}, {4095, 2}, {4096, 1}, {4097, 4095}, {8999, 1},
                             {1, 8999}, {0, 9000}, {9000, 0}, {8, 8},       {8991, 9}};

void check_copy_in(Context& context) {
  Buffer buffer = context.device().allocate(kCopiedBytes);
  for (const Range& range : kRanges) {
    std::vector<std::byte> wanted = patterned(kCopiedBytes, context.seed());
    buffer.write(wanted);
    const auto part = patterned(range.size, context.seed() + range.offset + 1);
    buffer.write(part, range.offset);
    std::copy(part.begin(), part.end(), wanted.begin() + static_cast<ptrdiff_t>(range.offset));
    expect_bytes("copy_in of " + describe_range(range.size, range.offset), read_all(buffer),
                 wanted);
  }
}

void check_copy_in_takes_a_copy(Context& context) {
  Buffer buffer = context.device().allocate(kCopiedBytes);
  const auto wanted = patterned(kCopiedBytes, context.seed());
  std::vector<std::byte> source = wanted;
  buffer.write(source);
  std::fill(source.begin(), source.end(), std::byte{0xee});  // may be reused after the return
  expect_bytes("copy_in, whose source changed on return", read_all(buffer), wanted);
}

void check_copy_out(Context& context) {
  Buffer buffer = context.device().allocate(kCopiedBytes);
  const auto content = patterned(kCopiedBytes, context.seed());
  buffer.write(content);
  for (const Range& range : kRanges) {
    constexpr size_t kGuard = 64;
    const std::vector<std::byte> around(range.size + 2 * kGuard, std::byte{0x5a});
    std::vector<std::byte> found = around, wanted = around;
    std::copy_n(content.begin() + static_cast<ptrdiff_t>(range.offset), range.size,
                wanted.begin() + kGuard);
    buffer.read(std::span(found).subspan(kGuard, range.size), range.offset);
    expect_bytes("copy_out of " + describe_range(range.size, range.offset), found, wanted);
  }
}

void copy(const Tables& t, const Buffer& dst, uint64_t dst_offset, const Buffer& src,
          uint64_t src_offset, uint64_t size) {
  expect_ok("allocator.copy", [&](pgr_error* error) {
    return t.memory.copy(t.handle, nullptr, dst.handle(), dst_offset, src.handle(), src_offset,
                         size, error);
  });
}

void check_device_copy(Context& context) {
  Tables t(context);
  Buffer src = t.device.allocate(kCopiedBytes), dst = t.device.allocate(kCopiedBytes);
  const auto content = patterned(kCopiedBytes, context.seed());
  src.write(content);
  for (const Range& from : kRanges) {
    std::vector<std::byte> wanted = patterned(kCopiedBytes, context.seed() + 1);
    dst.write(wanted);
    const uint64_t to = (kCopiedBytes - from.size) / 3;
    copy(t, dst, to, src, from.offset, from.size);
    std::copy_n(content.begin() + static_cast<ptrdiff_t>(from.offset), from.size,
                wanted.begin() + static_cast<ptrdiff_t>(to));
    expect_bytes(
        "copy of " + describe_range(from.size, from.offset) + " to offset " + std::to_string(to),
        read_all(dst), wanted);
  }
  expect_bytes("the source of the copies", read_all(src), content);
}

void check_copy_within(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(1000);
  auto wanted = patterned(1000, context.seed());
  buffer.write(wanted);
  copy(t, buffer, 1, buffer, 501, 499);
  std::copy_n(wanted.begin() + 501, 499, wanted.begin() + 1);
  expect_bytes("copy within one buffer, downwards", read_all(buffer), wanted);
  copy(t, buffer, 503, buffer, 2, 490);
  std::copy_n(wanted.begin() + 2, 490, wanted.begin() + 503);
  expect_bytes("copy within one buffer, upwards", read_all(buffer), wanted);
}

void check_large_copy(Context& context) {
  Tables t(context);
  constexpr uint64_t kLarge = (24u << 20) + 13;
  Buffer src = t.device.allocate(kLarge), dst = t.device.allocate(kLarge);
  const auto content = patterned(kLarge, context.seed());
  src.write(content);
  copy(t, dst, 0, src, 0, kLarge);
  expect_bytes("copy of 24 MiB and 13 bytes", read_all(dst), content);
}

// One call of each copying function, by name.
struct RangeCall {
  const char* name;
  std::function<pgr_status(uint64_t offset, uint64_t size, pgr_error*)> call;
};

std::vector<RangeCall> range_calls(const Tables& t, const Buffer& buffer, const Buffer& other,
                                   std::byte* host) {
  pgr_buffer *own = buffer.handle(), *beside = other.handle();
  return {{"copy_in",
           [=](uint64_t offset, uint64_t size, pgr_error* error) {
             return t.memory.copy_in(t.handle, nullptr, own, offset, host, size, error);
           }},
          {"copy_out",
           [=](uint64_t offset, uint64_t size, pgr_error* error) {
             return t.memory.copy_out(t.handle, nullptr, host, own, offset, size, error);
           }},
          {"copy (dst)",
           [=](uint64_t offset, uint64_t size, pgr_error* error) {
             return t.memory.copy(t.handle, nullptr, own, offset, beside, 0, size, error);
           }},
          {"copy (src)",
           [=](uint64_t offset, uint64_t size, pgr_error* error) {
             return t.memory.copy(t.handle, nullptr, beside, 0, own, offset, size, error);
           }},
          {"fill", [=](uint64_t offset, uint64_t size, pgr_error* error) {
             const uint8_t pattern = 7;
             return t.memory.fill(t.handle, nullptr, own, offset, size, &pattern, 1, error);
           }}};
}

void fill(const Tables& t, const Buffer& buffer, const Range& range, const void* pattern,
          uint64_t pattern_bytes) {
  require_offered(t.memory.fill, "pgr.allocator fill");
  expect_ok_or_unsupported("allocator.fill", [&](pgr_error* error) {
    return t.memory.fill(t.handle, nullptr, buffer.handle(), range.offset, range.size, pattern,
                         pattern_bytes, error);
  });
}

void check_bad_ranges(Context& context, const std::string& function) {
  Tables t(context);
  constexpr uint64_t kSize = 100;
  Buffer buffer = t.device.allocate(kSize), other = t.device.allocate(4 * kSize);
  const auto content = patterned(kSize, context.seed());
  buffer.write(content);
  std::vector<std::byte> host(4 * kSize);
  if (const uint8_t pattern = 0; function == "fill") fill(t, buffer, {0, 0}, &pattern, 1);
  constexpr Range kBad[] = {{0, 101},
                            {100, 1},
                            {101, 0},
                            {1, 100},
                            {99, 2},
                            {UINT64_MAX, 1},
                            {UINT64_MAX, 2},
                            {1, UINT64_MAX},
                            {50, UINT64_MAX - 49},
                            {UINT64_MAX, 0},
                            {UINT64_MAX - 49, 50},
                            {UINT64_MAX - 49, 149}};
  for (const RangeCall& entry : range_calls(t, buffer, other, host.data())) {
    if (entry.name != function) continue;
    for (const Range& bad : kBad)
      expect_status(function + " of " + describe_range(bad.size, bad.offset) + " of 100 bytes",
                    PGR_STATUS_INVALID_ARGUMENT,
                    [&](pgr_error* error) { return entry.call(bad.offset, bad.size, error); });
  }
  expect_bytes("the buffer after " + function + " with bad ranges", read_all(buffer), content);
}

void check_null_buffers(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(16);
  std::byte host[16] = {};
  auto refused = [](const char* name, auto call) {
    expect_status(name, PGR_STATUS_INVALID_ARGUMENT, call);
  };
  refused("copy_in to NULL", [&](pgr_error* error) {
    return t.memory.copy_in(t.handle, nullptr, nullptr, 0, host, 16, error);
  });
  refused("copy_out of NULL", [&](pgr_error* error) {
    return t.memory.copy_out(t.handle, nullptr, host, nullptr, 0, 16, error);
  });
  refused("copy_in from NULL", [&](pgr_error* error) {
    return t.memory.copy_in(t.handle, nullptr, buffer.handle(), 0, nullptr, 16, error);
  });
  refused("copy_out to NULL", [&](pgr_error* error) {
    return t.memory.copy_out(t.handle, nullptr, nullptr, buffer.handle(), 0, 16, error);
  });
  refused("copy to NULL", [&](pgr_error* error) {
    return t.memory.copy(t.handle, nullptr, nullptr, 0, buffer.handle(), 0, 8, error);
  });
  refused("copy from NULL", [&](pgr_error* error) {
    return t.memory.copy(t.handle, nullptr, buffer.handle(), 0, nullptr, 0, 8, error);
  });
  pgr_buffer* out = nullptr;
  refused("alloc without a description",
          [&](pgr_error* error) { return t.memory.alloc(t.handle, nullptr, &out, error); });
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.size_bytes = 16;
  refused("alloc without an out-pointer",
          [&](pgr_error* error) { return t.memory.alloc(t.handle, &desc, nullptr, error); });
}

void check_fill_ranges(Context& context, uint64_t pattern_bytes) {
  Tables t(context);
  Buffer buffer = t.device.allocate(kCopiedBytes);
  const auto pattern = patterned(pattern_bytes, context.seed() + 5);
  for (const Range& range : kRanges) {
    const Range whole{range.offset, range.size / pattern_bytes * pattern_bytes};
    auto wanted = patterned(kCopiedBytes, context.seed());
    buffer.write(wanted);
    fill(t, buffer, whole, pattern.data(), pattern_bytes);
    for (uint64_t i = 0; i < whole.size; ++i) wanted[whole.offset + i] = pattern[i % pattern_bytes];
    expect_bytes("fill of " + describe_range(whole.size, whole.offset), read_all(buffer), wanted);
  }
}

void check_large_fill(Context& context) {
  Tables t(context);
  constexpr uint64_t kLarge = (5u << 20) + 4;
  Buffer buffer = t.device.allocate(kLarge + 4);
  std::vector<std::byte> wanted = patterned(kLarge + 4, context.seed());
  buffer.write(wanted);
  const uint32_t pattern = 0x01020304;
  fill(t, buffer, {0, kLarge}, &pattern, 4);
  for (uint64_t i = 0; i < kLarge; i += 4) std::memcpy(&wanted[i], &pattern, 4);
  expect_bytes("fill of 5 MiB and 4 bytes", read_all(buffer), wanted);
}

void check_bad_patterns(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(64, PGR_ALLOC_ZERO);
  const uint8_t pattern[16] = {1};
  fill(t, buffer, {0, 0}, pattern, 1);
  auto refused = [&](uint64_t size, const void* with, uint64_t pattern_bytes) {
    expect_status("fill of " + std::to_string(size) + " bytes by a pattern of " +
                      std::to_string(pattern_bytes),
                  PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
                    return t.memory.fill(t.handle, nullptr, buffer.handle(), 0, size, with,
                                         pattern_bytes, error);
                  });
  };
  for (uint64_t bytes : {0, 3, 5, 6, 7, 9, 16}) refused(48, pattern, bytes);
  refused(9, pattern, 2);
  refused(10, pattern, 4);
  refused(12, pattern, 8);
  refused(8, nullptr, 4);
  expect_bytes("the buffer after bad fills", read_all(buffer), std::vector<std::byte>(64));
}

}  // namespace

void add_copy_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run,
                 const char* unlocked_by = "") {
    add_test(tests, Level::L1, "l1.memory." + id, std::move(run)).unlocked_by = unlocked_by;
  };
  add("copy_in.ranges", check_copy_in);
  add("copy_in.source_reused", check_copy_in_takes_a_copy);
  add("copy_out.ranges", check_copy_out);
  add("copy.ranges", check_device_copy);
  add("copy.within", check_copy_within);
  add("copy.large", check_large_copy);
  const std::pair<const char*, const char*> kRefused[] = {{"copy_in", "copy_in"},
                                                          {"copy_out", "copy_out"},
                                                          {"copy_dst", "copy (dst)"},
                                                          {"copy_src", "copy (src)"}};
  for (const auto& [id, function] : kRefused)
    add(std::string("bad_range.") + id,
        [function = std::string(function)](Context& c) { check_bad_ranges(c, function); });
  add("bad_range.fill", [](Context& c) { check_bad_ranges(c, "fill"); }, "pgr.allocator fill");
  add("null_arguments", check_null_buffers);
  for (uint64_t bytes : {1, 2, 4, 8})
    add(
        "fill.pattern_" + std::to_string(bytes),
        [bytes](Context& context) { check_fill_ranges(context, bytes); }, "pgr.allocator fill");
  add("fill.large", check_large_fill, "pgr.allocator fill");
  add("fill.bad_pattern", check_bad_patterns, "pgr.allocator fill");
}

}  // namespace plugrad::conformance
