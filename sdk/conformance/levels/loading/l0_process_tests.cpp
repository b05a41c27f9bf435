// L0: effects of the plugin on its process: leaks, changed settings, and process exit.
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <clocale>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "conformance/levels/heap_slack.h"
#include "conformance/levels/kernels.h"
#include "conformance/levels/loading/interposed.h"
#include "conformance/levels/loading/l0_families.h"
#include "conformance/plugin/host.h"

namespace plugrad::conformance {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Plugin> open_plugin(const FreshTarget& target) {
  return Plugin::open(target.plugin_path, target.device_index, target.device_options,
                      target.plugin_options);
}

// Stays open until the process exits.
Plugin& open_for_ever(const FreshTarget& target) {
  static Plugin* const plugin = open_plugin(target).release();
  return *plugin;
}

// Exercises all functions of a device, including errors.
void use_device(Device& device) {
  Tables t(device);
  const auto in = random_ints(100, 1);
  const auto kernel = device.compile(spread_kernel(100));
  Buffer source = make_ints(device, in), out = device.allocate(400);
  device.launch(*kernel, {{out.handle(), source.handle()}, {5}, {100, 1, 1}, {1, 1, 1}});
  device.synchronize();
  expect_ints("out", read_ints(out), spread_result(in, 5));
  t.memory.copy_in(t.handle, nullptr, out.handle(), 399, in.data(), 4, nullptr);
  pgr_program* program = nullptr;
  t.runner.load(t.handle, "garbage", 7, &program, nullptr);
  if (const auto* compiler = device.plugin().compiler_api()) {
    pgr_compile_desc desc;
    PGR_INIT(desc, COMPILE_DESC);
    desc.input = "this ] is no [ source";
    desc.input_bytes = 21;
    Blob binary, log;
    compiler->compile(t.handle, &desc, binary.get(), log.get(), nullptr);
  }
}

size_t count_entries(const char* directory) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

// Resources held by a process.
struct Footprint {
  uint64_t heap_bytes, resident_bytes, mapped_bytes, host_blocks;
  size_t files, threads;
};

Footprint measure(const Plugin& plugin) {
  const struct mallinfo2 heap = ::mallinfo2();
  uint64_t mapped_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> mapped_pages >> resident_pages;
  const uint64_t page = static_cast<uint64_t>(::getpagesize());
  return {heap.uordblks + heap.hblkhd,
          resident_pages * page,
          mapped_pages * page,
          Host::of(plugin.path()).live_allocations(),
          count_entries("/proc/self/fd"),
          count_entries("/proc/self/task")};
}

// The kernel lists a joined thread for a short time.
Footprint measure_after(const Plugin& plugin, const Footprint& before) {
  Footprint after = measure(plugin);
  for (int i = 0; i < 1000 && after.threads > before.threads; ++i) {
    ::usleep(1000);
    after = measure(plugin);
  }
  return after;
}

void expect_same(const Footprint& before, const Footprint& after, const std::string& what,
                 uint64_t rounds) {
  auto grew = [&](uint64_t then, uint64_t now, uint64_t slack, const char* thing) {
    expect(now <= then + slack, what + " left " + std::to_string(now - then) + " " + thing);
  };
  grew(before.files, after.files, 0, "open files (descriptors) behind");
  grew(before.threads, after.threads, 0, "threads behind");
  grew(before.host_blocks, after.host_blocks, 0, "blocks of host.alloc behind");
  // Memory that the allocator keeps for finished threads does not grow with their number.
  grew(before.heap_bytes, after.heap_bytes, rounds * heap_slack_a_round() + 4096,
       "bytes of the heap behind");
  grew(before.resident_bytes, after.resident_bytes, 4u << 20, "bytes of resident memory behind");
  grew(before.mapped_bytes, after.mapped_bytes, 64u << 20, "bytes of address space behind");
}

// True if the address lies in the plugin's own library.
bool is_in_library(const void* address, const std::string& path) {
  Dl_info info{};
  std::error_code error;
  return address && ::dladdr(address, &info) && info.dli_fname &&
         fs::equivalent(info.dli_fname, path, error);
}

std::vector<InterposedCall> interposed_calls() {
  std::vector<InterposedCall> calls(4096);
  calls.resize(std::min(calls.size(), plugrad_interposed_calls(calls.data(), calls.size())));
  return calls;
}

// Whether one of the functions was called by the plugin's library, by another one, or both.
struct Callers {
  bool plugin = false, driver = false;
};
Callers callers_of(std::initializer_list<std::string_view> functions, const std::string& path) {
  Callers callers;
  if (!plugrad_interposed_calls) return callers;
  for (const InterposedCall& call : interposed_calls())
    if (std::find(functions.begin(), functions.end(), call.function) != functions.end())
      (is_in_library(call.caller, path) ? callers.plugin : callers.driver) = true;
  return callers;
}

void process_open_close(const FreshTarget& target) {
  Plugin& plugin = open_for_ever(target);
  for (int i = 0; i < 20; ++i) plugin.open_device();
  const Footprint before = measure(plugin);
  constexpr int kTimes = 1000;
  for (int i = 0; i < kTimes; ++i) plugin.open_device();
  expect_same(before, measure_after(plugin, before), "opening and closing a device 1,000 times",
              kTimes);
}

void process_open_use_close(const FreshTarget& target) {
  Plugin& plugin = open_for_ever(target);
  auto once = [&] {
    const auto device = plugin.open_device();
    Buffer buffer = device->allocate(1000);
    buffer.write(patterned(1000, 1));
    const auto* queues = plugin.queue_api();
    pgr_queue* queue = nullptr;
    if (queues && queues->create(device->handle(), &queue, nullptr) == PGR_STATUS_OK)
      queues->destroy(device->handle(), queue);
  };
  for (int i = 0; i < 20; ++i) once();
  const Footprint before = measure(plugin);
  constexpr int kTimes = 1000;
  for (int i = 0; i < kTimes; ++i) once();
  expect_same(before, measure_after(plugin, before),
              "opening, using and closing a device 1,000 times", kTimes);
}

void process_enumerate(const FreshTarget& target) {
  const size_t threads = count_entries("/proc/self/task");
  Plugin& plugin = open_for_ever(target);
  const pgr_plugin_api& api = plugin.api();
  uint32_t count = 0;
  api.device_count(api.plugin, &count, nullptr);
  // A driver may start threads when its devices are enumerated.
  const Callers starters = callers_of({"pthread_create"}, plugin.path());
  expect(count_entries("/proc/self/task") == threads || (starters.driver && !starters.plugin),
         "the plugin starts threads before a device is opened");
  const Footprint before = measure(plugin);
  for (int i = 0; i < 1000; ++i) api.device_count(api.plugin, &count, nullptr);
  expect_same(before, measure_after(plugin, before), "counting devices 1,000 times", 1000);
}

// Exits without closing anything.
void process_exit_open(const FreshTarget& target) {
  Plugin& plugin = open_for_ever(target);
  Device& device = plugin.shared_device();
  use_device(device);
  // Static, so that leak checkers find them at exit.
  static const Kernel* const kernel = device.compile(spread_kernel(10)).release();
  static const Buffer* const buffer = new Buffer(device.allocate(1 << 20));
  static pgr_queue* queue = nullptr;
  if (const auto* queues = plugin.queue_api()) queues->create(device.handle(), &queue, nullptr);
  expect(kernel && buffer, "the device works no more");
}

void process_exit_closed(const FreshTarget& target) {
  const auto plugin = open_plugin(target);
  {
    const auto device = plugin->open_device();
    use_device(*device);
  }
  const pgr_plugin_api& api = plugin->api();
  if (offered(api.shutdown)) api.shutdown(api.plugin);
}

// The child of a fork exits without using the device.
void process_fork(const FreshTarget& target) {
  Plugin& plugin = open_for_ever(target);
  Device& device = plugin.shared_device();
  use_device(device);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = 0;
  for (int i = 0; i < 1000; ++i) {
    if (::waitpid(child, &status, WNOHANG) == child) break;
    ::usleep(10'000);
    if (i == 999) {
      ::kill(child, SIGKILL);
      throw Failed("the child of a fork that never used the device did not end within 10 s");
    }
  }
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0,
         WIFSIGNALED(status)
             ? std::string("the child of a fork died with SIG") + ::sigabbrev_np(WTERMSIG(status))
             : "the child of a fork ended with exit code " + std::to_string(WEXITSTATUS(status)));
  use_device(device);
}

// What the plugin's driver prints is not the plugin's.
void process_silence(const FreshTarget& target) {
  if (plugrad_mute_drivers) plugrad_mute_drivers(target.plugin_path.c_str());
  process_exit_closed(target);
}

void process_signals(const FreshTarget& target) {
  struct sigaction before[65], after;
  for (int signal = 1; signal < 65; ++signal) ::sigaction(signal, nullptr, &before[signal]);
  const auto plugin = open_plugin(target);
  use_device(plugin->shared_device());
  for (int signal = 1; signal < 65; ++signal) {
    if (::sigaction(signal, nullptr, &after) != 0) continue;
    const void* handler = reinterpret_cast<const void*>(after.sa_handler);
    if (after.sa_handler == before[signal].sa_handler) continue;
    // A driver library may set handlers; no other code here ignores signals.
    const bool is_own = is_in_library(handler, plugin->path()) || after.sa_handler == SIG_IGN ||
                        after.sa_handler == SIG_DFL;
    expect(!is_own, std::string("the plugin changed the handling of SIG") +
                        (::sigabbrev_np(signal) ? ::sigabbrev_np(signal) : "?"));
  }
}

bool keeps_denormals() {
  volatile float tiny = 1.17549435e-38f;
  return tiny / 2 > 0;
}

// fegetround reports only one of the two floating-point units of x86.
bool rounds_to_nearest() {
  volatile double one = 1, small = 0x1p-60;
  return one + small == 1 && -one - small == -1 && one - small == 1;
}

void process_arithmetic(const FreshTarget& target) {
  std::fesetround(FE_TONEAREST);
  const bool kept = keeps_denormals();
  const auto plugin = open_plugin(target);
  use_device(plugin->shared_device());
  expect(std::fegetround() == FE_TONEAREST && rounds_to_nearest(),
         "the plugin changed the rounding mode");
  expect(keeps_denormals() == kept, "the plugin changed whether the host keeps denormals");
  expect(::fegetexcept() == 0, "the plugin made floating-point exceptions trap");
}

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** at = environ; *at; ++at) all.push_back(*at);
  return all;
}

