// Events gather in blocks under one mutex. A thread of low priority writes full blocks, and each
// second what there is, so that a crash loses at most the last second.
#include "base/trace/trace.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/trace/columns.h"
#include "base/trace/header.h"
#include "base/trace/json_line.h"
#include "base/trace/trace_file.h"
#include "base/trace/view.h"

namespace plugrad {
namespace {

// Not tracing in a forked child, and after the end or an error.
std::atomic<bool> is_off{false};

}  // namespace

bool tracing() {
  const Settings& now = settings();
  return (!now.trace_path.empty() || now.viz) && !is_off.load(std::memory_order_relaxed);
}

bool tracing_rules() {
  const Settings& now = settings();
  return (now.trace_rules || now.viz) && tracing();
}

namespace trace {
namespace {

// Events of a block: its line takes a few hundred kB as text and a few ms to write.
constexpr std::size_t kBlock = 16384;
// Blocks that may wait for the writer. Each takes at most 1 MB; later ones push out the oldest.
constexpr std::ptrdiff_t kMostWaiting = 64;
constexpr auto kWriteEvery = std::chrono::seconds(1);

// Part of the file: lines, or what makes them.
struct Chunk {
  std::function<std::string()> lines;
  bool may_be_dropped = false;
  std::uint64_t events = 0;
};

// Finds names by text that is no std::string.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

struct Totals {
  std::uint64_t launches = 0, copies = 0, copied_bytes = 0, waits = 0, rewrites = 0, dropped = 0;
};

class Recorder {
 public:
  static Recorder& instance() {
    static Recorder* const one = [] {
      auto* made = new Recorder;
      made->open();
      return made;
    }();
    return *one;
  }

  template <class Event>
  void add(const Event& event) {
    const std::lock_guard lock(mutex_);
    add_locked(event);
  }

  void count_rewrites(std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    totals_.rewrites += count;
  }

  void define(std::string line) {
    line += '\n';
    const std::lock_guard lock(mutex_);
    definitions_ += line;
  }

  void give(Chunk chunk) {
    const std::lock_guard lock(mutex_);
    give_definitions();
    waiting_.push_back(std::move(chunk));
  }

  std::uint32_t name_id(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return id_of(text);
  }

  void add(Span span, std::string_view name) {
    const std::lock_guard lock(mutex_);
    span.name = id_of(name);
    add_locked(span);
  }

  std::uint64_t elapsed_ns() const { return monotonic_ns() - start_ns_; }

  void set_collector(void (*collect)()) { collect_ = collect; }

  void flush() {
    if (void (*collect)() = collect_) collect();
    write_all();
  }

 private:
  void open();
  bool begin_thread();
  void finish();
  void write_loop();
  Totals write_all();
  void write(std::deque<Chunk> chunks);
  void stop(std::string_view reason);

  void count(const Launch&) { ++totals_.launches; }
  void count(const Copy& copy) {
    ++totals_.copies;
    totals_.copied_bytes += copy.bytes;
  }
  void count(const Wait&) { ++totals_.waits; }
  template <class Event>
  void count(const Event&) {}

  // Requires the mutex; so do the next functions.
  template <class Event>
  void add_locked(const Event& event) {
    count(event);
    auto& block = std::get<std::vector<Event>>(blocks_);
    if (block.capacity() == 0) block.reserve(kBlock);
    block.push_back(event);
    if (block.size() == kBlock) {
      give_definitions();
      give(block);
      wake_.notify_one();
    }
  }

  std::uint32_t id_of(std::string_view text) {
    if (const auto known = names_.find(text); known != names_.end()) return known->second;
    const auto id = static_cast<std::uint32_t>(names_.size() + 1);
    names_.emplace(text, id);
    definitions_ += JsonLine("name").add("id", id).add("text", text).str() + "\n";
    return id;
  }

  void give_definitions() {
    if (definitions_.empty()) return;
    waiting_.push_back({[lines = std::exchange(definitions_, {})] { return lines; }});
  }

