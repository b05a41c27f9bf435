// Tests queues, events, graphs and counters of the reference plugin through its C tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "abi/plugin_host.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/ir_builder.h"

namespace plugrad::abi {
namespace {

using sdk::IrBuilder;
using testing::HasSubstr;
constexpr uint32_t kI32 = PGR_DTYPE_I32;

// out[0] = out[0] * 3 + scalar, after `spins` idle iterations.
std::vector<std::byte> step_kernel(int64_t spins) {
  IrBuilder b("step");
  auto out = b.buffer(kI32, 1);
  auto add = b.scalar(kI32, 0, 1000);
  auto zero = b.constant_int(kI32, 0);
  auto dump = b.array(PGR_SPACE_PRIVATE, kI32, 1);
  auto loop = b.loop(zero, b.constant_int(kI32, spins));
  b.store(dump, zero, loop);
  b.end_loop(loop);
  auto tripled = b.alu(PGR_OP_MUL, {b.load(out, zero), b.constant_int(kI32, 3)});
  b.store(out, zero, b.alu(PGR_OP_ADD, {tripled, add}));
  return b.finish();
}

// Reads beyond the declared size of its buffer: fails at run time.
std::vector<std::byte> failing_kernel() {
  IrBuilder b("failing");
  auto out = b.buffer(kI32, 1);
  auto add = b.scalar(kI32, 0, 1000);
  b.store(out, add, add);
  return b.finish();
}

struct ReferenceAsync : testing::Test {
  const pgr_plugin_api* plugin =
      open_plugin(std::string(PLUGIN_DIRECTORY) + "/libplugrad_plugin_reference.so");
  const pgr_allocator_api* memory = query<pgr_allocator_api>(plugin, "pgr.allocator");
  const pgr_runner_api* runner = query<pgr_runner_api>(plugin, "pgr.runner");
  const pgr_queue_api* queues = query<pgr_queue_api>(plugin, "pgr.queue");
  const pgr_graph_api* graphs = query<pgr_graph_api>(plugin, "pgr.graph");
  const pgr_profile_api* profile = query<pgr_profile_api>(plugin, "pgr.profile");
  const pgr_device_api* devices = query<pgr_device_api>(plugin, "pgr.device");
  pgr_device* device = nullptr;
  pgr_queue* queue = nullptr;
  Error error;

  void SetUp() override {
    ASSERT_EQ(open(""), PGR_STATUS_OK);
    ASSERT_EQ(queues->create(device, &queue, error.get()), PGR_STATUS_OK);
  }
  void TearDown() override {
    queues->destroy(device, queue);
    plugin->device_close(plugin->plugin, device);
  }
  pgr_status open(std::string_view withdraw) {
    pgr_option option;
    PGR_INIT(option, OPTION);
    option.key = to_pgr("withdraw");
    option.value = to_pgr(withdraw);
    return plugin->device_open(plugin->plugin, 0, &option, 1, sizeof option, &device, error.get());
  }
  void ok(pgr_status status) { ASSERT_EQ(status, PGR_STATUS_OK) << error.message(); }

