// L3: a graph gives the same results as separate launches and copies.
#include <algorithm>

#include "conformance/levels/queues/async_families.h"

namespace plugrad::conformance {
namespace {

constexpr size_t kElems = 24;

// An operation, used both in the graph and as a separate call.
struct Step {
  bool is_copy;
  size_t dst, src;  // buffers
  int32_t scalar;
  uint64_t offset, count;  // of a copy, in elements
  std::vector<uint32_t> depends;
};

struct Fixture {
  explicit Fixture(Context& context)
      : tables(context),
        api(api_of(context)),
        kernel(tables.device.compile(spread_kernel(kElems))) {}

  static const pgr_graph_api& api_of(Context& context) {
    const pgr_graph_api* api = context.plugin().graph_api();
    if (!api) throw Unsupported("the plugin does not offer pgr.graph");
    return *api;
  }
  std::vector<Buffer> make_buffers(size_t count, uint64_t seed) const {
    std::vector<Buffer> buffers;
    for (size_t i = 0; i < count; ++i)
      buffers.push_back(settled_ints(tables.device, random_ints(kElems, seed + i)));
    return buffers;
  }

  const Tables tables;
  const pgr_graph_api& api;
  std::unique_ptr<Kernel> kernel;
};

// The nodes of the steps and their arguments, which may be freed after the graph is built.
class Nodes {
 public:
  Nodes(const Fixture& f, const std::vector<Step>& steps, const std::vector<Buffer>& buffers)
      : steps_(steps) {
    for (const Step& step : steps_) {
      pgr_graph_node& node = nodes_.emplace_back();
      PGR_INIT(node, GRAPH_NODE);
      node.kind = step.is_copy ? PGR_GRAPH_COPY : PGR_GRAPH_LAUNCH;
      node.depends = step.depends.data();
      node.depends_count = static_cast<uint32_t>(step.depends.size());
      pgr_buffer *dst = buffers[step.dst].handle(), *src = buffers[step.src].handle();
      if (step.is_copy) {
        node.dst = dst;
        node.src = src;
        node.dst_offset_bytes = node.src_offset_bytes = step.offset * 4;
        node.size_bytes = step.count * 4;
        continue;
      }
      launches_.push_back(
          std::make_unique<Launch>(*f.kernel, std::vector{dst, src},
                                   std::vector{static_cast<uint64_t>(int64_t{step.scalar})},
                                   std::array<uint64_t, 3>{kElems, 1, 1}));
      node.kernel = f.kernel->handle();
      node.launch = &launches_.back()->desc;
    }
  }
  // Overwrites all arguments.
  void scribble() {
    for (const auto& launch : launches_) {
      std::fill(launch->buffers.begin(), launch->buffers.end(), nullptr);
      std::fill(launch->scalars.begin(), launch->scalars.end(), ~uint64_t{0});
      std::memset(&launch->desc, 0xff, sizeof launch->desc);
    }
    for (Step& step : steps_) std::fill(step.depends.begin(), step.depends.end(), ~0u);
    std::memset(nodes_.data(), 0xff, nodes_.size() * sizeof nodes_[0]);
  }
  std::vector<pgr_graph_node>& nodes() { return nodes_; }

 private:
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<Launch>> launches_;
  std::vector<pgr_graph_node> nodes_;
};

class Graph {
 public:
  Graph(const Fixture& f, const std::vector<Step>& steps, const std::vector<Buffer>& buffers)
      : f_(f) {
    Nodes nodes(f, steps, buffers);
    expect_ok_or_unsupported("graph.build", [&](pgr_error* error) {
      return f_.api.build(f_.tables.handle, nodes.nodes().data(),
                          static_cast<uint32_t>(nodes.nodes().size()), sizeof(pgr_graph_node),
                          &handle_, error);
    });
    nodes.scribble();
  }
  ~Graph() { f_.api.destroy(f_.tables.handle, handle_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  pgr_graph* handle() const { return handle_; }

  void replay(pgr_queue* queue = nullptr) const {
    expect_ok("graph.replay", [&](pgr_error* error) {
      return f_.api.replay(f_.tables.handle, queue, handle_, error);
    });
  }
  void patch_scalar(uint32_t node, int32_t value) const {
    expect_ok_or_unsupported("graph.patch_scalar", [&](pgr_error* error) {
      return f_.api.patch_scalar(f_.tables.handle, handle_, node, 0,
                                 static_cast<uint64_t>(int64_t{value}), error);
    });
  }
  void patch_buffer(uint32_t node, uint32_t slot, const Buffer& buffer) const {
    expect_ok_or_unsupported("graph.patch_buffer", [&](pgr_error* error) {
      return f_.api.patch_buffer(f_.tables.handle, handle_, node, slot, buffer.handle(), error);
    });
  }

 private:
  const Fixture& f_;
  pgr_graph* handle_ = nullptr;
};

// The expected effect of the steps on the buffers' values, computed on the host.
using BufferValues = std::vector<std::vector<int32_t>>;

BufferValues values_of(const std::vector<Buffer>& buffers) {
  BufferValues values;
  for (const Buffer& buffer : buffers) values.push_back(read_ints(buffer));
  return values;
}

void run_eagerly(const std::vector<Step>& steps, BufferValues& values) {
  for (const Step& step : steps) {
    if (step.is_copy)
      std::copy_n(values[step.src].begin() + static_cast<ptrdiff_t>(step.offset), step.count,
                  values[step.dst].begin() + static_cast<ptrdiff_t>(step.offset));
    else
      values[step.dst] = spread_result(values[step.src], step.scalar);
  }
}

void expect_values(const std::string& what, const std::vector<Buffer>& buffers,
                   const BufferValues& wanted) {
  for (size_t i = 0; i < buffers.size(); ++i)
    expect_ints(what + ", buffer " + std::to_string(i), read_ints(buffers[i]), wanted[i]);
}

class LinearCongruential {
 public:
  explicit LinearCongruential(uint64_t seed) : state_(seed * 2 + 1) {}
  size_t below(size_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state_ >> 33) % count);
  }

