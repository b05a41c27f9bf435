// Stream, event, copy, module, launch and graph functions of the driver.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "double/state.h"

using namespace plugrad::cuda_double;

namespace {

char* pointer_at(CUdeviceptr at) {
  return reinterpret_cast<char*>(at);
}

// Device memory is checked when the work runs, as on a GPU.
CUresult submit(Stream* stream, std::function<void()> work, bool is_mark = false) {
  if (!State::get().is_live(stream, "stream")) return kInvalidHandle;
  stream->submit(std::move(work), is_mark);
  return kSuccess;
}

// Asynchronous copies of unpinned memory are synchronous on a GPU.
void expect_pinned(const void* at, size_t size) {
  State& state = State::get();
  {
    const std::lock_guard lock(state.mutex);
    auto found = state.pinned.upper_bound(static_cast<const char*>(at));
    if (found != state.pinned.begin()) {
      --found;
      if (static_cast<const char*>(at) + size <= found->first + found->second) return;
    }
  }
  state.violate("an asynchronous copy of host memory that is not pinned");
}

void fill_columns(char* to, size_t pitch, size_t step, const void* value, size_t height) {
  for (size_t row = 0; row < height; ++row) std::memcpy(to + row * pitch, value, step);
}

// Keeps the text for ptxas, which the tests call if it is installed.
void keep_ptx(const char* text) {
  static std::mutex mutex;
  const char* folder = std::getenv("PLUGRAD_CUDA_DOUBLE_PTX");
  if (!folder) return;
  const std::lock_guard lock(mutex);
  const size_t digest = std::hash<std::string_view>()(text);
  const std::string path = std::string(folder) + "/" + std::to_string(digest) + ".ptx";
  if (std::FILE* file = std::fopen(path.c_str(), "w")) {
    std::fputs(text, file);
    std::fclose(file);
  }
}

template <typename T>
T* make(const char* kind, T* made) {
  State::get().add(made, kind, [made] { delete made; });
  return made;
}

}  // namespace

DOUBLE_EXPORT CUresult cuStreamCreate(Stream** out, unsigned) {
  DOUBLE_ENTER(true);
  auto stream = std::make_shared<Stream>();
  *out = stream.get();
  State& state = State::get();
  state.add(*out, "stream", [handle = *out] { State::get().streams.erase(handle); });
  const std::lock_guard lock(state.mutex);
  state.streams[*out] = std::move(stream);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuStreamDestroy_v2(Stream* stream) {
  DOUBLE_ENTER(true);
  State& state = State::get();
  if (!state.remove(stream, "stream")) return kInvalidHandle;
  std::shared_ptr<Stream> last;
  const std::lock_guard lock(state.mutex);
  last.swap(state.streams[stream]);
  state.streams.erase(stream);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuStreamSynchronize(Stream* stream) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(stream, "stream")) return kInvalidHandle;
  stream->wait();
  return State::get().sticky;
}
DOUBLE_EXPORT CUresult cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(event, "event")) return kInvalidHandle;
  return submit(stream, [mark = event->mark] {
    if (mark) mark->wait();
  });
}

DOUBLE_EXPORT CUresult cuEventCreate(Event** out, unsigned) {
  DOUBLE_ENTER(true);
  *out = make("event", new Event);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuEventDestroy_v2(Event* event) {
  DOUBLE_ENTER(true);
  if (!State::get().remove(event, "event")) return kInvalidHandle;
  delete event;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuEventRecord(Event* event, Stream* stream) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(event, "event")) return kInvalidHandle;
  event->mark = std::make_shared<Mark>();
  return submit(stream, [mark = event->mark] { mark->reach(); }, true);
}
DOUBLE_EXPORT CUresult cuEventQuery(Event* event) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(event, "event")) return kInvalidHandle;
  if (event->mark && !event->mark->reached()) return kNotReady;
  return State::get().sticky;
}
DOUBLE_EXPORT CUresult cuEventSynchronize(Event* event) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(event, "event")) return kInvalidHandle;
  if (event->mark) event->mark->wait();
  return State::get().sticky;
}
DOUBLE_EXPORT CUresult cuEventElapsedTime(float* out, Event* begin, Event* end) {
  DOUBLE_ENTER(true);
  State& state = State::get();
  if (!state.is_live(begin, "event") || !state.is_live(end, "event")) return kInvalidHandle;
  if (!begin->mark || !end->mark) return kInvalidHandle;
  if (!begin->mark->reached() || !end->mark->reached()) return kNotReady;
  const auto ns = static_cast<int64_t>(end->mark->time_ns - begin->mark->time_ns);
  *out = static_cast<float>(static_cast<double>(ns) * 1e-6);
  return kSuccess;
}