  pgr_buffer* alloc() {
    pgr_alloc_desc desc;
    PGR_INIT(desc, ALLOC_DESC);
    desc.size_bytes = 4;
    desc.flags = PGR_ALLOC_ZERO;
    pgr_buffer* out = nullptr;
    ok(memory->alloc(device, &desc, &out, error.get()));
    return out;
  }
  pgr_program* load(const std::vector<std::byte>& block) {
    pgr_program* out = nullptr;
    ok(runner->load(device, block.data(), block.size(), &out, error.get()));
    return out;
  }
  pgr_kernel* kernel(pgr_program* program, std::string_view name) {
    pgr_kernel* out = nullptr;
    const pgr_string text = to_pgr(name);
    ok(runner->kernel(device, program, &text, &out, error.get()));
    return out;
  }
  pgr_launch_desc describe(pgr_buffer* const* buffer, const uint64_t* scalar) {
    pgr_launch_desc desc;
    PGR_INIT(desc, LAUNCH_DESC);
    desc.buffers = buffer;
    desc.scalars = scalar;
    desc.buffer_count = desc.scalar_count = 1;
    for (int i = 0; i < 3; ++i) desc.group_count[i] = desc.local_size[i] = 1;
    return desc;
  }
  void launch(pgr_queue* on, pgr_kernel* what, pgr_buffer* buffer, uint64_t scalar) {
    const pgr_launch_desc desc = describe(&buffer, &scalar);
    ok(runner->launch(device, on, what, &desc, nullptr, error.get()));
  }
  int32_t read(pgr_queue* on, pgr_buffer* buffer) {
    int32_t value = 0;
    ok(memory->copy_out(device, on, &value, buffer, 0, 4, error.get()));
    return value;
  }
  uint64_t used_bytes() {
    pgr_memory_stats stats;
    PGR_INIT(stats, MEMORY_STATS);
    ok(devices->memory_stats(device, &stats, error.get()));
    return stats.used_bytes;
  }
};

constexpr int64_t kLong = 3'000'000;  // iterations: tens of milliseconds

TEST_F(ReferenceAsync, AQueueRunsItsWorkInOrderBesideTheCaller) {
  pgr_program* program = load(step_kernel(kLong));
  pgr_buffer* buffer = alloc();
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 1; i <= 3; ++i) launch(queue, kernel(program, "step"), buffer, i);
  const auto launched = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(read(queue, buffer), (1 * 3 + 2) * 3 + 3);
  EXPECT_LT(launched * 2, std::chrono::steady_clock::now() - begin);
  runner->unload(device, program);
  memory->free(device, buffer);
}

TEST_F(ReferenceAsync, EventsOrderQueuesAndTellTheirTime) {
  pgr_program *slow = load(step_kernel(kLong)), *fast = load(step_kernel(0));
  pgr_buffer* buffer = alloc();
  pgr_queue* other = nullptr;
  ok(queues->create(device, &other, error.get()));
  pgr_event *first = nullptr, *second = nullptr;
  launch(queue, kernel(slow, "step"), buffer, 1);
  ok(queues->record(device, queue, &first, error.get()));
  uint64_t first_ns = 0, second_ns = 0;
  EXPECT_EQ(queues->event_time(device, first, &first_ns, error.get()), PGR_STATUS_NOT_READY);
  EXPECT_EQ(queues->event_wait(device, first, 1000, error.get()), PGR_STATUS_TIMED_OUT);
  ok(queues->wait(device, other, first, error.get()));
  launch(other, kernel(fast, "step"), buffer, 2);
  ok(queues->record(device, other, &second, error.get()));
  ok(queues->event_wait(device, second, UINT64_MAX, error.get()));
  ok(queues->event_time(device, first, &first_ns, error.get()));
  ok(queues->event_time(device, second, &second_ns, error.get()));
  EXPECT_LE(first_ns, second_ns);
  EXPECT_EQ(read(nullptr, buffer), 5);
  queues->event_destroy(device, first);
  queues->event_destroy(device, second);
  queues->destroy(device, other);
  runner->unload(device, slow);
  runner->unload(device, fast);
  memory->free(device, buffer);
}

TEST_F(ReferenceAsync, QueuedWorkKeepsWhatItUses) {
  pgr_program* program = load(step_kernel(kLong));
  pgr_buffer *buffer = alloc(), *copy = alloc();
  launch(queue, kernel(program, "step"), buffer, 7);
  ok(memory->copy(device, queue, copy, 0, buffer, 0, 4, error.get()));
  memory->free(device, buffer);
  runner->unload(device, program);  // waits
  EXPECT_EQ(read(queue, copy), 7);
  EXPECT_EQ(used_bytes(), 4u);
  memory->free(device, copy);
}

TEST_F(ReferenceAsync, MapAndSynchronizeWaitForTheWork) {
  pgr_program* program = load(step_kernel(kLong));
  pgr_buffer* buffer = alloc();
  launch(queue, kernel(program, "step"), buffer, 7);
  void* at = nullptr;
  ok(memory->map(device, buffer, &at, error.get()));
  EXPECT_EQ(*static_cast<int32_t*>(at), 7);
  launch(queue, kernel(program, "step"), buffer, 1);
  ok(devices->synchronize(device, error.get()));
  EXPECT_EQ(*static_cast<int32_t*>(at), 22);
  ok(memory->unmap(device, buffer, error.get()));
  runner->unload(device, program);
  memory->free(device, buffer);
}

TEST_F(ReferenceAsync, AFailureIsReportedByWhoWaits) {
  pgr_program *good = load(step_kernel(0)), *bad = load(failing_kernel());
  pgr_buffer* buffer = alloc();
  launch(queue, kernel(bad, "failing"), buffer, 5);
  launch(queue, kernel(good, "step"), buffer, 4);
  pgr_event* event = nullptr;
  ok(queues->record(device, queue, &event, error.get()));
  EXPECT_EQ(queues->event_wait(device, event, UINT64_MAX, error.get()), PGR_STATUS_LAUNCH_FAILED);
  EXPECT_EQ(queues->finish(device, queue, error.get()), PGR_STATUS_LAUNCH_FAILED);
  EXPECT_THAT(error.message(), HasSubstr("kernel failing, group (0, 0, 0)"));
  EXPECT_EQ(queues->finish(device, queue, error.get()), PGR_STATUS_OK);
  EXPECT_EQ(read(queue, buffer), 4);  // later work ran
  queues->event_destroy(device, event);
  runner->unload(device, good);
  runner->unload(device, bad);
  memory->free(device, buffer);
}

TEST_F(ReferenceAsync, AGraphCopiesItsNodesAndTakesPatches) {
  pgr_program* program = load(step_kernel(0));
  pgr_buffer *a = alloc(), *b = alloc(), *c = alloc();
  pgr_graph* graph = nullptr;
  {
    pgr_buffer* buffers[] = {a};
    uint64_t scalar = 5;
    pgr_launch_desc desc = describe(buffers, &scalar);
    uint32_t first = 0;
    pgr_graph_node nodes[2];
    for (pgr_graph_node& node : nodes) PGR_INIT(node, GRAPH_NODE);
    nodes[0].kernel = kernel(program, "step");
    nodes[0].launch = &desc;
    nodes[1].kind = PGR_GRAPH_COPY;
    nodes[1].depends = &first;
    nodes[1].depends_count = 1;
    nodes[1].dst = b;
    nodes[1].src = a;
    nodes[1].size_bytes = 4;
    ok(graphs->build(device, nodes, 2, sizeof nodes[0], &graph, error.get()));
    first = 7;
    EXPECT_EQ(graphs->build(device, nodes, 2, sizeof nodes[0], &graph, error.get()),
              PGR_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(error.message(), "node 1 depends on node 7, which is not an earlier one");
    buffers[0] = nullptr;
    scalar = 999;
  }
  ok(graphs->replay(device, queue, graph, error.get()));
  ok(graphs->patch_scalar(device, graph, 0, 0, 1, error.get()));
  ok(graphs->patch_buffer(device, graph, 1, 0, c, error.get()));
  ok(graphs->replay(device, queue, graph, error.get()));
  EXPECT_EQ(read(queue, b), 5);
  EXPECT_EQ(read(queue, c), 16);
  EXPECT_EQ(graphs->patch_scalar(device, graph, 0, 0, 1001, error.get()),
            PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(graphs->patch_buffer(device, graph, 2, 0, c, error.get()), PGR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(graphs->patch_buffer(device, graph, 1, 2, c, error.get()), PGR_STATUS_INVALID_ARGUMENT);
  graphs->destroy(device, graph);
  runner->unload(device, program);
  for (pgr_buffer* buffer : {a, b, c}) memory->free(device, buffer);
}

TEST_F(ReferenceAsync, CountersAndClock) {
  pgr_program* program = load(step_kernel(0));
  pgr_buffer *buffer = alloc(), *other = alloc();
  launch(queue, kernel(program, "step"), buffer, 1);
  launch(nullptr, kernel(program, "step"), other, 1);
  EXPECT_GT(read(queue, buffer), 0);
  auto counter = [&](uint32_t index) {
    pgr_counter out;
    PGR_INIT(out, COUNTER);
    ok(profile->counter(device, index, &out, error.get()));
    return std::string(out.name.data, out.name.size) + " " + std::to_string(out.value);
  };
  EXPECT_EQ(counter(0), "kernels_launched 2");
  EXPECT_EQ(counter(1), "bytes_copied 4");
  pgr_counter none;
  PGR_INIT(none, COUNTER);
  EXPECT_EQ(profile->counter(device, 2, &none, error.get()), PGR_STATUS_NOT_FOUND);
  uint64_t device_ns[2], host_ns[2], error_ns[2];
  ok(profile->calibrate(device, &device_ns[0], &host_ns[0], &error_ns[0], error.get()));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ok(profile->calibrate(device, &device_ns[1], &host_ns[1], &error_ns[1], error.get()));
  EXPECT_NE(device_ns[0], host_ns[0]);
  const int64_t drift =
      static_cast<int64_t>((device_ns[1] - device_ns[0]) - (host_ns[1] - host_ns[0]));
  EXPECT_LE(std::abs(drift), static_cast<int64_t>(error_ns[0] + error_ns[1]));
  runner->unload(device, program);
  memory->free(device, buffer);
  memory->free(device, other);
}

TEST_F(ReferenceAsync, WithdrawnInterfacesAnswerUnsupported) {
  pgr_device* with_queue = device;
  ASSERT_EQ(open("queue,graph,profile"), PGR_STATUS_OK);
  pgr_queue* none = nullptr;
  EXPECT_EQ(queues->create(device, &none, error.get()), PGR_STATUS_UNSUPPORTED);
  EXPECT_EQ(error.message(), "this device was opened without pgr.queue");
  pgr_graph* graph = nullptr;
  EXPECT_EQ(graphs->build(device, nullptr, 0, 0, &graph, error.get()), PGR_STATUS_UNSUPPORTED);
  uint64_t ns;
  EXPECT_EQ(profile->calibrate(device, &ns, &ns, &ns, error.get()), PGR_STATUS_UNSUPPORTED);
  plugin->device_close(plugin->plugin, device);
  device = with_queue;
}

TEST(ReferenceOptions, APluginWithoutAnInterfaceHasNoTable) {
  const std::string path = std::string(PLUGIN_DIRECTORY) + "/libplugrad_plugin_reference.so";
  pgr_hello hello = make_hello(shared_host(), path);
  pgr_option option;
  PGR_INIT(option, OPTION);
  option.key = to_pgr("withdraw");
  option.value = to_pgr("graph");
  hello.options = &option;
  hello.option_count = 1;
  hello.option_stride = sizeof option;
  const pgr_plugin_api* api = nullptr;
  Error error;
  ASSERT_EQ(entry_of(path)(&hello, &api, error.get()), PGR_STATUS_OK);
  const pgr_string graph = to_pgr("pgr.graph");
  const void* table = nullptr;
  EXPECT_EQ(api->query_interface(api->plugin, &graph, PGR_API_MINOR, &table, error.get()),
            PGR_STATUS_UNSUPPORTED);
  EXPECT_NE(query<pgr_queue_api>(api, "pgr.queue"), nullptr);
  open_plugin(path);  // restores all claims for the following tests
}

}  // namespace
}  // namespace plugrad::abi
