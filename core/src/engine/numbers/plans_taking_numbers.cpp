// Plans that take numbers at launch: `x * k` with a new k compiles nothing.
#include <algorithm>

#include "base/log.h"
#include "engine/numbers/number_history.h"

namespace plugrad::engine {
namespace {

constexpr uint32_t kFewPlans = 4;  // that take what has differed; the next one takes all
constexpr uint32_t kMostPlans = 8;

// Null if the device takes no such kernel. A kernel with other loops than with constants gets a schedule
// of its own.
std::shared_ptr<ReadyPlan> made(const MakeTaking& make, std::span<const uint8_t> given,
                                const ReadyPlan* like) {
  try {
    return make(given, like);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::User && like) return made(make, given, nullptr);
    if (!dynamic_cast<const CompileError*>(&error) && error.kind() != ErrorKind::Unsupported) throw;
    log_line(LogLevel::Info, fmt::format("numbers stay constants of kernels: {}", error.what()));
    return nullptr;
  }
}

}  // namespace

bool may_take_numbers(const schedule::Plan& plan, uint32_t max_params) {
  constexpr uint32_t kMostScalars = 8;
  return std::ranges::all_of(plan.steps, [&](const schedule::Step& step) {
    const size_t numbers = step.numbers.size();
    return numbers == 0 || (numbers <= kMostScalars && step.buffers.size() + numbers <= max_params);
  });
}

std::shared_ptr<ReadyPlan> plan_taking_numbers(NumberHistory& history,
                                               std::span<const NumberSite> sites,
                                               const MakeTaking& make) {
  if (!history.note(sites)) return nullptr;
  if (auto taking = history.taking.lock(); taking && history.is_current) return taking;
  const auto with_constants = history.plan_of_first.lock();
  if (!with_constants) return nullptr;  // note_numbers() begins again
  if (history.is_current) --history.made;
  if (history.made >= kFewPlans) history.take_all();
  while (history.made < kMostPlans) {
    std::vector<uint8_t> given(sites.size());
    bool takes_any = false;
    for (size_t i = 0; i < sites.size(); ++i) {
      if (!history.takes(i) && sites[i].bits != history.first[i]) return nullptr;
      if (!history.takes(i)) continue;
      given[i] = takes_any = true;
    }
    if (!takes_any) return nullptr;
    ++history.made;
    auto ready = made(make, given, with_constants.get());
    if (!ready) break;
    if (!keep_where_programs_differ(history, *ready, *with_constants, sites)) continue;
    history.taking = ready;
    history.is_current = true;
    return ready;
  }
  std::ranges::fill(history.stays, 1);
  return nullptr;
}

}  // namespace plugrad::engine