DOUBLE_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size,
                                            Stream* stream) {
  DOUBLE_ENTER(true);
  expect_pinned(from, size);
  return submit(stream, [=] {
    linger();
    check_device_memory(pointer_at(to), size);
    std::memcpy(pointer_at(to), from, size);
  });
}
DOUBLE_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size,
                                            Stream* stream) {
  DOUBLE_ENTER(true);
  expect_pinned(to, size);
  return submit(stream, [=] {
    linger();
    check_device_memory(pointer_at(from), size);
    std::memcpy(to, pointer_at(from), size);
  });
}
DOUBLE_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size,
                                            Stream* stream) {
  DOUBLE_ENTER(true);
  return submit(stream, [=] {
    check_device_memory(pointer_at(to), size);
    check_device_memory(pointer_at(from), size);
    std::memcpy(pointer_at(to), pointer_at(from), size);
  });
}
DOUBLE_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                                       Stream* stream) {
  DOUBLE_ENTER(true);
  return submit(stream, [=] {
    check_device_memory(pointer_at(to), count);
    std::memset(pointer_at(to), value, count);
  });
}
DOUBLE_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                                        Stream* stream) {
  DOUBLE_ENTER(true);
  if (to % 4 != 0) return kInvalidValue;
  return submit(stream, [=] {
    check_device_memory(pointer_at(to), count * 4);
    fill_columns(pointer_at(to), 4, 4, &value, count);
  });
}
DOUBLE_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value,
                                         size_t width, size_t height, Stream* stream) {
  DOUBLE_ENTER(true);
  if (width != 1) return kInvalidValue;
  return submit(stream, [=] {
    check_device_memory(pointer_at(to), (height - 1) * pitch + 1);
    fill_columns(pointer_at(to), pitch, 1, &value, height);
  });
}

