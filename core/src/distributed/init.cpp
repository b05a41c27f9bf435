// The public functions: the one communicator of the process.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/settings.h"
#include "distributed/communicator.h"
#include "distributed/launch/adapter_library.h"
#include "plugrad/distributed.h"
#include "runtime/device/host_api.h"

namespace plugrad::distributed {
namespace {

struct Process {
  std::mutex mutex;
  Communicator* communicator = nullptr;  // never destroyed: threads may use it until the end
  int process = 0;                       // that called init()
  std::thread::id thread;                // of it that called init()
  std::atomic<Communicator*> usable{nullptr};
};

Process& process() {
  static auto* const one = new Process;
  return *one;
}

std::uint64_t hash_of_file(const std::string& path) {
  return hash64(MappedFile(path, "distributed::init").bytes());
}

// Equal in every rank. Folders may differ between machines.
std::string program_text() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return fmt::format("{} ({:016x}) with plugrad {} ({:016x})", program.filename().string(),
                     hash_of_file("/proc/self/exe"), PLUGRAD_VERSION,
                     hash_of_file(runtime::own_file()));
}

Beginning beginning_of(const Launch& launch) {
  constexpr double kLeastSeconds = 30;  // to start MPI on a busy machine
  const double seconds = std::max(settings().collective_seconds, kLeastSeconds);
  return {
      .size = launch.size,
      .program = program_text(),
      .wrong_size = launch.launcher +
                    " started this program, but {} counts {} in it: the launcher is "
                    "of another MPI; start the program by that MPI's mpirun, or let PLUGRAD_MPI "
                    "name the launcher's: mpich, openmpi, abi, or the path of an MPI library",
      .limit_ns = static_cast<std::uint64_t>(seconds * 1e9)};
}

Communicator& usable(const char* function) {
  Communicator* communicator = process().usable.load(std::memory_order_acquire);
  require(communicator != nullptr,
          "[distributed::{}] call plugrad::distributed::init() first, once, at the program's start",
          function);
  return *communicator;
}

}  // namespace

void init() {
  Process& p = process();
  std::lock_guard lock(p.mutex);
  require(p.process == 0 || p.process == ::getpid(),
          "[distributed::init] this process was forked from one that had called init(), and has no "
          "connection to the other ranks; fork first, or start the programs of all ranks by the "
          "launcher");
  require(p.communicator == nullptr,
          "[distributed::init] it was already called in this process; call it once, at the "
          "program's start");
  const Launch launch = detect_launch(environment_variable);
  const bool is_alone = launch.launcher.empty() || launch.size == 1;
  Transport transport = is_alone ? Transport() : Transport(open_adapter(launch, settings().mpi));
  p.communicator = new Communicator(std::move(transport), beginning_of(launch));
  p.process = ::getpid();
  p.thread = std::this_thread::get_id();
  // After MPI was opened, so that it runs before what MPI's libraries do at the end.
  const auto register_end = [] { std::atexit([] { process().communicator->end(); }); };
  try {
    p.communicator->begin();
  } catch (...) {
    register_end();
    throw;
  }
  register_end();
  p.usable.store(p.communicator, std::memory_order_release);
}

bool is_initialized() {
  return process().usable.load(std::memory_order_acquire) != nullptr;
}

int rank() {
  return static_cast<int>(usable("rank").rank());
}

int size() {
  return static_cast<int>(usable("size").size());
}

void barrier() {
  Communicator& communicator = usable("barrier");
  std::vector<std::uint32_t> ranks(communicator.size());
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
  communicator.run({.kind = Kind::AllReduce,
                    .dtype = DType::U8,
                    .counts = {0},
                    .group = std::move(ranks),
                    .tensor = "distributed::barrier"});
}

Backend* backend() {
  return process().usable.load(std::memory_order_acquire);
}

bool is_thread_of_init() {
  return backend() != nullptr && process().thread == std::this_thread::get_id();
}

}  // namespace plugrad::distributed
