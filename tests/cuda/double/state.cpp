#include "double/state.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace plugrad::cuda_double {

uint64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void Mark::reach() {
  {
    const std::lock_guard lock(mutex);
    time_ns = now_ns();
    is_reached = true;
  }
  changed.notify_all();
}
void Mark::wait() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_reached; });
}
bool Mark::reached() {
  const std::lock_guard lock(mutex);
  return is_reached;
}

Stream::Stream() : thread_([this] { run(); }) {}
Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}
void Stream::submit(std::function<void()> work, bool is_mark) {
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back({std::move(work), is_mark});
  }
  changed_.notify_all();
}
void Stream::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return pending_.empty(); });
}
void Stream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_ending_ || !pending_.empty(); });
    if (pending_.empty()) return;
    lock.unlock();
    run_work(pending_.front().run, pending_.front().is_mark);
    lock.lock();
    pending_.pop_front();
    if (pending_.empty()) changed_.notify_all();
  }
}

State& State::get() {
  static State* state = new State;  // leaked: streams may outlive the process's destructors
  return *state;
}

void State::violate(const std::string& what) {
  const std::lock_guard lock(mutex);
  violations += what + "\n";
  if (const char* path = std::getenv("PLUGRAD_CUDA_DOUBLE_LOG"))
    if (std::FILE* file = std::fopen(path, "a")) {
      std::fprintf(file, "%s\n", what.c_str());
      std::fclose(file);
    }
}

CUresult State::enter(const char* function, bool needs_context) {
  {
    const std::lock_guard lock(mutex);
    const auto found = injected.find(function);
    if (found != injected.end() && found->second.calls_before-- == 0) {
      const CUresult result = found->second.result;
      injected.erase(found);
      return result;
    }
    if (sticky != kSuccess) return sticky;
    if (!is_initialized) return kNotInitialized;
  }
  if (!needs_context || !context_stack().empty()) return kSuccess;
  violate(std::string(function) + " without a current context");
  return kInvalidContext;
}

bool State::is_live(void* handle, const char* kind) {
  {
    const std::lock_guard lock(mutex);
    const auto found = handles.find(handle);
    if (found != handles.end() && found->second.kind == kind) return true;
  }
  violate(std::string("a handle that is no live ") + kind);
  return false;
}

void State::add(void* handle, const char* kind, std::function<void()> end) {
  const std::lock_guard lock(mutex);
  handles[handle] = {kind, std::move(end)};
}

bool State::remove(void* handle, const char* kind) {
  if (!is_live(handle, kind)) return false;
  const std::lock_guard lock(mutex);
  handles.erase(handle);
  return true;
}

void State::set_sticky(CUresult result, const std::string& why) {
  const std::lock_guard lock(mutex);
  if (sticky == kSuccess) sticky = result;
  if (std::getenv("PLUGRAD_CUDA_DOUBLE_VERBOSE")) std::fprintf(stderr, "double: %s\n", why.c_str());
}

void State::wait_for_all() {
  std::vector<std::shared_ptr<Stream>> all;
  {
    const std::lock_guard lock(mutex);
    for (const auto& [handle, stream] : streams) all.push_back(stream);
  }
  for (const auto& stream : all) stream->wait();
}

std::vector<void*>& context_stack() {
  thread_local std::vector<void*> stack;
  return stack;
}

void linger() {
  ::usleep(20);
}

void run_work(const std::function<void()>& work, bool is_mark) {
  State& state = State::get();
  if (is_mark) return work();
  CUresult injected = kSuccess;
  {
    const std::lock_guard lock(state.mutex);
    std::swap(injected, state.next_work_fails);
  }
  if (injected != kSuccess) return state.set_sticky(injected, "injected");
  try {
    work();
  } catch (const Fault& fault) {
    state.set_sticky(fault.code, fault.what);
  }
}

void check_device_memory(const void* at, uint64_t size) {
  thread_local const char* last_begin = nullptr;
  thread_local uint64_t last_size = 0;
  const char* begin = static_cast<const char*>(at);
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  const auto is_in = [&](const char* from, uint64_t bytes) {
    return begin >= from && begin + size <= from + bytes;
  };
  if (last_begin && is_in(last_begin, last_size) && state.memory.contains(last_begin)) return;
  auto found = state.memory.upper_bound(begin);
  if (found == state.memory.begin()) throw Fault{kIllegalAddress, "no memory of the device"};
  --found;
  if (!is_in(found->first, found->second))
    throw Fault{kIllegalAddress, "outside of the device's memory"};
  last_begin = found->first;
  last_size = found->second;
}

std::function<void()> make_launch(const Kernel& kernel, const Grid& grid, void** params) {
  uint64_t items = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (grid.groups[axis] == 0 || grid.groups[axis] > kMaxGrid[axis] || grid.items[axis] == 0 ||
        grid.items[axis] > kMaxBlock[axis])
      return nullptr;
    items *= grid.items[axis];
  }
  if (items > kMaxItems || items > kernel.max_items) return nullptr;
  std::vector<char> block(kernel.params_size + 8);
  for (size_t i = 0; i < kernel.param_bytes.size(); ++i)
    std::memcpy(block.data() + kernel.param_offsets[i], params[i], kernel.param_bytes[i]);
  return [kernel = &kernel, grid, block] { run_kernel(*kernel, grid, block, check_device_memory); };
}

}  // namespace plugrad::cuda_double