 private:
  uint64_t state_;
};

// A node depends on every earlier node with a common buffer, and occasionally on others.
std::vector<Step> random_steps(LinearCongruential& random, size_t buffer_count) {
  std::vector<Step> steps(3 + random.below(12));
  for (size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    step.is_copy = random.below(3) == 0;
    step.dst = random.below(buffer_count);
    do step.src = random.below(buffer_count);
    while (step.src == step.dst);
    step.scalar = static_cast<int32_t>(random.below(2000)) - 1000;
    step.offset = random.below(kElems);
    step.count = random.below(kElems - step.offset + 1);
    for (uint32_t k = 0; k < i; ++k) {
      const Step& other = steps[k];
      const bool meets = other.dst == step.dst || other.dst == step.src || other.src == step.dst;
      if (meets || random.below(8) == 0) step.depends.push_back(k);
    }
  }
  return steps;
}

void check_random(Context& context) {
  const Fixture f(context);
  LinearCongruential random(context.seed());
  for (int round = 0; round < 60; ++round) {
    const size_t count = 2 + random.below(5);
    const auto buffers = f.make_buffers(count, context.seed() + static_cast<uint64_t>(round));
    const auto steps = random_steps(random, count);
    BufferValues wanted = values_of(buffers);
    const Graph graph(f, steps, buffers);
    expect_values("a graph that was only built", buffers, wanted);
    for (int replay = 0; replay < 2; ++replay) {
      graph.replay();
      run_eagerly(steps, wanted);
      f.tables.device.synchronize();
      expect_values("random graph " + std::to_string(round) + ", replay " + std::to_string(replay),
                    buffers, wanted);
    }
  }
}

std::vector<Step> chain() {
  return {{false, 1, 0, 3, 0, 0, {}}, {true, 2, 1, 0, 4, 16, {0}}, {false, 0, 2, -5, 0, 0, {0, 1}}};
}

void check_replay_on_queue(Context& context) {
  const Fixture f(context);
  Queues queues(context);
  Queue queue(queues);
  const auto buffers = f.make_buffers(3, context.seed());
  BufferValues wanted = values_of(buffers);
  const Graph graph(f, chain(), buffers);
  const SlowKernel slow(f.tables.device);
  const uint64_t steps = slow.steps_for(15);
  for (int round = 0; round < 4; ++round) {
    queue.launch(slow.kernel(), {buffers[0].handle()}, {steps});  // the graph is ordered after it
    wanted[0][0] = slow_result(wanted[0][0], steps);
    graph.replay(queue.handle());
    run_eagerly(chain(), wanted);
  }
  queue.finish();
  expect_values("4 replays between launches on a queue", buffers, wanted);
}

void check_patch_scalar(Context& context) {
  const Fixture f(context);
  const auto buffers = f.make_buffers(3, context.seed());
  BufferValues wanted = values_of(buffers);
  auto steps = chain();
  const Graph graph(f, steps, buffers);
  for (int32_t scalar : {3, 100, -7, 0}) {
    steps[0].scalar = scalar;
    graph.patch_scalar(0, scalar);
    graph.replay();
    run_eagerly(steps, wanted);
    f.tables.device.synchronize();
    expect_values("a graph with scalar " + std::to_string(scalar), buffers, wanted);
  }
}

void check_patch_buffer(Context& context) {
  const Fixture f(context);
  const auto buffers = f.make_buffers(5, context.seed());
  BufferValues wanted = values_of(buffers);
  auto steps = chain();
  const Graph graph(f, steps, buffers);
  graph.patch_buffer(0, 1, buffers[3]);
  steps[0].src = 3;
  graph.patch_buffer(2, 0, buffers[4]);
  steps[2].dst = 4;
  for (int round = 0; round < 2; ++round) {
    graph.replay();
    run_eagerly(steps, wanted);
  }
  f.tables.device.synchronize();
  expect_values("a graph with other buffers", buffers, wanted);
}

void check_patch_copy(Context& context) {
  const Fixture f(context);
  const auto buffers = f.make_buffers(5, context.seed());
  BufferValues wanted = values_of(buffers);
  auto steps = chain();
  const Graph graph(f, steps, buffers);
  graph.patch_buffer(1, 0, buffers[4]);
  graph.patch_buffer(1, 1, buffers[3]);
  steps[1].dst = 4;
  steps[1].src = 3;
  graph.replay();
  run_eagerly(steps, wanted);
  f.tables.device.synchronize();
  expect_values("a graph with another copy", buffers, wanted);
}

// A patch after a replay does not change that replay.
void check_patch_behind_replay(Context& context) {
  const Fixture f(context);
  Queues queues(context);
  Queue queue(queues);
  const auto buffers = f.make_buffers(3, context.seed());
  BufferValues wanted = values_of(buffers);
  auto steps = chain();
  const Graph graph(f, steps, buffers);
  const SlowKernel slow(f.tables.device);
  Buffer other = settled_ints(f.tables.device, std::vector<int32_t>{0});
  queue.launch(slow.kernel(), {other.handle()}, {slow.steps_for(30)});
  for (int32_t scalar : {3, 8, 11}) {
    steps[0].scalar = scalar;
    graph.patch_scalar(0, scalar);
    graph.replay(queue.handle());
    run_eagerly(steps, wanted);
  }
  queue.finish();
  expect_values("3 queued replays, patched in between", buffers, wanted);
}

void check_two_graphs(Context& context) {
  const Fixture f(context);
  const auto buffers = f.make_buffers(3, context.seed());
  BufferValues wanted = values_of(buffers);
  auto steps = chain(), others = chain();
  others[0].scalar = 17;
  const auto first = std::make_unique<Graph>(f, steps, buffers);
  auto second = std::make_unique<Graph>(f, others, buffers);
  second->replay();
  run_eagerly(others, wanted);
  f.tables.device.synchronize();
  second.reset();
  first->replay();
  run_eagerly(steps, wanted);
  f.tables.device.synchronize();
  expect_values("two graphs of the same shape", buffers, wanted);
}

void check_empty_graph(Context& context) {
  const Fixture f(context);
  const Graph graph(f, {}, {});
  graph.replay();
  f.tables.device.synchronize();
}

void check_graph_refusals(Context& context) {
  const Fixture f(context);
  const auto buffers = f.make_buffers(3, context.seed());
  auto expect_bad = [&](const std::string& what, auto spoil) {
    const auto steps = chain();
    Nodes nodes(f, steps, buffers);
    std::vector<uint32_t> depends = {7};
    spoil(nodes.nodes(), depends);
    pgr_graph* graph = nullptr;
    expect_status("graph.build with " + what, PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
      return f.api.build(f.tables.handle, nodes.nodes().data(), 3, sizeof(pgr_graph_node), &graph,
                         error);
    });
    expect(graph == nullptr, "a failed graph.build touched *out");
  };
  {
    const Graph offered_at_all(f, chain(), buffers);
  }
  expect_bad("an unknown kind of node", [](auto& nodes, auto&) { nodes[1].kind = 99; });
  expect_bad("a NULL kernel", [](auto& nodes, auto&) { nodes[0].kernel = nullptr; });
  expect_bad("a copy to NULL", [](auto& nodes, auto&) { nodes[1].dst = nullptr; });
  expect_bad("a copy behind its buffer's end", [](auto& nodes, auto&) {
    nodes[1].size_bytes = kElems * 4;
    nodes[1].src_offset_bytes = 4;
  });
  expect_bad("a node that depends on a later one", [](auto& nodes, auto& depends) {
    nodes[1].depends = depends.data();
    nodes[1].depends_count = 1;
  });
  const Graph graph(f, chain(), buffers);
  auto bad_patch = [&](const std::string& what, uint32_t node, uint32_t slot) {
    expect_status("patch_scalar of " + what, PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
      return f.api.patch_scalar(f.tables.handle, graph.handle(), node, slot, 1, error);
    });
    expect_status("patch_buffer of " + what, PGR_STATUS_INVALID_ARGUMENT, [&](pgr_error* error) {
      return f.api.patch_buffer(f.tables.handle, graph.handle(), node, slot, buffers[0].handle(),
                                error);
    });
  };
  bad_patch("a node that is not there", 3, 0);
  bad_patch("a slot that is not there", 0, 2);
}

}  // namespace

void add_graph_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run) {
    add_test(tests, Level::L3, "l3.graph." + id, std::move(run)).claim = "pgr.graph";
  };
  add("random", check_random);
  add("replay.queue", check_replay_on_queue);
  add("patch.scalar", check_patch_scalar);
  add("patch.buffer", check_patch_buffer);
  add("patch.copy", check_patch_copy);
  add("patch.behind_replay", check_patch_behind_replay);
  add("two", check_two_graphs);
  add("empty", check_empty_graph);
  add("refusals", check_graph_refusals);
}

}  // namespace plugrad::conformance
