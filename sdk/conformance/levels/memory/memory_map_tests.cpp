// L1 memory: mapping, sub-buffers and leaks.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "conformance/levels/expect.h"
#include "conformance/levels/heap_slack.h"
#include "conformance/levels/memory/memory_families.h"
#include "conformance/plugin/host.h"

namespace plugrad::conformance {
namespace {

// A mapped buffer, unmapped by the destructor.
class Mapping {
 public:
  Mapping(const Tables& t, const Buffer& buffer) : t_(t), buffer_(buffer) {
    require_offered(t.memory.map, "pgr.allocator map");
    expect_ok_or_unsupported("allocator.map", [&](pgr_error* error) {
      return t_.memory.map(t_.handle, buffer_.handle(), &at_, error);
    });
    expect(at_ != nullptr, "map answered OK with a NULL address");
  }
  ~Mapping() {
    if (at_) t_.memory.unmap(t_.handle, buffer_.handle(), nullptr);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(at_), buffer_.size_bytes()};
  }
  void unmap() {
    at_ = nullptr;
    expect_ok("allocator.unmap", [&](pgr_error* error) {
      return t_.memory.unmap(t_.handle, buffer_.handle(), error);
    });
  }

 private:
  const Tables& t_;
  const Buffer& buffer_;
  void* at_ = nullptr;
};

void check_map_reads(Context& context) {
  Tables t(context);
  for (uint64_t size : {1, 7, 4097, 3'000'001}) {
    Buffer buffer = t.device.allocate(size);
    for (int round = 0; round < 3; ++round) {
      const auto content = patterned(size, context.seed() + round);
      buffer.write(content);
      Mapping mapping(t, buffer);
      expect_bytes("the mapped buffer", mapping.bytes(), content);
      mapping.unmap();
    }
  }
}

void check_map_writes(Context& context) {
  Tables t(context);
  for (uint64_t size : {1, 7, 4097, 3'000'001}) {
    Buffer buffer = t.device.allocate(size, PGR_ALLOC_HOST_VISIBLE);
    for (int round = 0; round < 3; ++round) {
      const auto content = patterned(size, context.seed() + round);
      Mapping mapping(t, buffer);
      std::copy(content.begin(), content.end(), mapping.bytes().begin());
      mapping.unmap();
      expect_bytes("what was written to the mapped buffer", read_all(buffer), content);
    }
  }
}

void check_two_mapped(Context& context) {
  Tables t(context);
  Buffer a = t.device.allocate(5000), b = t.device.allocate(5000);
  const auto first = patterned(5000, context.seed()), second = patterned(5000, context.seed() + 1);
  {
    Mapping of_a(t, a), of_b(t, b);
    std::copy(first.begin(), first.end(), of_a.bytes().begin());
    std::copy(second.begin(), second.end(), of_b.bytes().begin());
    of_a.unmap();
    of_b.unmap();
  }
  expect_bytes("the first of two mapped buffers", read_all(a), first);
  expect_bytes("the second of two mapped buffers", read_all(b), second);
}

void check_map_null(Context& context) {
  Tables t(context);
  Buffer buffer = t.device.allocate(16);
  {
    Mapping offered_at_all(t, buffer);
  }
  void* at = nullptr;
  expect_status("map of NULL", PGR_STATUS_INVALID_ARGUMENT,
                [&](pgr_error* error) { return t.memory.map(t.handle, nullptr, &at, error); });
  expect_status("map without an out-pointer", PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
    return t.memory.map(t.handle, buffer.handle(), nullptr, error);
  });
}

Buffer sub_buffer(const Tables& t, const Buffer& parent, uint64_t offset, uint64_t size) {
  require_offered(t.memory.sub_buffer, "pgr.allocator sub_buffer");
  pgr_buffer* part = nullptr;
  expect_ok_or_unsupported("allocator.sub_buffer", [&](pgr_error* error) {
    return t.memory.sub_buffer(t.handle, parent.handle(), offset, size, &part, error);
  });
  return Buffer(t.device, part, size);
}

