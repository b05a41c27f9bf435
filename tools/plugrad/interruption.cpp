#include "interruption.h"

#include <signal.h>

#include <atomic>

namespace plugrad::tools {
namespace {

std::atomic<int> signal_caught = 0;
std::atomic<bool> sent_by_kernel = false;
constexpr int kSignals[] = {SIGINT, SIGTERM};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal, siginfo_t* info, void*) {
  sent_by_kernel = info->si_code > 0;
  signal_caught = signal;
}

}  // namespace

void catch_interruption() {
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_SIGINFO);
  for (const int signal : kSignals) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN)
      ::sigaction(signal, &action, nullptr);  // shells ignore the signal in background jobs
  }
}

bool is_interrupted() {
  return signal_caught != 0;
}

bool is_from_terminal() {
  return sent_by_kernel;
}

int interruption_exit_code() {
  return 128 + signal_caught;
}

void release_interruption() {
  for (const int signal : kSignals) {
    struct sigaction now{};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_sigaction == on_signal) ::signal(signal, SIG_DFL);
  }
}

}  // namespace plugrad::tools
