// The hooks for bindings of other languages: an interpreter's lock, and interruption.
#include "plugrad/binding.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

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
      const Tensor y = Tensor::ones({4}) + i;
      leave();
      EXPECT_EQ(y.to_vector<float>(), std::vector<float>(4, static_cast<float>(i + 1)));
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