DOUBLE_EXPORT CUresult cuModuleLoadDataEx(Module** out, const void* image, unsigned count,
                                          int* keys, void** values) {
  DOUBLE_ENTER(true);
  const char* text = static_cast<const char*>(image);
  keep_ptx(text);
  try {
    auto module = std::make_unique<Module>();
    module->program = parse_ptx(text);
    *out = make("module", module.release());
    return kSuccess;
  } catch (const std::exception& error) {
    size_t room = 0;
    for (unsigned i = 0; i < count; ++i)
      if (keys[i] == 6) room = reinterpret_cast<size_t>(values[i]);
    for (unsigned i = 0; i < count; ++i)
      if (keys[i] == 5 && room)
        std::snprintf(static_cast<char*>(values[i]), room, "%s", error.what());
    return kInvalidPtx;
  }
}
DOUBLE_EXPORT CUresult cuModuleUnload(Module* module) {
  DOUBLE_ENTER(true);
  if (!State::get().remove(module, "module")) return kInvalidHandle;
  delete module;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuModuleGetFunction(const Kernel** out, Module* module, const char* name) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(module, "module")) return kInvalidHandle;
  const auto found = module->program.kernels.find(name);
  if (found == module->program.kernels.end()) return kNotFound;
  *out = &found->second;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuFuncGetAttribute(int* out, int which, const Kernel* kernel) {
  DOUBLE_ENTER(true);
  *out = which == 0   ? static_cast<int>(kernel->max_items)
         : which == 1 ? static_cast<int>(kernel->shared_size)
         : which == 3 ? static_cast<int>(kernel->local_size)
                      : 32;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuLaunchKernel(const Kernel* kernel, unsigned gx, unsigned gy, unsigned gz,
                                      unsigned bx, unsigned by, unsigned bz, unsigned,
                                      Stream* stream, void** params, void**) {
  DOUBLE_ENTER(true);
  auto work = make_launch(*kernel, {{gx, gy, gz}, {bx, by, bz}}, params);
  return work ? submit(stream, std::move(work)) : CUresult{kInvalidValue};
}

namespace {

struct KernelNodeParams {
  const Kernel* kernel;
  unsigned grid[3], block[3], shared_bytes;
  void **params, **extra;
};
struct CopyEnd {
  size_t x, y, z, lod;
  int type;
  const void* host;
  CUdeviceptr device;
  void *array, *context;
  size_t pitch, height;
};
struct CopyParams {
  CopyEnd from, to;
  size_t width, height, depth;
};

std::function<void()> work_of(const KernelNodeParams& node) {
  return make_launch(
      *node.kernel,
      {{node.grid[0], node.grid[1], node.grid[2]}, {node.block[0], node.block[1], node.block[2]}},
      node.params);
}
std::function<void()> work_of(const CopyParams& copy) {
  if (copy.from.type != 2 || copy.to.type != 2 || copy.height != 1 || copy.depth != 1)
    return nullptr;
  return [to = copy.to.device, from = copy.from.device, size = copy.width] {
    check_device_memory(pointer_at(to), size);
    check_device_memory(pointer_at(from), size);
    std::memcpy(pointer_at(to), pointer_at(from), size);
  };
}

CUresult add_node(GraphNode** out, Graph* graph, GraphNode* const* after, size_t count,
                  GraphNode made) {
  if (!State::get().is_live(graph, "graph")) return kInvalidHandle;
  if (!made.work) return kInvalidValue;
  made.after.assign(after, after + count);
  graph->nodes.push_back(std::make_unique<GraphNode>(std::move(made)));
  *out = graph->nodes.back().get();
  return kSuccess;
}

// In an order that satisfies the dependencies but differs from the order of insertion.
void run_graph(const std::vector<GraphNode>& nodes,
               const std::map<const GraphNode*, size_t>& index) {
  std::vector<bool> is_done(nodes.size());
  for (size_t left = nodes.size(); left > 0; --left)
    for (size_t i = nodes.size(); i-- > 0;) {
      const auto is_ready = [&](const GraphNode* node) { return is_done[index.at(node)]; };
      if (is_done[i] || !std::all_of(nodes[i].after.begin(), nodes[i].after.end(), is_ready))
        continue;
      nodes[i].work();
      is_done[i] = true;
      break;
    }
}

}  // namespace

DOUBLE_EXPORT CUresult cuGraphCreate(Graph** out, unsigned) {
  DOUBLE_ENTER(true);
  *out = make("graph", new Graph);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuGraphDestroy(Graph* graph) {
  DOUBLE_ENTER(true);
  if (!State::get().remove(graph, "graph")) return kInvalidHandle;
  delete graph;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuGraphAddKernelNode(GraphNode** out, Graph* graph, GraphNode* const* after,
                                            size_t count, const KernelNodeParams* params) {
  DOUBLE_ENTER(true);
  return add_node(out, graph, after, count, {work_of(*params), {}, true, false});
}
DOUBLE_EXPORT CUresult cuGraphAddMemcpyNode(GraphNode** out, Graph* graph, GraphNode* const* after,
                                            size_t count, const CopyParams* params, void*) {
  DOUBLE_ENTER(true);
  return add_node(out, graph, after, count, {work_of(*params), {}, false, true});
}
DOUBLE_EXPORT CUresult cuGraphAddEmptyNode(GraphNode** out, Graph* graph, GraphNode* const* after,
                                           size_t count) {
  DOUBLE_ENTER(true);
  return add_node(out, graph, after, count, {[] {}, {}, false, false});
}
DOUBLE_EXPORT CUresult cuGraphInstantiateWithFlags(GraphExec** out, Graph* graph,
                                                   unsigned long long) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(graph, "graph")) return kInvalidHandle;
  auto exec = std::make_unique<GraphExec>();
  for (const auto& node : graph->nodes) {
    exec->index[node.get()] = exec->nodes.size();
    exec->nodes.push_back(*node);
  }
  *out = make("graph exec", exec.release());
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuGraphExecKernelNodeSetParams(GraphExec* exec, GraphNode* node,
                                                      const KernelNodeParams* params) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(exec, "graph exec")) return kInvalidHandle;
  const auto found = exec->index.find(node);
  auto work = work_of(*params);
  if (found == exec->index.end() || !exec->nodes[found->second].is_kernel || !work)
    return kInvalidValue;
  exec->nodes[found->second].work = std::move(work);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(GraphExec* exec, GraphNode* node,
                                                      const CopyParams* params, void*) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(exec, "graph exec")) return kInvalidHandle;
  const auto found = exec->index.find(node);
  auto work = work_of(*params);
  if (found == exec->index.end() || !exec->nodes[found->second].is_copy || !work)
    return kInvalidValue;
  exec->nodes[found->second].work = std::move(work);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuGraphLaunch(GraphExec* exec, Stream* stream) {
  DOUBLE_ENTER(true);
  if (!State::get().is_live(exec, "graph exec")) return kInvalidHandle;
  return submit(stream, [nodes = exec->nodes, index = exec->index] { run_graph(nodes, index); });
}
DOUBLE_EXPORT CUresult cuGraphExecDestroy(GraphExec* exec) {
  DOUBLE_ENTER(true);
  if (!State::get().remove(exec, "graph exec")) return kInvalidHandle;
  delete exec;
  return kSuccess;
}
