#include "engine/refine/candidates.h"

#include <time.h>

#include <algorithm>

#include "base/log.h"
#include "base/trace/trace.h"
#include "codegen/search/search.h"
#include "engine/refine/candidate_thread.h"
#include "plugrad/error.h"
#include "tuning/helper/check_plan.h"
#include "tuning/helper/timing_helper.h"
#include "tuning/kernel_schedule.h"

namespace plugrad::engine {
namespace {

constexpr size_t kMostCandidates = 4;  // timed by the helper
constexpr size_t kMostTrials = 3;      // compared with the kernel on the program's data
constexpr double kSlack = 1.2;  // x the kernel's predicted time: the model's error (docs/search.md)
constexpr double kNear = 1.1;   // x the kernel's time in the helper; other load disturbs it
constexpr uint64_t kMostBytes = 256 << 20;  // the helper may allocate for one kernel's buffers
constexpr tuning::TimeSpec kTiming{
    .seconds = 0.1, .least_rounds = 1, .most_rounds = 3, .slower = 1.5};

std::atomic<LaunchTime> test_times{nullptr};

uint64_t thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t bytes_of(std::span<const tuning::ParamSpec> params) {
  uint64_t bytes = 0;
  for (const tuning::ParamSpec& param : params)
    bytes += param.elem_count * size_of(static_cast<DType>(param.dtype));
  return bytes;
}

// Different code for one AST, best predicted time first. One thread: the program uses the others.
// Large kernels take seconds, for which neither the budget nor the program's end waits.
std::vector<codegen::KernelCode> alternatives(const CandidateRequest& request,
                                              const codegen::GoesOn& goes_on) {
  const SettingScope alone([](Settings& s) { s.threads = 1; });
  const KernelAst& ast = *request.request().ast;
  const pgr_device_caps& caps = request.request().device->caps();
  codegen::Options options = codegen_options(request.request(), request.options());
  const codegen::SearchSpace space(ast.graph, ast.sink, caps, options);
  std::vector<codegen::KernelCode> codes;
  for (const codegen::Candidate& candidate : space.alternatives(kSlack, goes_on)) {
    if (codes.size() == kMostCandidates || !goes_on()) break;
    options.schedule = &candidate.list;
    try {
      codegen::KernelCode code = codegen::generate(ast.graph, ast.sink, caps, options);
      const auto is_same = [&](const codegen::KernelCode& other) { return other.ir == code.ir; };
      if (!is_same(request.own().code) && std::ranges::none_of(codes, is_same))
        codes.push_back(std::move(code));
    } catch (const Error& e) {
      codegen::log_refusal(e);
    }
  }
  return codes;
}

}  // namespace

std::shared_ptr<ReadyKernel> CandidateRequest::take() {
  const std::lock_guard lock(mutex_);
  if (ready_.empty()) return nullptr;
  auto first = ready_.front();
  ready_.erase(ready_.begin());
  return first;
}

bool CandidateRequest::is_done() const {
  const std::lock_guard lock(mutex_);
  return is_made_ && ready_.empty();
}

uint32_t CandidateRequest::tried() const {
  const std::lock_guard lock(mutex_);
  return tried_;
}

void CandidateRequest::add(std::shared_ptr<ReadyKernel> candidate) {
  const std::lock_guard lock(mutex_);
  ready_.push_back(std::move(candidate));
}

// A failure only means that there are no candidates.
void CandidateRequest::make(CandidateThread& thread) {
  if (budget_->is_spent()) return;
  const SettingScope scope([this](Settings& s) { s = settings_; });
  const trace::Scope span(trace::Category::Search, "make candidates");
  const uint64_t begin_ns = thread_cpu_ns();
  try {
    make_within_budget(thread);
  } catch (const std::exception& e) {
    log_line(LogLevel::Info, fmt::format("[refine] no candidates for {} on {}: {}", own_->code.name,
                                         request_.device->name(), e.what()));
  }
  budget_->spend(thread_cpu_ns() - begin_ns);
}

void CandidateRequest::end() {
  const std::lock_guard lock(mutex_);
  is_made_ = true;
}

void CandidateRequest::make_within_budget(CandidateThread& thread) {
  const std::vector<tuning::ParamSpec> params = tuning::params_of(*request_.ast);
  if (bytes_of(params) > kMostBytes) return;
  const auto end_ns = thread_cpu_ns() + static_cast<uint64_t>(budget_->left_ns.load());
  const auto goes_on = [&] { return !thread.is_stopped() && thread_cpu_ns() < end_ns; };
  const std::vector<codegen::KernelCode> codes = alternatives(*this, goes_on);
  if (codes.empty()) return;
  tuning::TimingHelper& helper = thread.helper(*request_.device);
  const uint64_t begin_ns = helper.helper_ns();
  try_all(thread, helper, params, codes);
  budget_->spend(helper.helper_ns() - begin_ns);
}

void CandidateRequest::try_all(CandidateThread& thread, tuning::TimingHelper& helper,
                               const std::vector<tuning::ParamSpec>& params,
                               std::span<const codegen::KernelCode> codes) {
  helper.set_params(params);
  std::vector<const codegen::KernelCode*> all = {&own_->code};
  for (const codegen::KernelCode& code : codes) all.push_back(&code);
  tuning::TimeSpec timing = kTiming;
  timing.contract = codegen_options(request_, options_).contract;
  const auto times = helper.time(all, timing);
  for (size_t i = 0; i < all.size(); ++i)
    if (times[i].problem.empty())
      tuning::note_measured(*request_.ast, *request_.device, all[i]->schedule, times[i].seconds);
  {
    const std::lock_guard lock(mutex_);
    tried_ = static_cast<uint32_t>(codes.size());
  }
  std::vector<size_t> order;
  for (size_t i = 1; i < all.size(); ++i)
    if (times[i].seconds < kNear * times[0].seconds || (launch_times() && times[i].problem.empty()))
      order.push_back(i);
  std::ranges::sort(order, {}, [&](size_t i) { return times[i].seconds; });
  log_line(LogLevel::Info,
           fmt::format(
               "[refine] {} on {}: {} of {} candidates are near its {:.1f} us{}", own_->code.name,
               request_.device->name(), order.size(), codes.size(), times[0].seconds * 1e6,
               order.empty() ? "" : fmt::format(", {:.1f}", times[order[0]].seconds * 1e6)));
  if (order.size() > kMostTrials) order.resize(kMostTrials);
  const tuning::CheckSpec check{timing.contract, false, tuning::tolerance_of(*request_.ast)};
  for (const size_t i : order) {
    if (thread.is_stopped()) return;
    const std::string problem = helper.check(*all[i], own_->code, own_->code, check);
    if (problem.empty())
      add(KernelCache::make(request_, options_, all[i]->schedule));
    else
      log_warning("[refine] {} on {}: {} is not used: {}", own_->code.name, request_.device->name(),
                  codegen::to_string(all[i]->schedule), problem);
  }
}

void set_launch_times(LaunchTime time) {
  test_times = time;
}

LaunchTime launch_times() {
  return test_times;
}

}  // namespace plugrad::engine