void check_sub_buffer_is_a_range(Context& context) {
  Tables t(context);
  const uint64_t align = t.device.caps().buffer_align_bytes, size = 8 * align;
  Buffer parent = t.device.allocate(size);
  auto wanted = patterned(size, context.seed());
  parent.write(wanted);
  Buffer part = sub_buffer(t, parent, 2 * align, 3 * align - 5);
  expect_bytes("a sub-buffer", read_all(part), std::span(wanted).subspan(2 * align, 3 * align - 5));
  const auto news = patterned(part.size_bytes(), context.seed() + 1);
  part.write(news);
  std::copy(news.begin(), news.end(), wanted.begin() + static_cast<ptrdiff_t>(2 * align));
  expect_bytes("the parent of a written sub-buffer", read_all(parent), wanted);
  std::byte one{};
  expect_status("copy_out behind a sub-buffer's end", PGR_STATUS_INVALID_ARGUMENT,
                [&](pgr_error* error) {
                  return t.memory.copy_out(t.handle, nullptr, &one, part.handle(),
                                           part.size_bytes(), 1, error);
                });
}

void check_sub_buffer_of_sub_buffer(Context& context) {
  Tables t(context);
  const uint64_t align = t.device.caps().buffer_align_bytes, size = 8 * align;
  Buffer parent = t.device.allocate(size);
  const auto content = patterned(size, context.seed());
  parent.write(content);
  Buffer part = sub_buffer(t, parent, 2 * align, 6 * align);
  Buffer inner = sub_buffer(t, part, 3 * align, align);
  expect_bytes("a sub-buffer of a sub-buffer", read_all(inner),
               std::span(content).subspan(5 * align, align));
}

void check_sub_buffer_keeps_parent(Context& context) {
  Tables t(context);
  const uint64_t align = t.device.caps().buffer_align_bytes, size = 1u << 20;
  const auto content = patterned(size, context.seed());
  std::vector<Buffer> parts;
  {
    Buffer parent = t.device.allocate(size);
    parent.write(content);
    for (uint64_t i = 0; i < 4; ++i) parts.push_back(sub_buffer(t, parent, i * align, align));
  }
  std::vector<Buffer> others;  // would reuse memory that was freed too early
  for (int i = 0; i < 8; ++i) {
    others.push_back(t.device.allocate(size));
    others.back().write(patterned(size, context.seed() + 99));
  }
  for (uint64_t i : {2, 0, 3, 1})
    expect_bytes("a sub-buffer of a parent that was freed", read_all(parts[i]),
                 std::span(content).subspan(i * align, align));
}

void check_sub_buffers_are_freed(Context& context) {
  const auto device = context.plugin().open_device();
  Tables t(*device);
  auto used = [&] {
    pgr_memory_stats stats;
    PGR_INIT(stats, MEMORY_STATS);
    expect_ok("device.memory_stats",
              [&](pgr_error* error) { return t.devices.memory_stats(t.handle, &stats, error); });
    return stats.used_bytes;
  };
  const uint64_t before = used();
  for (int parent_first = 0; parent_first < 2; ++parent_first) {
    auto parent = std::make_unique<Buffer>(device->allocate(1u << 20));
    auto part = std::make_unique<Buffer>(sub_buffer(t, *parent, 0, 64));
    (parent_first ? parent : part).reset();
    expect(used() > before, "memory is given back while a handle of it is left");
    (parent_first ? part : parent).reset();
    expect(used() == before, std::string("memory is not given back when the ") +
                                 (parent_first ? "sub-buffer" : "parent") + " is freed last");
  }
}

