#include "engine/refine/promotion.h"

#include "base/log.h"
#include "base/trace/trace.h"
#include "codegen/analysis/same_program.h"
#include "engine/plan/ready_plan.h"
#include "engine/plan/trace_plan.h"
#include "engine/refine/candidate_thread.h"
#include "engine/refine/refinement.h"
#include "engine/session_state.h"

namespace plugrad::engine {
namespace {

// Of launches with the frugal schedule, after which the full one is made: a third of the time that
// making it takes. Programs run a step some hundred times and more, mostly on more than one core.
constexpr double kPaysAfter = 20e-3;
std::atomic<double> pays_after{kPaysAfter};

}  // namespace

void set_promotion_price(double seconds) {
  pays_after = seconds;
}

std::shared_ptr<Promotion> Promotion::of_taking(KernelRequest request,
                                                std::span<const uint64_t> numbers) const {
  auto taking = std::make_shared<Promotion>(std::move(request), options_, seconds_);
  taking->like_ = {request_, {numbers.begin(), numbers.end()}};
  return taking;
}

void Promotion::note_launch() {
  spent_ += seconds_;
  if (spent_ < pays_after || state_ != State::Running) return;
  state_ = State::Asked;
  Session::current().state().candidates.add(shared_from_this());
}

std::shared_ptr<ReadyKernel> Promotion::take() {
  if (!std::exchange(is_cached_, true))
    Session::current().state().kernels.replace(request_, options_, full_);
  return full_;
}

// Null if the kernel's values would not be those of the constants' kernel.
std::shared_ptr<ReadyKernel> Promotion::made() const {
  if (!like_) return KernelCache::make_full(request_, options_);
  const auto like = KernelCache::make_full(like_->request, options_);
  auto own = KernelCache::make(request_, options_, like->code.schedule);
  return codegen::is_same_program(like->code.ir, own->code.ir, like_->numbers) ? own : nullptr;
}

// After a failure the frugal kernel stays.
void Promotion::make(CandidateThread&) {
  const SettingScope scope([this](Settings& s) {
    s = settings_;
    s.threads = 1;  // the program uses the others
  });
  const trace::Scope span(trace::Category::Search, "make the full schedule");
  try {
    full_ = made();
    if (full_) state_ = State::Made;
  } catch (const Error& e) {
    log_line(LogLevel::Info,
             fmt::format("[refine] no full schedule on {}: {}", request_.device->name(), e.what()));
  }
}

void Promotion::end() {
  if (state_ != State::Made) state_ = State::Failed;
}

void promote(ReadyPlan& ready) {
  if (!ready.may_promote) return;
  const bool may_replace = !ready.refinement || !ready.refinement->is_timing();
  bool is_replaced = false, is_asked = false;
  ready.may_promote = false;
  for (size_t i = 0; i < ready.kernels.size(); ++i) {
    std::shared_ptr<ReadyKernel>& kernel = ready.kernels[i];
    const auto promotion = kernel ? kernel->promotion : nullptr;
    if (!promotion || promotion->state() == Promotion::State::Failed) continue;
    promotion->note_launch();
    if (promotion->state() != Promotion::State::Made || !may_replace) {
      ready.may_promote = true;
      is_asked |= promotion->state() == Promotion::State::Asked;
      continue;
    }
    const auto full = promotion->take();
    if (debugging(1))
      debug_write(fmt::format("promoted {} on {}: {} instead of {}\n",
                              as_shown(kernel->code.colored_name), kernel->kernel->device().name(),
                              codegen::to_string(full->code.schedule),
                              codegen::to_string(kernel->code.schedule)));
    kernel = full;
    is_replaced = true;
    if (tracing()) trace_kernel_of_step(ready, i, *kernel);
  }
  if (!is_replaced) return;
  ready.prepared = nullptr;
  if (ready.refinement && !is_asked) ready.refinement = ready.refinement->again();
}

}  // namespace plugrad::engine
