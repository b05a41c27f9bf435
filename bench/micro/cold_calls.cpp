// First calls of long programs: time of planning and compilation together, and the number of
// kernels compiled.
#include "bench/harness.h"
#include "bench/micro/empty_cache.h"
#include "bench/micro/micro.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/nn.h"
#include "plugrad/optim.h"

namespace plugrad::bench {
namespace {

constexpr int64_t kParts = 5000;
constexpr int kDraws = 400, kSteps = 1000;
constexpr int64_t kPlaces = 128;
constexpr char kCompiled[] = "kernels compiled", kKernelsAPlace[] = "kernels a place";

using Body = std::function<void(benchmark::State&)>;

Tensor join_of_parts(const Tensor& x) {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < kParts; ++i) parts.push_back(x[i] * static_cast<double>(i) + 1.0);
  return cat(parts);
}

Tensor sum_of_draws() {
  Tensor sum(0.0);
  for (int i = 0; i < kDraws; ++i) sum = sum + Tensor::rand({});
  return sum;
}

/// One step of Adam on an LSTMCell that is called once per position.
class UnrolledCell {
 public:
  void step() {
    adam_.zero_grad();
    nn::LSTMCell::State state;
    for (int64_t i = 0; i < kPlaces; ++i) state = cell_(x_[{Slice(), i}], state);
    const Tensor loss = state.h.square().mean();
    loss.backward();
    adam_.step();
  }

 private:
  nn::LSTMCell cell_{16, 32};
  optim::Adam adam_{nn::parameters(cell_), {.lr = 0.01}};
  Tensor x_ = Tensor::rand({8, kPlaces, 16}).realize();
};

Tensor gradient_of_chain() {
  Tensor x = Tensor::rand({64}).realize();
  x.requires_grad_();
  Tensor y = x;
  for (int i = 0; i < kSteps; ++i) y = (y * 0.999).sin() + x;
  y.sum().backward();
  return x.grad();
}

Tensor recurrence() {
  Tensor x = Tensor::rand({4}).realize();
  for (int i = 0; i < kSteps; ++i) x[i % 4] = x[(i + 1) % 4] + 1.0;
  return x;
}

// Time from the call to the value for an uncached graph, and the number of kernels compiled. A
// preceding kernel loads the compiler's libraries, which is not measured.
void measure_cold(benchmark::State& state, const std::function<void()>& call) {
  engine::Session& session = engine::Session::current();
  const EmptyCache cache;
  (Tensor::full({3}, 2.0) + 1.0).realize();
  session.clear_caches();
  const uint64_t before = session.statistics().kernels_compiled;
  for (auto _ : state) call();
  state.counters[kCompiled] = static_cast<double>(session.statistics().kernels_compiled - before);
}

Micro cold(const char* what, std::function<std::function<void()>()> prepare) {
  return {.name = std::string(what) + ", cold",
          .unit = "s",
          .prepare = [prepare]() -> Body {
            return [call = prepare()](benchmark::State& state) { measure_cold(state, call); };
          },
          .repetitions = 1,
          .is_warmed_up = false,
          .counters = {kCompiled}};
}

Body step_of_cell() {
  const auto cell = std::make_shared<UnrolledCell>();
  cell->step();
  return [cell](benchmark::State& state) {
    engine::Session& session = engine::Session::current();
    const uint64_t before = session.statistics().kernels_launched;
    for (auto _ : state) cell->step();
    state.counters[kKernelsAPlace] =
        static_cast<double>(session.statistics().kernels_launched - before) /
        static_cast<double>(state.iterations() * kPlaces);
  };
}

}  // namespace

std::vector<Micro> cold_micros() {
  return {
      cold("cat of 5000 lazy values",
           [] {
             const Tensor x = Tensor::rand({kParts, 4}).realize();
             return [x] { join_of_parts(x).realize(); };
           }),
      cold("sum of 400 rand({})", [] { return [] { sum_of_draws().realize(); }; }),
      cold("gradient of 1000 chained sines", [] { return [] { gradient_of_chain().realize(); }; }),
      cold("recurrence in place of 1000 steps", [] { return [] { recurrence().realize(); }; }),
      cold("LSTMCell with Adam over 128 places",
           [] {
             const auto cell = std::make_shared<UnrolledCell>();
             return [cell] { cell->step(); };
           }),
      {.name = "LSTMCell with Adam over 128 places",
       .unit = "ms",
       .prepare = step_of_cell,
       .repetitions = 5,
       .counters = {kKernelsAPlace}}};
}

}  // namespace plugrad::bench
