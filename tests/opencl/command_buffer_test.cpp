// Graphs as command buffers: a plugin built to prefer command buffers, opened by its path.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>

#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"
#include "unit/cpu_clang/stub_host.h"

namespace plugrad::testing {
namespace {

constexpr char kSource[] =
    "__kernel void k_step(__global int *data, int by) {\n"
    "  data[get_group_id(0)] = data[get_group_id(0)] * 3 + by;\n"
    "}\n";
using Ints = std::array<int32_t, 4>;

Ints stepped(Ints values, int32_t by) {
  for (int32_t& value : values) value = value * 3 + by;
  return values;
}

class CommandBuffer : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto entry = reinterpret_cast<pgr_plugin_entry_fn>(
        ::dlsym(open_library(OPENCL_PLUGIN), PGR_PLUGIN_ENTRY_NAME));
    pgr_hello hello;
    PGR_INIT(hello, HELLO);
    hello.host = &host_.api;
    check(entry(&hello, &api_, error()));
    uint32_t count = 0;
    check(api_->device_count(api_->plugin, &count, error()));
    if (count == 0) GTEST_SKIP() << "no OpenCL device: " << error_.text();
    check(api_->device_open(api_->plugin, 0, nullptr, 0, sizeof(pgr_option), &device_, error()));
    find_tables();
    load();
  }
  void TearDown() override {
    if (!device_) return;
    runner_->unload(device_, program_);
    api_->device_close(api_->plugin, device_);
  }

  pgr_error* error() { return &error_.error; }
  void check(pgr_status status) {
    if (status != PGR_STATUS_OK) throw std::runtime_error(error_.text());
  }
  template <typename Table>
  void find(const char* name, const Table*& out) {
    const pgr_string text = sdk::to_pgr(name);
    const void* found = nullptr;
    check(api_->query_interface(api_->plugin, &text, PGR_API_MINOR, &found, error()));
    out = static_cast<const Table*>(found);
  }
  void find_tables() {
    find("pgr.allocator", memory_);
    find("pgr.compiler", compiler_);
    find("pgr.runner", runner_);
    find("pgr.queue", queues_);
    find("pgr.graph", graphs_);
    find("pgr.profile", profile_);
  }
  void load() {
    pgr_compile_desc desc;
    PGR_INIT(desc, COMPILE_DESC);
    desc.input = kSource;
    desc.input_bytes = sizeof kSource - 1;
    desc.name = sdk::to_pgr("step");
    pgr_blob blob;
    PGR_INIT(blob, BLOB);
    check(compiler_->compile(device_, &desc, &blob, nullptr, error()));
    const std::string binary = take(blob);
    check(runner_->load(device_, binary.data(), binary.size(), &program_, error()));
    const pgr_string name = sdk::to_pgr("step");
    check(runner_->kernel(device_, program_, &name, &kernel_, error()));
  }

  // Holds the values when it returns: other queues are not ordered with the device's.
  pgr_buffer* buffer_of(const Ints& values) {
    pgr_alloc_desc desc;
    PGR_INIT(desc, ALLOC_DESC);
    desc.size_bytes = sizeof values;
    pgr_buffer* buffer = nullptr;
    check(memory_->alloc(device_, &desc, &buffer, error()));
    check(memory_->copy_in(device_, nullptr, buffer, 0, values.data(), sizeof values, error()));
    check(queues_->finish(device_, nullptr, error()));
    return buffer;
  }
  Ints read(pgr_buffer* buffer, pgr_queue* queue = nullptr) {
    Ints values{};
    check(memory_->copy_out(device_, queue, values.data(), buffer, 0, sizeof values, error()));
    check(queues_->finish(device_, queue, error()));
    return values;
  }
  std::map<std::string, uint64_t> counters() {
    std::map<std::string, uint64_t> found;
    for (uint32_t i = 0;; ++i) {
      pgr_counter counter;
      PGR_INIT(counter, COUNTER);
      if (profile_->counter(device_, i, &counter, error()) != PGR_STATUS_OK) return found;
      found[std::string(sdk::to_view(&counter.name))] = counter.value;
    }
  }

