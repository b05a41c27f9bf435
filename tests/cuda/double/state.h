// State of the double: one GPU with host memory and threads as streams. All handles are recorded,
// so that foreign, freed and leaked ones are detected.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "double/ptx.h"

// cuda.h is unavailable: declares the few types as users of the driver do.
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;

namespace plugrad::cuda_double {

enum : CUresult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
};

constexpr uint64_t kMemoryBytes = uint64_t{3} << 30;
constexpr uint32_t kMaxGrid[3] = {2147483647, 65535, 65535};
constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
constexpr uint32_t kMaxItems = 1024;

uint64_t now_ns();

// A marker in a stream; waiters keep it when its event is recorded again.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_reached = false;
  uint64_t time_ns = 0;
  void reach();
  void wait();
  bool reached();
};

struct Event {
  std::shared_ptr<Mark> mark;  // nullptr: never recorded
};

// Work in order on its own thread.
class Stream {
 public:
  Stream();
  ~Stream();  // waits
  // A marker is reached even after earlier failures.
  void submit(std::function<void()> work, bool is_mark = false);
  void wait();

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  struct Work {
    std::function<void()> run;
    bool is_mark;
  };
  std::deque<Work> pending_;  // the front one is running
  bool is_ending_ = false;
  std::thread thread_;
};

struct Module {
  Program program;
};

struct GraphNode {
  std::function<void()> work;
  std::vector<GraphNode*> after;
  bool is_kernel = false, is_copy = false;
};
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
};
struct GraphExec {
  std::vector<GraphNode> nodes;  // `after` points into the graph: see `index`
  std::map<const GraphNode*, size_t> index;
};

// All objects that can leak, by the name of their kind.
class State {
 public:
  static State& get();

  std::mutex mutex;
  bool is_initialized = false;
  int context_users = 0;
  std::map<const char*, uint64_t> memory, pinned;  // begin and size of live allocations
  uint64_t used_bytes = 0;
  struct Handle {
    std::string kind;
    std::function<void()> end;  // destroys it with its context
  };
  std::map<void*, Handle> handles;                     // live ones
  std::map<Stream*, std::shared_ptr<Stream>> streams;  // shared with waiters

  // Faults to inject: in the nth next call of a function, or the next work of a stream.
  struct Injected {
    int calls_before = 0;
    CUresult result = kSuccess;
  };
  std::map<std::string, Injected> injected;
  CUresult next_work_fails = kSuccess;
  CUresult sticky = kSuccess;
  std::string violations;

  void violate(const std::string& what);
  // Called first by each function: returns the injected failure or the context's.
  CUresult enter(const char* function, bool needs_context);
  bool is_live(void* handle, const char* kind);
  void add(void* handle, const char* kind, std::function<void()> end);
  // Returns false and records a violation for a foreign handle.
  bool remove(void* handle, const char* kind);
  void set_sticky(CUresult result, const std::string& why);
  void wait_for_all();
};

// Of the calling thread.
std::vector<void*>& context_stack();

// Delays a copy, so that a missing wait reads old bytes.
void linger();
// Runs work on a stream; a fault breaks the context.
void run_work(const std::function<void()>& work, bool is_mark);
// Throws Fault unless the bytes are in live device memory.
void check_device_memory(const void* at, uint64_t size);
// nullptr if the arguments do not match the kernel.
std::function<void()> make_launch(const Kernel& kernel, const Grid& grid, void** params);

}  // namespace plugrad::cuda_double

// Start of a driver function: returns if the call fails before it begins.
#define DOUBLE_ENTER(needs_context)                                                              \
  do {                                                                                           \
    const CUresult entered_ = plugrad::cuda_double::State::get().enter(__func__, needs_context); \
    if (entered_ != plugrad::cuda_double::kSuccess) return entered_;                             \
  } while (0)
#define DOUBLE_EXPORT extern "C" __attribute__((visibility("default")))
