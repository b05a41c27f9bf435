// Finds the plan of the walked graph: that of an equal graph, one that serves graphs with other numbers
// or sizes, or a new one.
#include <algorithm>

#include "base/check.h"
#include "base/settings.h"
#include "engine/plan/plan_cache.h"
#include "engine/realize/stopwatch.h"
#include "engine/realize/work.h"
#include "engine/recording/call_observer.h"
#include "engine/recording/cut_call.h"
#include "engine/session_state.h"

namespace plugrad::engine {
namespace {

Hash128 key_of_form(const Hash128& without_sizes, const LengthForm& form) {
  std::vector<uint64_t> words = {without_sizes.high, without_sizes.low,
                                 static_cast<uint64_t>(form.bounds.least),
                                 static_cast<uint64_t>(form.bounds.most)};
  for (const Line& line : form.sizes)
    words.insert(words.end(), {static_cast<uint64_t>(line.by), static_cast<uint64_t>(line.plus)});
  for (size_t i = 0; i < form.sites.size(); ++i)
    words.insert(words.end(),
                 {uint64_t{form.given[i]}, form.given[i] != 0 ? 0 : form.sites[i].bits});
  return hash128(std::as_bytes(std::span(words)));
}

// Memory for the largest length, without inputs of other sizes. Errors: Unsupported.
void require_memory(const LengthPlan& made, const schedule::Plan& plan,
                    const runtime::Device& device) {
  using Kind = schedule::PlannedBuffer::Kind;
  uint64_t bytes = 0;
  for (const auto& arena : plan.arenas) bytes += arena.size_bytes;
  for (const auto& buffer : plan.buffers) {
    const bool is_copied = buffer.kind == Kind::Input && buffer.number < made.inputs.size() &&
                           varies(made.inputs[buffer.number]);
    if (is_copied || buffer.kind == Kind::Output)
      bytes += static_cast<uint64_t>(buffer.elem_count) * size_of(buffer.dtype);
  }
  constexpr uint64_t kShare = 8;
  const uint64_t memory = device.info().memory_bytes, used = device.memory_stats().used_bytes;
  if (memory > used && bytes > (memory - used) / kShare)
    fail(ErrorKind::Unsupported, "{} elements at most take {} bytes", made.form.bounds.most, bytes);
}

// Whether a plan may compute the graph of several lengths: sums of another length may be added in
// another order.
bool may_serve_lengths(const CanonicalGraph& walked, const PlanRequest& request) {
  return settings().lift && !CallObserver::active() && !request.kernels.deterministic &&
         walked.devices_used().size() <= 1 &&
         std::ranges::none_of(walked.inputs(),
                              [](const ValuePtr& value) { return value->sharded != nullptr; });
}

std::shared_ptr<LengthHistory> history_of(LengthHistories& histories, const Hash128& key,
                                          const LengthSample& sample) {
  if (const auto* known = histories.find(key)) return *known;
  constexpr size_t kHistory = 512, kSamples = 8;  // with the form of a plan
  return histories.insert(key, std::make_shared<LengthHistory>(),
                          kHistory + kSamples * (sizeof(int64_t) * sample.sizes.size() +
                                                 sizeof(NumberSite) * sample.sites.size()));
}

}  // namespace

// Keeps the plan in the cache, and notes why there was none.
void Session::keep_found(Work& work, const Hash128& key, std::shared_ptr<ReadyPlan> ready,
                         const MadeBefore& before) {
  const auto* known = state_->plans.find(key);  // so that it stays there
  work.is_new = !known || *known != ready;
  work.ready = std::move(ready);
  if (!work.is_new) return;
  state_->plans.insert(key, work.ready, size_of_plan(*work.ready));
  Miss miss{.place = state_->places.of(work.roots[0])};
  miss.kernels = state_->kernels.made() - before.kernels;
  miss.compile_ns = state_->statistics.compile_ns - before.compile_ns;
  miss.operation = operation(work.roots[0]);
  miss.reads = state_->values_read;
  miss.remark = std::move(work.remark);
  state_->plan_misses.note(state_->canonical, graph_, *shapes_, state_->devices, work.request,
                           std::move(miss));
}

// A plan that takes the numbers at launch.
bool Session::find_taking_numbers(Work& work, std::span<const NumberSite> sites,
                                  const Hash128& without_numbers, const MadeBefore& before) {
  const auto* history = sites.empty() ? nullptr : state_->number_histories.find(without_numbers);
  if (!history) return false;
  NumberHistory& numbers = **history;
  const auto make = [&](std::span<const uint8_t> given,
                        const ReadyPlan* like) -> std::shared_ptr<ReadyPlan> {
    schedule::Plan plan = kept_or_made(key_of_taking(without_numbers, sites, given), [&] {
      return plan_of(state_->canonical.copy(sites, given), work.request);
    });
    if (!may_take_numbers(plan, work.request.options.max_params)) return nullptr;
    return ready_of(std::move(plan), work.request, like);
  };
  auto ready = plan_taking_numbers(numbers, sites, make);
  if (!ready) return false;
  work.numbers = launch_bits(sites);
  const uint64_t words[] = {without_numbers.high, without_numbers.low, numbers.made};
  keep_found(work, hash128(std::as_bytes(std::span(words))), std::move(ready), before);
  return true;
}

// A plan for all lengths within the form's bounds; `ready` keeps it until the cache does.
std::shared_ptr<LengthPlan> Session::plan_of_form(const Work& work, const Hash128& without_sizes,
                                                  LengthForm form,
                                                  std::shared_ptr<ReadyPlan>& ready) {
  const CanonicalGraph& walked = state_->canonical;
  form.bounds.most = largest_length(walked, graph_, form);
  const uint32_t device =
      walked.devices_used().empty() ? work.request.default_device : walked.devices_used()[0];
  AnyLength any = for_any_length(walked, graph_, form, device);
  auto made = std::make_shared<LengthPlan>();
  made->form = std::move(form);
  made->starts = std::move(any.starts);
  made->inputs = std::move(any.inputs);
  made->roots = std::move(any.roots);
  made->device = device;
  made->key = key_of_form(without_sizes, made->form);
  made->require_few_rows();
  schedule::Plan plan =
      kept_or_made(made->key, [&] { return plan_of(std::move(any.scratch), work.request); });
  if (!may_take_numbers(plan, work.request.options.max_params))
    fail(ErrorKind::Unsupported, "a kernel would take too many numbers");
  require_memory(*made, plan, state_->devices.open(made->device));
  ready = ready_of(std::move(plan), work.request);
  made->ready = ready;
  return made;
}

// A plan for all lengths within bounds.
bool Session::find_of_any_length(Work& work, const LengthSample& sample,
                                 const std::shared_ptr<LengthHistory>& history,
                                 const Hash128& without_sizes, const MadeBefore& before) {
  std::shared_ptr<ReadyPlan> ready;
  const auto make = [&](LengthForm form) {
    return plan_of_form(work, without_sizes, std::move(form), ready);
  };
  auto [plan, family] = history->plan_for(sample, make);
  work.remark = family ? family->refused() : "";
  if (!plan) return false;
  ready = plan->ready.lock();
  ready->needed_again = history->needed_again();
  work.numbers = plan->launch_bits(sample);
  work.length = {family, plan, plan->length_of(sample)};
  keep_found(work, plan->key, std::move(ready), before);
  return true;
}

// Tells the planner what stays the same in later calls; with fixed schedules a call must get the
// same plan wherever it is computed.
Hash128 Session::key_of_part(CutCall& call, PlanRequest& request, const Hash128& key) {
  const CanonicalGraph& walked = state_->canonical;
  const auto varies = [&] {
    if (state_->plans.find(key)) return false;
    const std::vector<NumberSite> sites = sites_to_give(walked);
    if (!sites.empty() && state_->number_histories.find(request.key(walked.key_without(sites))))
      return true;
    return may_serve_lengths(walked, request) &&
           state_->length_histories.find(
               request.key(walked.key_without_sizes(walked.constant_sites()))) != nullptr;
  };
  auto constants = call.constant_inputs(key, walked.inputs(), varies);
  if (constants.empty() || request.kernels.deterministic) return key;
  request.options.constants = std::move(constants);
  return request.key(walked.key());
}

// The plan of the graph just walked; whether it was there before.
bool Session::find_or_make(Work& work, uint32_t default_device, bool stores_along) {
  Statistics& statistics = state_->statistics;
  const CanonicalGraph& walked = state_->canonical;
  Hash128 key;
  CutCall* const call = CutCall::active();
  std::shared_ptr<std::vector<uint32_t>>
      needed_again;  // by calls that did not know what is constant
  {
    const Stopwatch watch(statistics.lookup_ns);
    work.request = request_of_walk(default_device);
    work.numbers.clear();
    work.length = {};
    work.remark.clear();
    key = work.request.key(walked.key());
    const auto* known = state_->plans.find(key);
    if (call && known) needed_again = (*known)->needed_again;
    const bool has_learned = needed_again && stores_along && add_learned(work, *needed_again);
    if (call && !has_learned) {
      key = key_of_part(*call, work.request, key);
      known = state_->plans.find(key);
    }
    if (known && !has_learned) {
      work.ready = *known;
      return true;
    }
    if (has_learned) walk(work.roots, default_device);
    if (has_learned) return find_or_make(work, default_device, stores_along);
  }
  const MadeBefore before{state_->kernels.made(), statistics.compile_ns};
  const std::vector<NumberSite> sites = sites_to_give(walked);
  const Hash128 without_numbers = sites.empty() ? key : work.request.key(walked.key_without(sites));
  if (find_taking_numbers(work, sites, without_numbers, before)) return !work.is_new;
  LengthSample sample;
  std::shared_ptr<LengthHistory> lengths;
  if (may_serve_lengths(walked, work.request)) {
    sample = {walked.sizes_of_axes(), walked.constant_sites()};
    const Hash128 without_sizes = work.request.key(walked.key_without_sizes(sample.sites));
    lengths = history_of(state_->length_histories, without_sizes, sample);
    if (stores_along && add_learned(work, *lengths->needed_again())) {
      walk(work.roots, default_device);
      return find_or_make(work, default_device, stores_along);
    }
    if (find_of_any_length(work, sample, lengths, without_sizes, before)) return !work.is_new;
  }
  auto ready = ready_of(kept_or_made(key, [&] { return plan_of(walked.copy(), work.request); }),
                        work.request);
  keep_found(work, key, std::move(ready), before);
  note_numbers(state_->number_histories, without_numbers, sites, work.ready);
  if (lengths) work.ready->needed_again = lengths->needed_again();
  if (needed_again) work.ready->needed_again = std::move(needed_again);
  if (lengths) lengths->note_exact(std::move(sample));
  return false;
}

}  // namespace plugrad::engine
