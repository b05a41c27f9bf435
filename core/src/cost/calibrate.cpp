#include "cost/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/calibration_text.h"

namespace plugrad::cost {
namespace {

constexpr double kAgreement = 1.1;
constexpr double kAtOnce = 0.7;
constexpr double kWakeScatter = 1000;  // cycles by which the difference of two launches may vary
constexpr double kLeastMemory = 64 << 20, kMostMemory = 256 << 20;  // bytes: larger than any cache
constexpr double kMostShared = 16 << 20;  // bytes of the last cache, which other cores use as well
constexpr double kLeastWake = 50;         // cycles: below this, launches vary more than they differ

class Run {
 public:
  Run(const Machine& table, const Measure& measure) : m_(table), measure_(measure) {}

  // A dependent sum leaves units idle, so all threads should reach its full rate, even two on one
  // core.
  bool threads_run_at_once() const {
    return m_.threads == 1 ||
           rate({Probe::Kind::Latency, 0, true}) > kAtOnce * rate({Probe::Kind::Latency});
  }

  Machine figures() {
    m_.cycles_a_second = rate({Probe::Kind::Chain});
    m_.multiply_adds = a_cycle({Probe::Kind::MultiplyAdds});
    m_.latency = 1 / a_cycle({Probe::Kind::Latency});
    m_.loads = loads(0, false);
    m_.stores = a_cycle({Probe::Kind::Stores, m_.levels[0].bytes / 2});
    for (size_t i = 0; i < m_.levels.size(); ++i) {
      m_.levels[i].one = (i == 0 ? m_.loads : loads(i, false)) * vector_bytes();
      m_.levels[i].all =
          m_.threads == 1 ? m_.levels[i].one : loads(i, true) * vector_bytes() * m_.threads;
    }
    if (m_.threads > 1)
      m_.wake_cycles =
          std::max(kLeastWake, m_.cycles_a_second / rate({Probe::Kind::Wake, 0, true}) -
                                   m_.cycles_a_second / rate({Probe::Kind::Wake}));
    return m_;
  }

 private:
  double vector_bytes() const { return 4 * m_.lanes; }
  double rate(const Probe& probe) const {
    const Sample sample = measure_(probe);
    return sample.work / sample.seconds;
  }
  double a_cycle(const Probe& probe) const { return rate(probe) / m_.cycles_a_second; }
  // Probes half of a cache, leaving room for other data; of a shared level each thread gets its
  // share.
  double loads(size_t level, bool all) const {
    const double last = m_.levels[2].bytes;
    const double beyond = std::clamp(4 * last, kLeastMemory, kMostMemory);
    double bytes = level == 3 ? beyond : m_.levels[level].bytes / 2;
    if (level == 2) bytes = std::min(bytes, kMostShared);
    if (all && level >= 2) bytes /= m_.threads;
    return a_cycle({Probe::Kind::Loads, bytes, all});
  }

  Machine m_;
  const Measure& measure_;
};

// Empty if they agree; else the first figure that differs.
std::string disagreement(Machine a, Machine b) {
  for (const Field& field : fields()) {
    const double x = field.of(a), y = field.of(b);
    const double scatter = &field.of(a) == &a.wake_cycles ? kWakeScatter : 0;
    if (!(std::max(x, y) <= kAgreement * std::min(x, y) + scatter))
      return fmt::format("{} was {:.3g} and then {:.3g}", field.name, x, y);
  }
  return {};
}

}  // namespace

std::optional<Machine> calibrate(const Machine& table, const Measure& measure,
                                 const std::function<double()>& seconds_left,
                                 std::string& problem) {
  problem = "there was no time for two runs";
  std::optional<Machine> last;
  while (seconds_left() > 0) {
    Run run(table, measure);
    const Machine now = run.figures();
    problem = problem_of(now);
    if (problem.empty() && !run.threads_run_at_once())
      problem = "its threads did not run at once; other programs may use the processor";
    if (!problem.empty()) {
      last.reset();
      continue;
    }
    if (last) problem = disagreement(*last, now);
    if (last && problem.empty()) return now;
    last = now;
  }
  if (problem.empty()) problem = "there was no time for two runs";
  return std::nullopt;
}

}  // namespace plugrad::cost