  // Nodes that are to stay where they are until the graph is built.
  struct Launch {
    pgr_buffer* buffer;
    uint64_t by;
    pgr_launch_desc desc;
  };
  pgr_graph_node launch(pgr_buffer* buffer, uint64_t by, uint64_t groups = 4) {
    Launch& own = *launches_.emplace_back(std::make_unique<Launch>(Launch{buffer, by, {}}));
    PGR_INIT(own.desc, LAUNCH_DESC);
    own.desc.buffers = &own.buffer;
    own.desc.scalars = &own.by;
    own.desc.buffer_count = own.desc.scalar_count = 1;
    own.desc.group_count[0] = groups;
    own.desc.group_count[1] = own.desc.group_count[2] = 1;
    for (uint32_t& size : own.desc.local_size) size = 1;
    pgr_graph_node node;
    PGR_INIT(node, GRAPH_NODE);
    node.kind = PGR_GRAPH_LAUNCH;
    node.kernel = kernel_;
    node.launch = &own.desc;
    return node;
  }
  pgr_graph_node copy(pgr_buffer* dst, pgr_buffer* src, uint64_t size) {
    pgr_graph_node node;
    PGR_INIT(node, GRAPH_NODE);
    node.kind = PGR_GRAPH_COPY;
    node.dst = dst;
    node.src = src;
    node.size_bytes = size;
    return node;
  }
  pgr_graph* build(const std::vector<pgr_graph_node>& nodes) {
    pgr_graph* graph = nullptr;
    check(graphs_->build(device_, nodes.data(), static_cast<uint32_t>(nodes.size()),
                         sizeof nodes[0], &graph, error()));
    return graph;
  }
  void replay(pgr_graph* graph, pgr_queue* queue = nullptr) {
    check(graphs_->replay(device_, queue, graph, error()));
  }

  // Lives as long as the plugin: a driver's thread may free memory after the device is closed.
  static inline StubHost host_{"."};
  ErrorText error_;
  std::vector<std::unique_ptr<Launch>> launches_;
  const pgr_plugin_api* api_ = nullptr;
  const pgr_allocator_api* memory_ = nullptr;
  const pgr_compiler_api* compiler_ = nullptr;
  const pgr_runner_api* runner_ = nullptr;
  const pgr_queue_api* queues_ = nullptr;
  const pgr_graph_api* graphs_ = nullptr;
  const pgr_profile_api* profile_ = nullptr;
  pgr_device* device_ = nullptr;
  pgr_program* program_ = nullptr;
  pgr_kernel* kernel_ = nullptr;
};

// Three launches of one kernel differ in their arguments; empty launches record no command.
TEST_F(CommandBuffer, RunsItsNodesInOrder_AndAgainAfterAPatch) {
  const Ints first{1, 2, 3, 4};
  pgr_buffer *a = buffer_of(first), *b = buffer_of({}), *c = buffer_of({9, 9, 9, 9});
  pgr_graph* graph = build({launch(a, 1), launch(a, 2), copy(b, a, sizeof first), launch(a, 50, 0),
                            copy(b, c, 0), launch(b, 5)});
  replay(graph);
  replay(graph);
  const Ints once = stepped(stepped(first, 1), 2), twice = stepped(stepped(once, 1), 2);
  EXPECT_EQ(read(a), twice);
  EXPECT_EQ(read(b), stepped(twice, 5));

  check(graphs_->patch_scalar(device_, graph, 1, 0, 7, error()));
  check(graphs_->patch_buffer(device_, graph, 5, 0, c, error()));
  replay(graph);
  const Ints patched = stepped(stepped(twice, 1), 7);
  EXPECT_EQ(read(a), patched);
  EXPECT_EQ(read(b), patched);
  EXPECT_EQ(read(c), stepped({9, 9, 9, 9}, 5));
  auto counted = counters();
  EXPECT_EQ(counted["command_buffers_replayed"], 3u) << "not replayed as command buffers";
  EXPECT_EQ(counted["kernels_launched"], 9u);
  EXPECT_EQ(counted["bytes_copied"], 3 * sizeof first + 3 * sizeof first + 5 * sizeof first);
  graphs_->destroy(device_, graph);
  for (pgr_buffer* buffer : {a, b, c}) memory_->free(device_, buffer);
}

TEST_F(CommandBuffer, RunsOnAnyQueue_AndOutlivesItsBuffersAndGraph) {
  const Ints first{5, 6, 7, 8};
  pgr_buffer *a = buffer_of(first), *scratch = buffer_of(first);
  pgr_queue* queue = nullptr;
  check(queues_->create(device_, &queue, error()));
  std::vector<pgr_graph_node> nodes(200, launch(scratch, 1));
  nodes.push_back(launch(a, 2));
  pgr_graph* graph = build(nodes);
  memory_->free(device_, scratch);
  replay(graph, queue);
  replay(graph, queue);
  graphs_->destroy(device_, graph);
  EXPECT_EQ(read(a, queue), stepped(stepped(first, 2), 2));
  EXPECT_EQ(counters()["command_buffers_replayed"], 2u);
  queues_->destroy(device_, queue);
  memory_->free(device_, a);
}

}  // namespace
}  // namespace plugrad::testing
