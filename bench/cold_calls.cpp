#include "bench/cold_calls.h"

#include "bench/empty_cache.h"
#include "bench/harness.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/nn.h"
#include "plugrad/optim.h"

namespace plugrad::bench {
namespace {

constexpr int64_t kParts = 5000;
constexpr int kDraws = 400, kSteps = 1000;
constexpr int64_t kPlaces = 128;

std::vector<std::string> with_compiled(std::initializer_list<std::string> names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    out.push_back(name + ", cold");
    out.push_back(name + ", cold, kernels compiled");
  }
  return out;
}

void report_count(const Report& report, const std::string& name, double count) {
  report({.name = name, .value = count, .unit = "kernels", .higher_is_better = false});
}

// From the call to the value, of a graph that no cache has seen, and how many kernels were
// compiled.
template <class Make>
void report_cold(const Report& report, const std::string& name, const Make& make) {
  engine::Session& session = engine::Session::current();
  const EmptyCache cache;
  session.clear_caches();
  const uint64_t before = session.statistics().kernels_compiled;
  const double seconds = time_of([&] { make().realize(); });
  report({.name = name, .value = seconds, .unit = "s", .higher_is_better = false});
  report({.name = name + ", kernels compiled",
          .value = static_cast<double>(session.statistics().kernels_compiled - before),
          .unit = "kernels",
          .higher_is_better = false});
}

/// One step of Adam on an LSTMCell that is called for each place.
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

}  // namespace

std::vector<std::string> join_rows() {
  return with_compiled({"cat of 5000 lazy values", "sum of 400 rand({})"});
}

std::vector<std::string> unrolled_rows() {
  auto names = with_compiled({"gradient of 1000 chained sines", "recurrence in place of 1000 steps",
                              "LSTMCell with Adam over 128 places"});
  names.push_back("LSTMCell with Adam over 128 places, kernels a place");
  return names;
}

void report_joins(const Report& report) {
  const std::vector<std::string> rows = join_rows();
  const Tensor x = Tensor::rand({kParts, 4}).realize();
  report_cold(report, rows[0], [&] {
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < kParts; ++i) parts.push_back(x[i] * static_cast<double>(i) + 1.0);
    return cat(parts);
  });
  report_cold(report, rows[2], [&] {
    Tensor sum(0.0);
    for (int i = 0; i < kDraws; ++i) sum = sum + Tensor::rand({});
    return sum;
  });
}

void report_unrolled(const Report& report) {
  const std::vector<std::string> rows = unrolled_rows();
  report_cold(report, rows[0], gradient_of_chain);
  report_cold(report, rows[2], recurrence);
  UnrolledCell cell;
  report_cold(report, rows[4], [&] {
    cell.step();
    return Tensor(0.0);
  });
  engine::Session& session = engine::Session::current();
  const uint64_t before = session.statistics().kernels_launched;
  cell.step();
  const auto launched = static_cast<double>(session.statistics().kernels_launched - before);
  report_count(report, rows[6], launched / kPlaces);
}

}  // namespace plugrad::bench