void process_surroundings(const FreshTarget& target) {
  const std::string locale = std::setlocale(LC_ALL, nullptr), directory = fs::current_path();
  const std::vector<std::string> variables = environment();
  const mode_t mask = ::umask(022);
  ::umask(mask);
  const auto plugin = open_plugin(target);
  use_device(plugin->shared_device());
  expect(std::setlocale(LC_ALL, nullptr) == locale, "the plugin changed the locale");
  expect(fs::current_path() == directory, "the plugin changed the working directory");
  const Callers setters = callers_of({"setenv", "unsetenv", "putenv"}, plugin->path());
  expect(environment() == variables || (setters.driver && !setters.plugin),
         "the plugin changed the environment");
  const mode_t mask_after = ::umask(mask);
  expect(mask_after == mask, "the plugin changed the umask");
}

// Calls made by the plugin's own code; those of its driver libraries are excluded.
void process_forbidden_calls(const FreshTarget& target) {
  if (!plugrad_interposed_calls)
    throw Unsupported("this program does not watch the calls that plugins make");
  const auto plugin = open_plugin(target);
  use_device(plugin->shared_device());
  // Resolved by the dynamic linker as for a plugin: verifies that interposition works.
  using Getenv = char* (*)(const char*);
  reinterpret_cast<Getenv>(::dlsym(RTLD_DEFAULT, "getenv"))("PLUGRAD_WATCH");
  const std::vector<InterposedCall> calls = interposed_calls();
  expect(
      std::any_of(calls.begin(), calls.end(),
                  [](const auto& call) { return call.argument == std::string("PLUGRAD_WATCH"); }),
      "the watch on calls does not see the suite's own");
  for (const InterposedCall& call : calls)  // of an open device, a plugin may start threads
    expect(call.function == std::string_view("pthread_create") ||
               !is_in_library(call.caller, plugin->path()),
           std::string("the plugin called ") + call.function + "(\"" + call.argument + "\")");
}