  template <class Event>
  void give(std::vector<Event>& block) {
    if (block.empty()) return;
    const std::uint64_t events = block.size();
    waiting_.push_back({[taken = std::exchange(block, {}), epoch = start_ns_] {
                          std::string lines;
                          append_columns(lines, taken, epoch);
                          return lines;
                        },
                        true, events});
    drop_if_late();
  }

  void drop_if_late() {
    const auto has_events = [](const Chunk& chunk) { return chunk.events != 0; };
    if (std::ranges::count_if(waiting_, has_events) <= kMostWaiting) return;
    const auto oldest = std::ranges::find_if(waiting_, has_events);
    totals_.dropped += oldest->events;
    waiting_.erase(oldest);
  }

  std::mutex mutex_;  // of all below
  std::tuple<std::vector<Launch>, std::vector<Copy>, std::vector<Wait>, std::vector<Collective>,
             std::vector<Span>, std::vector<Memory>>
      blocks_;
  std::string definitions_;
  std::deque<Chunk> waiting_;
  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> names_;
  Totals totals_;
  std::condition_variable wake_;
  bool is_ending_ = false;

  std::mutex file_mutex_;  // taken before mutex_
  TraceFile file_;
  std::string asked_path_;
  bool is_for_viewer_ = false;
  std::uint64_t start_ns_ = 0;
  const pid_t process_ = ::getpid();
  std::thread writer_;
  std::atomic<void (*)()> collect_{nullptr};
};

void Recorder::open() {
  start_ns_ = monotonic_ns();
  const Settings& now = settings();
  is_for_viewer_ = now.viz;
  asked_path_ = now.trace_path.empty() ? path_for_viewer() : path_of_rank(now.trace_path);
  if (const int error = file_.open(asked_path_, now.trace_limit_bytes); error != 0) {
    log_warning("cannot write PLUGRAD_TRACE={}: {}; nothing is traced", asked_path_,
                file_error_text(error));
    is_off = true;
    return;
  }
  if (file_.has_other_name())
    log_warning("PLUGRAD_TRACE={} is being written by another program; this trace is {}",
                asked_path_, file_.path());
  definitions_ = header_line(start_ns_);
  if (!begin_thread()) return;
  static Recorder* const opened = this;  // instance() may wait for this function
  ::pthread_atfork(nullptr, nullptr, [] {
    is_off = true;
    opened->file_.close();  // else the child keeps the file locked after its parent's end
  });
  std::atexit([] { instance().finish(); });
  std::at_quick_exit([] { instance().finish(); });
}

// Blocks all signals, which the program's own threads handle.
bool Recorder::begin_thread() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    writer_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "trace");
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
      write_loop();
    });
  } catch (const std::exception& e) {
    stop(fmt::format("no thread for it: {}", e.what()));
    file_.close();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return writer_.joinable();
}

void Recorder::write_loop() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    wake_.wait_for(lock, kWriteEvery);
    lock.unlock();
    write_all();
    lock.lock();
  }
}

// Returns the totals of all that is in the file then.
Totals Recorder::write_all() {
  const std::lock_guard file_lock(file_mutex_);
  std::deque<Chunk> taken;
  Totals totals;
  try {
    {
      const std::lock_guard lock(mutex_);
      give_definitions();
      std::apply([&](auto&... block) { (give(block), ...); }, blocks_);
      taken.swap(waiting_);
      totals = totals_;
    }
    write(std::move(taken));
    if (file_.error() == kFullOfDefinitions)
      stop("its definitions alone exceed PLUGRAD_TRACE_LIMIT");
    else if (file_.error() != 0)
      stop(file_error_text(file_.error()));
  } catch (const std::exception& e) {  // out of memory: the program goes on
    stop(e.what());
  }
  return totals;
}

void Recorder::write(std::deque<Chunk> chunks) {
  std::string lines;  // of definitions, which share a member
  for (Chunk& chunk : chunks) {
    const std::string made = chunk.lines();
    if (!chunk.may_be_dropped) {
      lines += made;
      continue;
    }
    if (!lines.empty()) file_.write(std::exchange(lines, {}), false);
    file_.write(made, true, chunk.events);
  }
  if (!lines.empty()) file_.write(lines, false);
}

