#include "tuning/helper/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "runtime/registry.h"
#include "tuning/helper/contents.h"
#include "tuning/helper/messages.h"
#include "tuning/ir_params.h"

namespace plugrad::tuning {
namespace {

constexpr uint64_t kSampleNs = 1'000'000;  // short kernels are launched several times for a sample
constexpr uint32_t kMostLaunches = 64;     // in a sample

// A kernel being timed.
struct Entrant {
  KernelSpec spec;
  std::shared_ptr<runtime::Kernel> kernel;  // null if refused
  std::vector<double> samples;              // seconds of one launch
  bool is_out = false;

  double least() const { return samples.empty() ? kInfinity : *std::ranges::min_element(samples); }
  double median() const {
    if (samples.empty()) return kInfinity;
    std::vector<double> sorted = samples;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

class Worker {
 public:
  explicit Worker(int socket)
      : socket_(socket), device_(runtime::Registry::instance().default_device()) {}

  void serve() {
    say(socket_, MessageKind::Ready);
    for (;;) {
      MessageKind kind{};
      std::vector<std::byte> bytes;
      if (hear(socket_, UINT64_MAX, kind, bytes) != Received::Frame) return;
      try {
        answer(kind, ByteReader(bytes));
      } catch (const std::exception& e) {
        say(socket_, MessageKind::Failed, ByteWriter().put_text(e.what()).bytes());
      }
    }
  }

 private:
  struct Param {
    ParamSpec spec;
    std::vector<std::byte> contents;
    std::shared_ptr<runtime::Buffer> buffer;
    bool is_written() const { return (spec.flags & PGR_PARAM_WRITE) != 0; }
    bool is_read() const { return (spec.flags & PGR_PARAM_READ) != 0; }
  };

  void answer(MessageKind kind, ByteReader in) {
    if (kind == MessageKind::Params)
      set_params(in);
    else if (kind == MessageKind::Time)
      time_kernels(in);
    else if (kind == MessageKind::Check)
      check(in);
    else
      fail(ErrorKind::Internal, "request {} is not known", static_cast<uint32_t>(kind));
  }

  void set_params(ByteReader& in) {
    params_.clear();
    references_.clear();
    device_.flush_allocator_cache();
    const auto count = in.get<uint32_t>();
    for (uint32_t slot = 0; slot < count; ++slot) {
      Param param{in.get<ParamSpec>(), {}, nullptr};
      param.contents = contents_of(param.spec, slot);
      param.buffer = device_.allocate(param.contents.size());
      param.buffer->copy_in(param.contents.data(), param.contents.size());
      params_.push_back(std::move(param));
    }
    say(socket_, MessageKind::Ready);
  }

  void report(MessageKind kind, uint32_t number) {
    say(socket_, kind, ByteWriter().put(number).bytes());
  }

  std::shared_ptr<runtime::Kernel> compile(const KernelSpec& spec, bool contract) {
    return device_.compile(spec.ir, spec.name, {.contract = contract, .keep = false});
  }

  void launch(const runtime::Kernel& kernel, const KernelSpec& spec, uint64_t* time_ns) {
    const IrParams params = params_in(spec.ir);
    std::vector<runtime::Buffer*> buffers;
    for (const Param& param : params_) buffers.push_back(param.buffer.get());
    buffers.resize(std::min<size_t>(buffers.size(), params.buffer_count));
    runtime::Launch launch{buffers, params.greatest_scalars, {}, {}};
    std::copy_n(spec.group_count, 3, launch.group_count.begin());
    std::copy_n(spec.local_size, 3, launch.local_size.begin());
    device_.launch(kernel, launch, time_ns);
  }

  // Restores the contents that kernels overwrote; `all`: also of write-only parameters.
  void restore(bool all) {
    for (Param& param : params_)
      if (param.is_written() && (all || param.is_read()))
        param.buffer->copy_in(param.contents.data(), param.contents.size());
  }

  // Timing.
  void time_kernels(ByteReader& in) {
    const auto spec = in.get<TimeSpec>();
    std::vector<Entrant> entrants(in.get<uint32_t>());
    for (Entrant& entrant : entrants) entrant.spec = get_kernel(in);
    require(in.is_whole(), "the request is cut short");
    compile_all(entrants, spec.contract);
    const uint64_t begin_ns = monotonic_ns();
    for (uint32_t i = 0; i < entrants.size(); ++i) warm_up(entrants, i, spec);
    for (uint32_t round = 0; round < spec.most_rounds; ++round) {
      const double elapsed = static_cast<double>(monotonic_ns() - begin_ns) * 1e-9;
      if (round >= spec.least_rounds && elapsed > spec.seconds) break;
      for (uint32_t i = 0; i < entrants.size(); ++i)
        sample(entrants, (i + round) % static_cast<uint32_t>(entrants.size()));
      drop_losers(entrants);
    }
    ByteWriter out;
    for (const Entrant& entrant : entrants) out.put(entrant.median());
    say(socket_, MessageKind::Times, out.bytes());
  }

  void compile_all(std::vector<Entrant>& entrants, bool contract) {
    std::mutex mutex;
    run_tasks(entrants.size(), [&](uint64_t i) {
      const auto number = static_cast<uint32_t>(i);
      {
        const std::lock_guard lock(mutex);
        report(MessageKind::Compiling, number);
      }
      std::string refusal;
      try {
        entrants[i].kernel = compile(entrants[i].spec, contract);
      } catch (const Error& e) {
        refusal = e.what();
      }
      const std::lock_guard lock(mutex);
      if (entrants[i].kernel) return report(MessageKind::Compiled, number);
      entrants[i].is_out = true;
      say(socket_, MessageKind::Refused, ByteWriter().put(number).put_text(refusal).bytes());
    });
  }

  // Launches once. On an error, reports the kernel as refused and returns infinity.
  double launch_once(Entrant& entrant, uint32_t number) {
    uint64_t time_ns = 0;
    try {
      launch(*entrant.kernel, entrant.spec, &time_ns);
    } catch (const Error& e) {
      entrant.is_out = true;
      entrant.samples.clear();
      say(socket_, MessageKind::Refused, ByteWriter().put(number).put_text(e.what()).bytes());
      return kInfinity;
    }
    return static_cast<double>(std::max<uint64_t>(time_ns, 1)) * 1e-9;
  }

  // Warm up; drop clearly slower candidates.
  void warm_up(std::vector<Entrant>& entrants, uint32_t number, const TimeSpec& spec) {
    Entrant& entrant = entrants[number];
    if (entrant.is_out) return;
    restore(false);
    report(MessageKind::Running, number);
    const double seconds = launch_once(entrant, number);
    double least = kInfinity;
    for (const Entrant& other : entrants) least = std::min(least, other.least());
    if (entrant.is_out) return;
    entrant.samples.push_back(seconds);
    if (seconds > spec.slower * least) entrant.is_out = true;
  }

  void sample(std::vector<Entrant>& entrants, uint32_t number) {
    Entrant& entrant = entrants[number];
    if (entrant.is_out) return;
    restore(false);
    report(MessageKind::Running, number);
    const double expected = entrant.least();
    const auto launches = static_cast<uint32_t>(std::clamp(
        static_cast<double>(kSampleNs) * 1e-9 / expected, 1.0, static_cast<double>(kMostLaunches)));
    if (launches > 1) launch_once(entrant, number);  // refill caches after the previous kernel
    double total = 0;
    for (uint32_t i = 0; i < launches && !entrant.is_out; ++i)
      total += launch_once(entrant, number);
    if (!entrant.is_out) entrant.samples.push_back(total / launches);
  }

  // Drops the warm-up sample once there is another, and kernels whose best sample is far from the
  // best median.
  static void drop_losers(std::vector<Entrant>& entrants) {
    double best = kInfinity;
    for (Entrant& entrant : entrants) {
      if (entrant.is_out) continue;
      if (entrant.samples.size() == 2) entrant.samples.erase(entrant.samples.begin());
      best = std::min(best, entrant.median());
    }
    for (size_t i = 1; i < entrants.size(); ++i)  // the first is the baseline
      if (entrants[i].least() > 1.15 * best) entrants[i].is_out = true;
  }

  // Checking.
  using Results = std::vector<std::vector<std::byte>>;  // of written params, in order

  Results results_of(const KernelSpec& spec, bool contract, uint32_t number) {
    const auto kernel = compile(spec, contract);
    restore(true);
    report(MessageKind::Running, number);
    launch(*kernel, spec, nullptr);
    Results out;
    for (const Param& param : params_) {
      if (!param.is_written()) continue;
      out.emplace_back(param.contents.size());
      param.buffer->copy_out(out.back().data(), out.back().size());
    }
    return out;
  }

  // Caches the reference's results: later checks use the same one.
  const Results& reference_results(const KernelSpec& spec, bool contract, uint32_t number) {
    const std::string key = hash128(spec.ir).hex();
    const auto known = references_.find(key);
    if (known != references_.end()) return known->second;
    return references_[key] = results_of(spec, contract, number);
  }

  std::string compare(const Results& reference, const Results& candidate, bool is_sample,
                      double tolerance) {
    size_t at = 0;
    for (size_t slot = 0; slot < params_.size(); ++slot) {
      const Param& param = params_[slot];
      if (!param.is_written()) continue;
      const std::span<const std::byte> untouched =
          is_sample ? std::span(param.contents) : std::span<std::byte>();
      const std::string unequal =
          difference(param.spec, {reference[at], candidate[at], untouched, tolerance});
      if (!unequal.empty()) return fmt::format("buffer {}: {}", slot, unequal);
      ++at;
    }
    return {};
  }

  void check(ByteReader& in) {
    const auto spec = in.get<CheckSpec>();
    const KernelSpec candidate = get_kernel(in), reference = get_kernel(in), whole = get_kernel(in);
    require(in.is_whole(), "the request is cut short");
    const Results have = results_of(candidate, spec.contract, 0);
    std::string verdict = compare(reference_results(reference, spec.contract, 1), have,
                                  spec.is_sample, spec.tolerance);
    if (verdict.empty() && spec.is_sample)
      verdict =
          compare(reference_results(whole, spec.contract, 2), have, false, 2 * spec.tolerance);
    say(socket_, MessageKind::Verdict, ByteWriter().put_text(verdict).bytes());
  }

  int socket_;
  runtime::Device& device_;
  std::vector<Param> params_;
  std::map<std::string, Results> references_;
};

// Exits when the parent closes the socket, even while a kernel hangs.
void end_with_the_other_side(int socket) {
  std::thread([socket] {
    pollfd waited{socket, POLLRDHUP, 0};
    while (poll(&waited, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }).detach();
}

// Standard input is the socket. Redirects it and standard output, so that plugins and drivers
// cannot read from the socket or write to the program's output.
int take_socket() {
  const int socket = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0)
    for (int stream : {STDIN_FILENO, STDOUT_FILENO}) dup2(nothing, stream);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  return socket;
}

}  // namespace

int serve_timing_requests() {
  const int socket = take_socket();
  if (socket < 0) return 2;
  end_with_the_other_side(socket);
  try {
    Worker(socket).serve();
    return 0;
  } catch (const std::exception& e) {
    say(socket, MessageKind::Failed, ByteWriter().put_text(e.what()).bytes());
    return 1;
  }
}

}  // namespace plugrad::tuning
