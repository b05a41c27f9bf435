// L1 launch: execution, order relative to copies, and timing of a launch.
#include <algorithm>
#include <chrono>
#include <thread>

#include "conformance/levels/error_families.h"
#include "conformance/levels/kernels.h"
#include "plugrad/sdk/ir_builder.h"

namespace plugrad::conformance {
namespace {

using sdk::IrBuilder;

uint64_t bits(int32_t value) {
  return static_cast<uint64_t>(int64_t{value});  // as in a CONST
}

void check_groups(Context& context, std::array<uint64_t, 3> groups) {
  Device& device = context.device();
  const auto block = spread_kernel(groups[0], groups[1], groups[2]);
  device.require_claims(block);
  context.about(block);
  const auto in = random_ints(groups[0] * groups[1] * groups[2], context.seed());
  Buffer source = make_ints(device, in), out = make_ints(device, std::vector<int32_t>(in.size()));
  const auto kernel = device.compile(block);
  device.launch(*kernel, {{out.handle(), source.handle()}, {bits(-7)}, groups, {1, 1, 1}});
  expect_ints("out", read_ints(out), spread_result(in, -7));
}

void check_fewer_groups(Context& context) {
  Device& device = context.device();
  const auto in = random_ints(100, context.seed());
  const auto kernel = device.compile(spread_kernel(100));
  Buffer source = make_ints(device, in);
  for (uint64_t count : {1, 2, 37, 99}) {
    std::vector<int32_t> wanted = spread_result(in, 3);
    std::fill(wanted.begin() + static_cast<ptrdiff_t>(count), wanted.end(), 1234);
    Buffer out = make_ints(device, std::vector<int32_t>(100, 1234));
    device.launch(*kernel, {{out.handle(), source.handle()}, {3}, {count, 1, 1}, {1, 1, 1}});
    expect_ints("out of " + std::to_string(count) + " of 100 groups", read_ints(out), wanted);
  }
}

void check_no_groups(Context& context) {
  Device& device = context.device();
  const auto in = random_ints(64, context.seed()), before = random_ints(64, context.seed() + 1);
  const auto kernel = device.compile(spread_kernel(4, 4, 4));
  Buffer source = make_ints(device, in), out = make_ints(device, before);
  for (size_t axis = 0; axis < 3; ++axis) {
    std::array<uint64_t, 3> groups{4, 4, 4};
    groups[axis] = 0;
    device.launch(*kernel, {{out.handle(), source.handle()}, {3}, groups, {1, 1, 1}});
    expect_ints("out, where a group count is 0", read_ints(out), before);
  }
}

// Copies follow the launch on the same queue, whether or not the launch returned early.
void check_finished(Context& context) {
  Tables t(context);
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(40);
  Buffer value = make_ints(t.device, std::vector<int32_t>{5});
  Launch(slow.kernel(), {value.handle()}, {steps}).start(t);
  // Read before the expected value is computed, which takes as long as the launch.
  const std::vector<int32_t> seen = read_ints(value);
  expect_ints("copy_out right behind a long launch", seen,
              std::vector<int32_t>{slow_result(5, steps)});
}

void check_synchronize_waits(Context& context) {
  Tables t(context);
  require_offered(t.memory.map, "pgr.allocator map");
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(40);
  Buffer value = make_ints(t.device, std::vector<int32_t>{6});
  Launch(slow.kernel(), {value.handle()}, {steps}).start(t);
  t.device.synchronize();
  void* at = nullptr;
  expect_ok_or_unsupported("allocator.map", [&](pgr_error* error) {
    return t.memory.map(t.handle, value.handle(), &at, error);
  });
  int32_t seen = 0;
  std::memcpy(&seen, at, 4);
  t.memory.unmap(t.handle, value.handle(), nullptr);
  expect(seen == slow_result(6, steps), "synchronize returned before a launch had finished");
}

void check_map_waits_for_launch(Context& context) {
  Tables t(context);
  require_offered(t.memory.map, "pgr.allocator map");
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(40);
  Buffer value = make_ints(t.device, std::vector<int32_t>{7});
  Launch(slow.kernel(), {value.handle()}, {steps}).start(t);
  void* at = nullptr;
  expect_ok_or_unsupported("allocator.map", [&](pgr_error* error) {
    return t.memory.map(t.handle, value.handle(), &at, error);
  });
  int32_t seen = 0;
  std::memcpy(&seen, at, 4);
  t.memory.unmap(t.handle, value.handle(), nullptr);
  expect(seen == slow_result(7, steps), "map returned before work on the buffer had finished");
}

void check_in_order(Context& context) {
  Tables t(context);
  const auto kernel = t.device.compile(slow_kernel());
  const auto start = random_ints(1, context.seed());
  Buffer value = make_ints(t.device, start);
  int32_t wanted = start[0];
  for (uint64_t steps = 1; steps <= 40; ++steps) {
    Launch(*kernel, {value.handle()}, {steps * 100}).start(t);
    wanted = slow_result(wanted, steps * 100);
  }
  expect_ints("40 launches on one value", read_ints(value), std::vector<int32_t>{wanted});
}

void check_copies_in_order(Context& context) {
  Tables t(context);
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(3);
  Buffer a = make_ints(t.device, std::vector<int32_t>{1}), b = t.device.allocate(4);
  for (int32_t round = 0; round < 5; ++round) {
    const auto start = random_ints(1, context.seed() + static_cast<uint64_t>(round));
    a.write(std::as_bytes(std::span(start)));
    Launch(slow.kernel(), {a.handle()}, {steps}).start(t);
    expect_ok("allocator.copy", [&](pgr_error* error) {
      return t.memory.copy(t.handle, nullptr, b.handle(), 0, a.handle(), 0, 4, error);
    });
    a.write(std::as_bytes(std::span(start)));  // ordered after the copy
    Launch(slow.kernel(), {b.handle()}, {steps}).start(t);
    // read before the expected value is computed, which takes long
    const std::vector<int32_t> seen = read_ints(b);
    expect_ints("launch, copy, launch", seen,
                std::vector<int32_t>{slow_result(start[0], 2 * steps)});
    expect_ints("copy_in behind a launch", read_ints(a), start);
  }
}

void check_arguments_live_for_the_call(Context& context) {
  Tables t(context);
  const SlowKernel slow(t.device);
  const uint64_t steps = slow.steps_for(10);
  Buffer value = make_ints(t.device, std::vector<int32_t>{8});
  Launch launch(slow.kernel(), {value.handle()}, {steps});
  launch.start(t);
  launch.buffers[0] = nullptr;
  launch.scalars[0] = 1;
  std::memset(&launch.desc, 0xff, sizeof launch.desc);
  // read before the expected value is computed, which takes long
  const std::vector<int32_t> seen = read_ints(value);
  expect_ints("a launch whose arguments changed on return", seen,
              std::vector<int32_t>{slow_result(8, steps)});
}

// out[0] = sum of scalar i * (i + 1), and each buffer i gets i added.
std::vector<std::byte> many_kernel(uint32_t buffers, uint32_t scalars) {
  IrBuilder b("many");
  auto out = b.buffer(I32, 1);
  std::vector<IrBuilder::Value> others, values;
  // Alternates kinds: buffers and scalars are indexed separately.
  for (uint32_t i = 0; i < std::max(buffers, scalars); ++i) {
    if (i < buffers) others.push_back(b.buffer(I32, 1));
    if (i < scalars) values.push_back(b.scalar(I32, INT32_MIN, INT32_MAX));
  }
  auto zero = b.constant_int(I32, 0);
  auto sum = zero;
  for (uint32_t i = 0; i < scalars; ++i)
    sum = b.alu(PGR_OP_ADD,
                {sum, b.alu(PGR_OP_MUL, {values[i], b.constant_int(I32, int64_t{i} + 1)})});
  b.store(out, zero, sum);
  for (uint32_t i = 0; i < buffers; ++i)
    b.store(others[i], zero, b.alu(PGR_OP_ADD, {b.load(others[i], zero), b.constant_int(I32, i)}));
  return b.finish();
}

void check_many_params(Context& context, uint32_t buffer_count, uint32_t scalar_count) {
  Device& device = context.device();
  const auto block = many_kernel(buffer_count, scalar_count);
  device.require_claims(block);
  context.about(block);
  const auto kernel = device.compile(block);
  std::vector<Buffer> buffers;
  buffers.push_back(make_ints(device, std::vector<int32_t>{0}));
  KernelLaunch launch;
  for (uint32_t i = 0; i < buffer_count; ++i)
    buffers.push_back(make_ints(device, std::vector<int32_t>{int32_t(i) * 10}));
  for (const Buffer& buffer : buffers) launch.buffers.push_back(buffer.handle());
  int32_t sum = 0;
  for (uint32_t i = 0; i < scalar_count; ++i) {
    const int32_t scalar = i % 2 ? int32_t(i) * 1000 : -int32_t(i) - 1;
    launch.scalars.push_back(bits(scalar));
    sum += scalar * int32_t(i + 1);
  }
  device.launch(*kernel, launch);
  expect_ints("the sum of the scalars", read_ints(buffers[0]), std::vector<int32_t>{sum});
  for (uint32_t i = 0; i < buffer_count; ++i)
    expect_ints("buffer " + std::to_string(i), read_ints(buffers[i + 1]),
                std::vector<int32_t>{int32_t(i) * 11});
}

void check_sub_buffers(Context& context) {
  Tables t(context);
  require_offered(t.memory.sub_buffer, "pgr.allocator sub_buffer");
  const uint64_t align = t.device.caps().buffer_align_bytes, part_bytes = 40;
  const uint64_t step = (part_bytes + align - 1) / align * align;
  Buffer whole = t.device.allocate(4 * step);
  std::vector<std::byte> wanted = patterned(4 * step, context.seed());
  whole.write(wanted);
  auto part = [&](uint64_t offset) {
    pgr_buffer* handle = nullptr;
    expect_ok_or_unsupported("allocator.sub_buffer", [&](pgr_error* error) {
      return t.memory.sub_buffer(t.handle, whole.handle(), offset, part_bytes, &handle, error);
    });
    return Buffer(t.device, handle, part_bytes);
  };
  Buffer in = part(step), out = part(3 * step);
  const auto kernel = t.device.compile(spread_kernel(10));
  const auto result = spread_result(read_ints(in), 9);
  t.device.launch(*kernel, {{out.handle(), in.handle()}, {9}, {10, 1, 1}, {1, 1, 1}});
  std::memcpy(&wanted[3 * step], result.data(), part_bytes);
  expect_bytes("the buffer whose parts a kernel used", read_all(whole), wanted);
}

void check_same_buffer(Context& context) {
  Device& device = context.device();
  const auto in = random_ints(50, context.seed());
  Buffer both = make_ints(device, in);
  const auto kernel = device.compile(spread_kernel(50));
  device.launch(*kernel, {{both.handle(), both.handle()}, {5}, {50, 1, 1}, {1, 1, 1}});
  expect_ints("one buffer as input and output", read_ints(both), spread_result(in, 5));
}

void check_timing(Context& context) {
  using Clock = std::chrono::steady_clock;
  Tables t(context);
  const SlowKernel slow(t.device);
  Buffer value = make_ints(t.device, std::vector<int32_t>{1});
  auto time_of = [&](uint64_t steps) {
    Launch launch(slow.kernel(), {value.handle()}, {steps});
    launch.desc.timing = 1;
    uint64_t time_ns = 0;
    const auto begin = Clock::now();
    launch.start(t, nullptr, &time_ns);
    t.device.synchronize();
    const uint64_t wall_ns = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
    expect(time_ns > 0, "a launch with timing took 0 ns");
    expect(time_ns <= wall_ns + wall_ns / 20, "a launch is said to take " +
                                                  std::to_string(time_ns) + " ns, the call took " +
                                                  std::to_string(wall_ns));
    return time_ns;
  };
  const uint64_t full = time_of(slow.steps_for(30));
  uint64_t brief = time_of(slow.steps_for(1));  // the minimum, as other processes may run
  for (int i = 0; i < 9; ++i) brief = std::min(brief, time_of(slow.steps_for(1)));
  expect(full > 5 * brief, "a launch of 30 times the work is said to take " + std::to_string(full) +
                               " ns, the other " + std::to_string(brief));
}

void check_timing_is_optional(Context& context) {
  Tables t(context);
  const auto kernel = t.device.compile(slow_kernel());
  Buffer value = make_ints(t.device, std::vector<int32_t>{1});
  Launch launch(*kernel, {value.handle()}, {10});
  uint64_t time_ns = 0;
  launch.start(t, nullptr, &time_ns);  // not requested: any value is valid
  launch.desc.timing = 1;
  launch.start(t, nullptr, nullptr);  // nowhere to store the time
  expect_ints("two launches", read_ints(value), std::vector<int32_t>{slow_result(1, 20)});
}

// Each thread uses its own device handle, concurrently.
void check_devices_on_threads(Context& context) {
  constexpr int kThreads = 4;
  std::vector<std::string> failures(kThreads);
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < kThreads; ++i) devices.push_back(context.plugin().open_device());
  const auto block = spread_kernel(200);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      try {
        Device& device = *devices[i];
        const auto kernel = device.compile(block);
        for (int round = 0; round < 20; ++round) {
          const auto in = random_ints(200, context.seed() + uint64_t(i * 100 + round));
          Buffer source = make_ints(device, in), out = device.allocate(800);
          device.launch(*kernel,
                        {{out.handle(), source.handle()}, {bits(i)}, {200, 1, 1}, {1, 1, 1}});
          expect_ints("out", read_ints(out), spread_result(in, i));
        }
      } catch (const std::exception& error) {
        failures[i] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) expect(failure.empty(), failure);
}

}  // namespace

