#include "engine/refine/promotion.h"

#include <cmath>
#include <cstring>

#include "base/log.h"
#include "base/trace/trace.h"
#include "codegen/analysis/same_program.h"
#include "engine/plan/ready_plan.h"
#include "engine/plan/trace_plan.h"
#include "engine/refine/candidate_thread.h"
#include "engine/refine/refinement.h"
#include "engine/session_state.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::engine {
namespace {

// Of launches with the frugal schedule, as predicted, after which the full one is looked at.
constexpr double kLooksAfter = 20e-3;
std::atomic<double> looks_after{kLooksAfter};

// For an instruction of kernel IR (docs/decisions/schedules-are-frugal-first.md).
constexpr double kCompileSeconds = 1e-4;
// Of the time that compiling takes, which launches must have lost by then: programs run a step some
// hundred times and more, mostly on more than one core.
constexpr double kShare = 1.0 / 3;

double compile_seconds(const codegen::KernelCode& code) {
  pgr_ir_header header;
  std::memcpy(&header, code.ir.data(), sizeof header);
  return kCompileSeconds * header.inst_count;
}

}  // namespace

void set_promotion_price(double seconds) {
  looks_after = seconds;
}

std::shared_ptr<Promotion> Promotion::of_taking(KernelRequest request,
                                                std::span<const uint64_t> numbers) const {
  auto taking = std::make_shared<Promotion>(std::move(request), options_, seconds_);
  taking->like_ = {request_, {numbers.begin(), numbers.end()}};
  return taking;
}

void Promotion::note_launch() {
  spent_ = spent_ + seconds_;
  if (state_ != State::Running || spent_ < std::max<double>(looks_after, price_)) return;
  state_ = State::Asked;
  Session::current().state().candidates.add(shared_from_this());
}

// Whether what launches lose against the full schedule pays for compiling it; sets its price.
bool Promotion::pays(const codegen::KernelCode& full) {
  const double lost = 1 - full.seconds / seconds_;
  price_ = lost > 0 ? kShare * compile_seconds(full) / lost : HUGE_VAL;
  return spent_ >= price_ || looks_after == 0;
}

std::shared_ptr<ReadyKernel> Promotion::take() {
  if (!std::exchange(is_cached_, true))
    Session::current().state().kernels.replace(request_, options_, full_);
  return full_;
}

// Null if the full schedule does not pay yet, or if the kernel's values would not be those of the
// constants' kernel.
std::shared_ptr<ReadyKernel> Promotion::made() {
  const auto does_pay = [this](const codegen::KernelCode& full) { return pays(full); };
  if (!like_) return KernelCache::make_full(request_, options_, does_pay);
  const auto like = KernelCache::make_full(like_->request, options_, does_pay);
  if (!like) return nullptr;
  auto own = KernelCache::make(request_, options_, like->code.schedule);
  if (codegen::is_same_program(like->code.ir, own->code.ir, like_->numbers)) return own;
  price_ = HUGE_VAL;
  return nullptr;
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
    state_ = full_ ? State::Made : price_ < HUGE_VAL ? State::Running : State::Stays;
  } catch (const Error& e) {
    log_line(LogLevel::Info,
             fmt::format("[refine] no full schedule on {}: {}", request_.device->name(), e.what()));
  }
}

void Promotion::end() {
  if (state_ == State::Asked) state_ = State::Stays;
}

void promote(ReadyPlan& ready) {
  if (!ready.may_promote) return;
  bool is_any = false, is_replaced = false, is_left = false;
  ready.is_promoting = false;
  for (size_t i = 0; i < ready.kernels.size(); ++i) {
    std::shared_ptr<ReadyKernel>& kernel = ready.kernels[i];
    const auto promotion = kernel ? kernel->promotion : nullptr;
    if (!promotion) continue;
    is_any = true;
    if (promotion->state() == Promotion::State::Stays) continue;
    promotion->note_launch();
    if (promotion->state() != Promotion::State::Made) {
      is_left = true;
      ready.is_promoting |= promotion->state() == Promotion::State::Asked;
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
  ready.may_promote = is_left;
  if (is_replaced) ready.prepared = nullptr;
  if (ready.refinement && (is_replaced || (is_any && !is_left))) ready.refinement->note_settled();
}

}  // namespace plugrad::engine
