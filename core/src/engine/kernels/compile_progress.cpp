#include "engine/kernels/compile_progress.h"

#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/log.h"

namespace plugrad::engine {

CompileProgress::CompileProgress(uint64_t total, std::string devices, Pace pace)
    : total_(total),
      devices_(std::move(devices)),
      pace_(pace),
      is_terminal_(isatty(STDERR_FILENO) == 1) {
  if (total_ > 0 && settings().debug >= 0) watcher_ = std::thread([this] { watch(); });
}

CompileProgress::~CompileProgress() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  if (watcher_.joinable()) watcher_.join();
  if (is_drawn_ && is_terminal_) debug_write("\r\033[K");
}

void CompileProgress::count() {
  const std::lock_guard lock(mutex_);
  ++done_;
}

void CompileProgress::show() {
  if (done_ == shown_ && is_terminal_) return;
  shown_ = done_;
  is_drawn_ = true;
  const std::string text = fmt::format("compiling {} of {} kernels for {}",
                                       std::min(done_ + 1, total_), total_, devices_);
  debug_write(is_terminal_ ? "\r" + text + " …\033[K" : "plugrad: " + text + "\n");
}

void CompileProgress::watch() {
  std::unique_lock lock(mutex_);
  auto wait = pace_.after;
  while (!ended_.wait_for(lock, wait, [this] { return is_over_; })) {
    try {
      show();
    } catch (const std::bad_alloc&) {  // a line less
    }
    wait = is_terminal_ ? pace_.redraw : pace_.every;
  }
}

}  // namespace plugrad::engine