constexpr FreshCheck kProcessChecks[] = {{"process.open_close", process_open_close},
                                         {"process.open_use_close", process_open_use_close},
                                         {"process.enumerate", process_enumerate},
                                         {"process.exit_open", process_exit_open},
                                         {"process.exit_closed", process_exit_closed},
                                         {"process.fork", process_fork},
                                         {"process.silence", process_silence},
                                         {"process.signals", process_signals},
                                         {"process.arithmetic", process_arithmetic},
                                         {"process.surroundings", process_surroundings},
                                         {"process.forbidden_calls", process_forbidden_calls}};

void check_silence(Context& context) {
  const std::string printed = run_fresh(context, "process.silence");
  const bool is_plugin = printed.starts_with(plugrad_plugin_mark);
  expect(printed.empty(),
         (is_plugin ? "the plugin printed: "
                    : "the plugin, or a library or process that it starts and that the suite "
                      "cannot name, printed: ") +
             printed.substr(is_plugin ? std::strlen(plugrad_plugin_mark) : 0, 500));
}

}  // namespace

std::span<const FreshCheck> process_checks() {
  return kProcessChecks;
}

void add_process_tests(Tests& tests) {
  for (const FreshCheck& check : kProcessChecks) {
    const std::string name(check.name);
    if (name == "process.silence")
      add_test(tests, Level::L0, "l0.process.silence", check_silence);
    else
      add_test(tests, Level::L0, "l0." + name,
               [name](Context& context) { run_fresh(context, name); });
  }
}

}  // namespace plugrad::conformance