void add_launch_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run,
                 const char* unlocked_by = "") {
    Test& test = add_test(tests, Level::L1, "l1.launch." + id, std::move(run));
    test.unlocked_by = unlocked_by;
    test.alone = id == "timing";
  };
  constexpr std::array<uint64_t, 3> kGroups[] = {{1, 1, 1},
                                                 {2, 1, 1},
                                                 {17, 1, 1},
                                                 {1, 13, 1},
                                                 {1, 1, 11},
                                                 {3, 5, 7},
                                                 {64, 2, 1},
                                                 {1000, 1, 1},
                                                 {40'009, 1, 1},
                                                 // What every device must take along an axis.
                                                 {65'535, 1, 1},
                                                 {1, 65'535, 1},
                                                 {1, 1, 65'535}};
  for (const auto& groups : kGroups)
    add("groups." + std::to_string(groups[0]) + "x" + std::to_string(groups[1]) + "x" +
            std::to_string(groups[2]),
        [groups](Context& context) { check_groups(context, groups); });
  add("groups.fewer", check_fewer_groups);
  add("groups.none", check_no_groups);
  add("finished", check_finished);
  add("synchronize", check_synchronize_waits, "pgr.allocator map");
  add("map_waits", check_map_waits_for_launch, "pgr.allocator map");
  add("in_order", check_in_order);
  add("copies_in_order", check_copies_in_order);
  add("arguments", check_arguments_live_for_the_call);
  add("params.buffers", [](Context& context) { check_many_params(context, 40, 0); });
  add("params.scalars", [](Context& context) { check_many_params(context, 0, 20); });
  add("params.mixed", [](Context& context) { check_many_params(context, 7, 5); });
  add("sub_buffers", check_sub_buffers, "pgr.allocator sub_buffer");
  add("same_buffer", check_same_buffer);
  add("timing", check_timing);
  add("timing.optional", check_timing_is_optional);
  add("threads", check_devices_on_threads);
}

}  // namespace plugrad::conformance
