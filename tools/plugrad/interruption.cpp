#include "interruption.h"

#include <signal.h>

#include <atomic>

namespace plugrad::tools {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  interrupted = true;
}

}  // namespace

void catch_interruption() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

bool is_interrupted() {
  return interrupted;
}

void release_interruption() {
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
}

}  // namespace plugrad::tools