void Recorder::stop(std::string_view reason) {
  if (is_off.exchange(true)) return;
  const NoFileSizeSignal quiet;  // the log may be a file too
  log_warning("PLUGRAD_TRACE={} is not whole: {}; nothing more is traced", asked_path_, reason);
}

void Recorder::finish() {
  if (::getpid() != process_) return;  // a forked child has no writer
  if (void (*collect)() = collect_; collect && !is_off) collect();
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  writer_.join();
  const Totals totals = write_all();
  if (is_off) return;
  file_.lift_limit();
  file_.write(JsonLine("end")
                      .add("launches", totals.launches)
                      .add("copies", totals.copies)
                      .add("copied_bytes", totals.copied_bytes)
                      .add("waits", totals.waits)
                      .add("rewrites", totals.rewrites)
                      .add("dropped", totals.dropped + file_.dropped_events())
                      .add("time_ns", elapsed_ns())
                      .str() +
                  "\n",
              false);
  if (file_.error() != 0) stop(file_error_text(file_.error()));
  if (is_off.exchange(true)) return;
  file_.close();
  if (is_for_viewer_) open_viewer(file_.path());
}

std::string name_of_thread() {
  if (::gettid() == ::getpid()) return "main";
  char name[32] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof name);
  return name;
}

std::uint32_t add_track(std::string_view kind, std::uint32_t device, std::string_view name) {
  const std::uint32_t id = new_id();
  define(JsonLine("track")
             .add("id", id)
             .add("kind", kind)
             .add("device", device)
             .add("name", name)
             .str());
  return id;
}

}  // namespace

void record(const Launch& event) {
  Recorder::instance().add(event);
}
void record(const Copy& event) {
  Recorder::instance().add(event);
}
void record(const Wait& event) {
  Recorder::instance().add(event);
}
void record(const Collective& event) {
  Recorder::instance().add(event);
}
void record(const Span& event) {
  Recorder::instance().add(event);
}
void record(const Memory& event) {
  Recorder::instance().add(event);
}
void count_rewrites(std::uint64_t count) {
  Recorder::instance().count_rewrites(count);
}

std::uint64_t elapsed_ns() {
  return Recorder::instance().elapsed_ns();
}

std::uint32_t new_id() {
  static std::atomic<std::uint32_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

void define(std::string json_line) {
  Recorder::instance().define(std::move(json_line));
}
void define_stage(std::string json_line) {
  json_line += '\n';
  Recorder::instance().give({[line = std::move(json_line)] { return line; }, true, 0});
}
void define_later(std::function<std::string()> make) {
  Recorder::instance().give({[make = std::move(make)] { return make() + "\n"; }});
}

std::uint32_t thread_track() {
  thread_local const std::uint32_t mine = add_track("thread", 0, name_of_thread());
  return mine;
}

std::uint32_t queue_track(std::uint32_t device, std::string_view kind, std::string_view name) {
  return add_track(kind, device, name);
}

std::uint32_t collectives_track() {
  static const std::uint32_t one = add_track("collectives", 0, "collectives");
  return one;
}

std::uint32_t name_id(std::string_view text) {
  return Recorder::instance().name_id(text);
}

void span(Category category, std::string_view name, std::uint64_t start_ns, std::uint64_t value) {
  span_between(category, name, start_ns, monotonic_ns(), value);
}

void span_between(Category category, std::string_view name, std::uint64_t start_ns,
                  std::uint64_t end_ns, std::uint64_t value) {
  Recorder::instance().add(Span{thread_track(), category, 0, start_ns, end_ns - start_ns, value},
                           name);
}

Scope::Scope(Category category, std::string_view name)
    : category_(category), name_(name), start_ns_(tracing() ? monotonic_ns() : 0) {}

Scope::~Scope() {
  if (start_ns_ != 0 && tracing()) span(category_, name_, start_ns_);
}

void before_writing(void (*collect)()) {
  Recorder::instance().set_collector(collect);
}

}  // namespace trace

void flush_trace() {
  if (tracing()) trace::Recorder::instance().flush();
}

}  // namespace plugrad
