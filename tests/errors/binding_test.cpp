// The hooks for bindings of other languages: an interpreter's lock, and interruption.
#include "plugrad/binding.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "engine/session.h"
#include "plugrad/error.h"
#include "plugrad/function.h"
#include "plugrad/tensor.h"

using namespace plugrad;

namespace {

// ---- A lock like Python's: a thread holds it while it runs code of the interpreter ----
std::mutex interpreter;
thread_local bool holds_it = false;

void enter() {
  interpreter.lock();
  holds_it = true;
}
void leave() {
  holds_it = false;
  interpreter.unlock();
}
void* release() {
  if (!holds_it) return nullptr;
  leave();
  return &interpreter;
}
void acquire(void*) {
  enter();
}

// ---- A child that is forked while a thread uses the session ----

// The beginning of the error that a child gets, or what it computed.
std::string error_in_child() {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  if (fork() == 0) {
    alarm(20);
    std::string text;
    try {
      text = std::to_string((Tensor::from<float>({1, 2}) + 1).to_vector<float>()[1]);
    } catch (const Error& e) {
      text = e.what();
    }
    _exit(write(ends[1], text.data(), std::min<size_t>(text.size(), 100)) < 0);
  }
  close(ends[1]);
  char text[100];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  wait(nullptr);
  return std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
}

#ifndef __SANITIZE_THREAD__  // which cannot fork with other threads
TEST(Fork, OfTheThreadThatUsesTheSessionLeavesItUsable) {
  const Tensor before = Tensor::from<float>({5, 6});  // opens the device
  const engine::Session::Lock lock;
  EXPECT_EQ(error_in_child().substr(0, 41), "[fork] REFERENCE:0 was opened before this");
}

TEST(Fork, WhileAnotherThreadUsesTheSessionGivesTheChildAnError) {
  const Tensor before = Tensor::from<float>({5, 6});
  std::atomic<bool> is_held{false}, is_done{false};
  std::thread other([&] {
    const engine::Session::Lock lock;
    is_held = true;
    while (!is_done) std::this_thread::yield();
  });
  while (!is_held) std::this_thread::yield();
  EXPECT_EQ(error_in_child().substr(0, 34), "[fork] another thread used plugrad");
  is_done = true;
  other.join();
}
#endif

TEST(Interpreter, AThreadThatHoldsItsLockDoesNotBlockAFunctionThatNeedsIt) {
  set_interpreter_lock({release, acquire});
  // Its backward runs while the session is locked, and is code of the interpreter.
  const CustomFunction twice{
      "twice", [](FunctionContext&, const std::vector<Tensor>& x) { return std::vector{x[0] * 2}; },
      [](const FunctionContext&, const std::vector<Tensor>& g) {
        enter();
        std::this_thread::yield();
        leave();
        return std::vector{g[0] * 2};
      }};
  constexpr int kRounds = 200;
  std::thread trains([&] {
    for (int i = 0; i < kRounds; ++i) {
      Tensor x = Tensor::ones({4});
      x.requires_grad_();
      twice({x})[0].sum().backward();
      EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(4, 2));
    }
  });
  std::thread records([] {
    for (int i = 0; i < kRounds; ++i) {
      enter();
      const Tensor y = Tensor::ones({4}) + 1;
      leave();
      EXPECT_EQ(y.to_vector<float>(), std::vector<float>(4, 2));
    }
  });
  trains.join();
  records.join();
  set_interpreter_lock({});
}

// ---- Interruption ----
struct Stop {};
int polls_left = -1, polls = 0;

void stop_at_last_poll() {
  ++polls;
  if (polls_left >= 0 && polls_left-- == 0) throw Stop();
}

/// Whether it ran to its end; otherwise its tensors must be as before, and computable.
bool compute(int stop_at, int version) {
  Tensor counter = Tensor::full({3}, version, DType::F32).realize();
  counter += 1;
  const Tensor sum = (Tensor::arange(0, 64, 1, DType::F32).reshape({8, 8}) * version).sum(0);
  const Tensor product = sum.reshape({1, 8}).matmul(sum.reshape({8, 1}));
  polls_left = stop_at;
  bool is_done = true;
  try {
    Tensor::realize(std::vector{counter, product});
  } catch (const Stop&) {
    is_done = false;
  }
  polls_left = -1;
  EXPECT_EQ(counter.to_vector<float>(), std::vector<float>(3, static_cast<float>(version + 1)));
  double expected = 0;
  for (int i = 0; i < 8; ++i) expected += (224.0 + 8 * i) * version * (224.0 + 8 * i) * version;
  EXPECT_FLOAT_EQ(product.item<float>(), static_cast<float>(expected));
  return is_done;
}

TEST(Interruption, AtAnyPollLosesNothing) {
  set_interruption_check(stop_at_last_poll);
  int stopped = 0;
  while (!compute(stopped, stopped + 2)) ++stopped;
  set_interruption_check(nullptr);
  EXPECT_GE(stopped, 3) << "polls before each compilation and each launch";
  EXPECT_GT(polls, stopped);
}

}  // namespace
