// The state of the double: one GPU whose memory is the host's and whose streams are threads. It
// keeps every handle that it gave out, so that a foreign, freed or leaked one is noticed.
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

// cuda.h is not there: the few types, as the driver's users declare them.
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

// A mark in a stream; waiters keep it when its event is recorded anew.
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

// Work in order on a thread of its own.
class Stream {
 public:
  Stream();
  ~Stream();  // waits
  // A mark is reached whatever failed before it.
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
  std::deque<Work> pending_;  // the front one runs
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

// Everything that can be leaked, by the kind's name.
class State {
 public:
  static State& get();

  std::mutex mutex;
  bool is_initialized = false;
  int context_users = 0;
  std::map<const char*, uint64_t> memory, pinned;  // begin and size of live ones
  uint64_t used_bytes = 0;
  struct Handle {
    std::string kind;
    std::function<void()> end;  // with its context
  };
  std::map<void*, Handle> handles;                     // live ones
  std::map<Stream*, std::shared_ptr<Stream>> streams;  // kept by who waits

  // Faults to inject: the nth next call of a function, or the next work of a stream.
  struct Injected {
    int calls_before = 0;
    CUresult result = kSuccess;
  };
  std::map<std::string, Injected> injected;
  CUresult next_work_fails = kSuccess;
  CUresult sticky = kSuccess;
  std::string violations;

  void violate(const std::string& what);
  // Before a call does its work: the injected failure, or the one that the context is in.
  CUresult enter(const char* function, bool needs_context);
  bool is_live(void* handle, const char* kind);
  void add(void* handle, const char* kind, std::function<void()> end);
  // False, and a violation, where it is none of ours.
  bool remove(void* handle, const char* kind);
  void set_sticky(CUresult result, const std::string& why);
  void wait_for_all();
};

// Of the calling thread.
std::vector<void*>& context_stack();

// A copy takes a little while, so that who does not wait for it sees old bytes.
void linger();
// On a stream: what a fault of it does to the context.
void run_work(const std::function<void()>& work, bool is_mark);
// Throws Fault unless the bytes lie in live memory of the device.
void check_device_memory(const void* at, uint64_t size);
// nullptr where the launch is not one the kernel takes.
std::function<void()> make_launch(const Kernel& kernel, const Grid& grid, void** params);

}  // namespace plugrad::cuda_double

// The start of a driver's function: answers where the call fails before it begins.
#define DOUBLE_ENTER(needs_context)                                                              \
  do {                                                                                           \
    const CUresult entered_ = plugrad::cuda_double::State::get().enter(__func__, needs_context); \
    if (entered_ != plugrad::cuda_double::kSuccess) return entered_;                             \
  } while (0)
#define DOUBLE_EXPORT extern "C" __attribute__((visibility("default")))