void check_sub_buffer_refusals(Context& context) {
  Tables t(context);
  const uint64_t align = t.device.caps().buffer_align_bytes, size = 4 * align;
  Buffer parent = t.device.allocate(size);
  {
    Buffer offered_at_all = sub_buffer(t, parent, 0, size);
  }
  const std::pair<uint64_t, uint64_t> kBad[] = {
      {0, size + 1},       {align, size}, {size + align, 0}, {UINT64_MAX - align + 1, align},
      {align, UINT64_MAX}, {1, 1}};
  for (const auto& [offset, bytes] : kBad) {
    if (offset == 1 && align == 1) continue;
    pgr_buffer* part = nullptr;
    expect_status("sub_buffer of " + describe_range(bytes, offset) + " of " + std::to_string(size),
                  PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
                    return t.memory.sub_buffer(t.handle, parent.handle(), offset, bytes, &part,
                                               error);
                  });
    expect(part == nullptr, "a failed sub_buffer touched *out");
  }
  pgr_buffer* part = nullptr;
  expect_status("sub_buffer of NULL", PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
    return t.memory.sub_buffer(t.handle, nullptr, 0, 1, &part, error);
  });
}

// Heap bytes and host blocks that 1,000 rounds leak.
void check_leak(Context& context, const std::function<void(const Tables&)>& round) {
  Tables t(context);
  constexpr int kRounds = 1000;
  for (int i = 0; i < 50; ++i) round(t);
  const Host& host = Host::of(context.plugin().path());
  const uint64_t blocks = host.live_allocations();
  const struct mallinfo2 before = ::mallinfo2();
  for (int i = 0; i < kRounds; ++i) round(t);
  // A driver's thread may release the last round's buffers late.
  for (int i = 0; i < 100 && host.live_allocations() > blocks; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const struct mallinfo2 after = ::mallinfo2();
  // May be fewer than before if warm-up buffers were still held.
  const uint64_t left = host.live_allocations();
  expect(left <= blocks, "after 1,000 rounds " + std::to_string(left - blocks) +
                             " blocks of host.alloc were not given back");
  const uint64_t now = after.uordblks + after.hblkhd, then = before.uordblks + before.hblkhd;
  expect(now <= then + kRounds * heap_slack_a_round(),
         "1,000 rounds left " + std::to_string(now - then) + " bytes of the heap behind");
}

void leak_alloc(const Tables& t) {
  Buffer a = t.device.allocate(100), b = t.device.allocate(0), c = t.device.allocate(5000);
}

void leak_copies(const Tables& t) {
  Buffer a = t.device.allocate(64), b = t.device.allocate(64);
  std::byte host[64] = {};
  a.write(host);
  t.memory.copy(t.handle, nullptr, b.handle(), 0, a.handle(), 0, 64, nullptr);
  b.read(host);
  t.memory.copy_in(t.handle, nullptr, a.handle(), 60, host, 64, nullptr);  // refused
}

void leak_sub_buffers(const Tables& t) {
  Buffer parent = t.device.allocate(4096);
  Buffer part = sub_buffer(t, parent, 0, 64), inner = sub_buffer(t, part, 0, 8);
}

}  // namespace

void add_map_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run,
                 const char* unlocked_by = "") {
    Test& test = add_test(tests, Level::L1, "l1.memory." + id, std::move(run));
    test.unlocked_by = unlocked_by;
    test.alone = id.starts_with("leak");
  };
  constexpr const char *kMap = "pgr.allocator map", *kSub = "pgr.allocator sub_buffer";
  add("map.reads", check_map_reads, kMap);
  add("map.writes", check_map_writes, kMap);
  add("map.two", check_two_mapped, kMap);
  add("map.null", check_map_null, kMap);
  add("sub_buffer.range", check_sub_buffer_is_a_range, kSub);
  add("sub_buffer.nested", check_sub_buffer_of_sub_buffer, kSub);
  add("sub_buffer.keeps_parent", check_sub_buffer_keeps_parent, kSub);
  add("sub_buffer.freed", check_sub_buffers_are_freed, kSub);
  add("sub_buffer.refused", check_sub_buffer_refusals, kSub);
  add("leak.alloc", [](Context& context) { check_leak(context, leak_alloc); });
  add("leak.copy", [](Context& context) { check_leak(context, leak_copies); });
  add("leak.sub_buffer", [](Context& context) { check_leak(context, leak_sub_buffers); }, kSub);
}

}  // namespace plugrad::conformance
