// Edits schedules in a form that is stable under edits: axes by their numbers, which splits keep,
// and the final thread steps as a count, because earlier steps decide which loops are outermost.
#include <algorithm>
#include <limits>
#include <set>

#include "base/check.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "codegen/search/heuristic.h"
#include "codegen/search/search.h"
#include "codegen/transforms/transforms.h"
#include "ir/scratch.h"
#include "plugrad/error.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// Steps of a schedule. Chosen, not measured.
constexpr size_t kLongestList = 32;

struct Step {
  uint32_t number;  // of the axis
  ScheduleStep change;
  int64_t size = 0;  // of the axis before the step
};

struct EditableSchedule {
  std::vector<Step> steps;
  size_t threads = 0;
  bool all_threads = false;  // as many as there are loops after the steps
};

uint32_t number_at(const Kernel& kernel, size_t axis) {
  return range_axis(kernel.graph[kernel.axes[axis]]);
}

// Nothing if the code would be too large for a compiler.
std::optional<Candidate> as_candidate(const Kernel& kernel, int64_t bytes) {
  Candidate candidate{kernel.applied, predict(kernel, bytes)};
  return candidate.cost() < std::numeric_limits<double>::infinity()
             ? std::optional(std::move(candidate))
             : std::nullopt;
}

// Nothing if a step is not legal.
template <class Change>
std::optional<Candidate> candidate_of(const Kernel& start, int64_t bytes, const Change& change) {
  try {
    Kernel kernel = copy_of(start);
    change(kernel);
    return as_candidate(kernel, bytes);
  } catch (const Error& e) {
    log_refusal(e);
    return std::nullopt;
  }
}

EditableSchedule editable(const Kernel& start, const KernelSchedule& list) {
  EditableSchedule schedule;
  size_t length = list.size();
  while (length > 0 && list[length - 1].kind == Kind::Thread) --length;
  schedule.threads = list.size() - length;
  Kernel kernel = copy_of(start);
  for (size_t i = 0; i < length; ++i) {
    Step step{0, list[i], 0};
    if (!list[i].names_parameter()) {
      step.number = number_at(kernel, list[i].axis);
      step.size = size_of_axis(kernel, list[i].axis);
    }
    if (list[i].kind == Kind::Swap)
      step.change.amount = number_at(kernel, static_cast<size_t>(list[i].amount));
    schedule.steps.push_back(step);
    apply(kernel, list[i]);
  }
  for (size_t i = length; i < list.size(); ++i) apply(kernel, list[i]);
  schedule.all_threads =
      works_in_groups(*kernel.caps) && outermost_loop(kernel) == kernel.axes.size();
  return schedule;
}

// Steps on axes that no longer exist are dropped.
void apply_editable(Kernel& kernel, const EditableSchedule& schedule) {
  for (const Step& step : schedule.steps) {
    ScheduleStep change = step.change;
    if (!change.names_parameter()) {
      const size_t place = axis_with_number(kernel, step.number);
      if (place == kernel.axes.size()) continue;
      change.axis = static_cast<uint32_t>(place);
    }
    if (change.kind == Kind::Swap)
      change.amount =
          static_cast<int64_t>(axis_with_number(kernel, static_cast<uint32_t>(step.change.amount)));
    apply(kernel, change);
  }
  for (size_t i = 0; schedule.all_threads || i < schedule.threads; ++i) {
    const size_t axis = outermost_loop(kernel);
    if (axis == kernel.axes.size() || !apply_thread(kernel, axis)) return;
  }
}

// Amounts worth trying for an axis; a remainder is a second copy of the kernel.
std::vector<int64_t> amounts_for(Kind kind, int64_t size, int64_t lanes,
                                 const pgr_device_caps& caps) {
  std::vector<int64_t> out;
  const auto add = [&](int64_t amount) {
    if (amount > 1 && amount <= size && std::ranges::find(out, amount) == out.end())
      out.push_back(amount);
  };
  switch (kind) {
    case Kind::Upcast:
      for (int64_t amount : {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16})
        if (size % amount == 0 || size >= 8 * amount) add(amount);
      if (size <= 8) add(size);
      break;
    case Kind::Unroll:
      for (int64_t amount : {2, 4, 8, 16})
        if (size % amount == 0 || size >= 8 * amount) add(amount);
      if (size <= 32) add(size);
      break;
    case Kind::Vectorize:
      for (int64_t vectors : {1, 2, 3, 4, 6}) add(vectors * lanes);
      add(lanes / 2);
      if (size <= 4 * lanes) add(size);
      break;
    case Kind::Local:
    case Kind::Group:
      for (int64_t items = 2; items <= caps.max_local_total; items *= 2) add(items);
      break;
    case Kind::Block:
      if (works_in_groups(caps))  // of tiles too, which are many elements
        for (int64_t amount : {2, 4, 8}) add(amount);
      for (int64_t amount : {16, 32, 64, 96, 128, 192, 256, 384, 512, 1024}) add(amount);
      break;
    case Kind::Thread:
    case Kind::Swap:
    case Kind::TensorCore:
    case Kind::SplitK:
    case Kind::CacheRead:
    case Kind::ComputeAt:
      break;
    case Kind::Pipeline:
      return {1, 2, 3};
  }
  return out;
}

// All schedules one change away from one.
class Neighbours {
 public:
  Neighbours(const Kernel& start, EditableSchedule schedule)
      : start_(start), schedule_(std::move(schedule)) {
    Kernel copy = copy_of(start);
    for (Id store : copy.graph.sources(copy.sink)) {
      Kernel part = part_of(copy, store);
      lanes_ = std::max(lanes_, CostModel(part).lanes());
    }
  }

  std::vector<EditableSchedule> run() {
    for (size_t i = 0; i < schedule_.steps.size(); ++i) change_step(i);
    for (size_t i = 0; i < schedule_.steps.size(); ++i)
      for (size_t j = i + 1; j < schedule_.steps.size(); ++j) change_two(i, j);
    for (size_t axis = 0; axis < start_.axes.size(); ++axis) add_step(axis);
    add_swaps();
    add_tensor_cores();
    add_cache_reads();
    add_pipelining();
    add_blocks();
    if (schedule_.threads > 0) add([&](EditableSchedule& d) { --d.threads; });
    if (schedule_.threads < 3) add([&](EditableSchedule& d) { ++d.threads; });
    return std::move(out_);
  }

  std::vector<EditableSchedule> run_first() {
    for (size_t i = 0; i < schedule_.steps.size(); ++i) remove_step(i);
    for (size_t axis = 0; axis < start_.axes.size(); ++axis) expand(axis);
    add_swaps();
    add_cache_reads();
    return std::move(out_);
  }

 private:
  template <class Edit>
  void add(const Edit& edit) {
    out_.push_back(schedule_);
    edit(out_.back());
  }
  std::vector<int64_t> amounts(const Step& step) const {
    return amounts_for(step.change.kind, step.size, lanes_, *start_.caps);
  }

  void remove_step(size_t i) {
    add([&](EditableSchedule& d) {
      d.steps.erase(d.steps.begin() + static_cast<std::ptrdiff_t>(i));
    });
  }

  void change_step(size_t i) {
    const Step& step = schedule_.steps[i];
    remove_step(i);
    for (int64_t amount : amounts(step))
      if (amount != step.change.amount)
        add([&](EditableSchedule& d) { d.steps[i].change.amount = amount; });
    if (i + 1 < schedule_.steps.size())
      add([&](EditableSchedule& d) { std::swap(d.steps[i], d.steps[i + 1]); });
    if (step.change.kind != Kind::Vectorize) return;
    for (size_t axis = 0; axis < start_.axes.size(); ++axis) {
      if (number_at(start_, axis) == step.number) continue;
      for (int64_t amount :
           amounts_for(Kind::Vectorize, size_of_axis(start_, axis), lanes_, *start_.caps))
        add([&](EditableSchedule& d) {
          d.steps[i].number = number_at(start_, axis);
          d.steps[i].change.amount = amount;
        });
    }
  }

  void change_two(size_t i, size_t j) {
    for (int64_t first : amounts(schedule_.steps[i]))
      for (int64_t second : amounts(schedule_.steps[j]))
        if (first != schedule_.steps[i].change.amount && second != schedule_.steps[j].change.amount)
          add([&](EditableSchedule& d) {
            d.steps[i].change.amount = first;
            d.steps[j].change.amount = second;
          });
  }

  bool has(Kind kind, uint32_t number) const {
    return std::ranges::any_of(schedule_.steps, [&](const Step& s) {
      return s.change.kind == kind && s.number == number;
    });
  }

  // Divisors only: a remainder is more code.
  void expand(size_t axis) {
    const uint32_t number = number_at(start_, axis);
    const int64_t size = size_of_axis(start_, axis);
    const Kind kind = is_reduce_axis(kind_of(start_, axis)) ? Kind::Unroll : Kind::Upcast;
    if (has(kind, number) || has(Kind::Vectorize, number)) return;
    for (int64_t amount : {4, 2, 8, 3})
      if (size % amount == 0)
        add([&](EditableSchedule& d) {
          d.steps.insert(d.steps.begin() + before_swaps(), Step{number, {kind, 0, amount}, size});
        });
  }

  std::ptrdiff_t before_swaps() const {
    return std::ranges::find(schedule_.steps, Kind::Swap,
                             [](const Step& s) { return s.change.kind; }) -
           schedule_.steps.begin();
  }

  // Before the swaps, which renumber the axes.
  void add_step(size_t axis) {
    const uint32_t number = number_at(start_, axis);
    const std::ptrdiff_t place = before_swaps();
    for (Kind kind : {Kind::Upcast, Kind::Unroll, Kind::Vectorize, Kind::Local, Kind::Group}) {
      const bool reduce = kind == Kind::Unroll || kind == Kind::Group;
      const bool either = kind == Kind::Vectorize;
      if (!either && reduce != is_reduce_axis(kind_of(start_, axis))) continue;
      if ((kind == Kind::Local || kind == Kind::Group) && start_.caps->has_local == 0) continue;
      if (has(kind, number)) continue;
      const int64_t size = size_of_axis(start_, axis);
      for (int64_t amount : amounts_for(kind, size, lanes_, *start_.caps))
        add([&](EditableSchedule& d) {
          d.steps.insert(d.steps.begin() + place, Step{number, {kind, 0, amount}, size});
        });
    }
  }

  void add_swaps() {
    for (size_t a = 0; a < start_.axes.size(); ++a)
      for (size_t b = a + 1; b < start_.axes.size(); ++b) {
        if (is_output_axis(kind_of(start_, a)) != is_output_axis(kind_of(start_, b))) continue;
        const Step step{number_at(start_, a), {Kind::Swap, 0, number_at(start_, b)}, 0};
        add([&](EditableSchedule& d) { d.steps.push_back(step); });
      }
  }

  // Adds a cache_read of each operand at each place; an existing one moves.
  void add_cache_reads() {
    for (uint32_t slot = 1; slot < start_.param_count; ++slot) {
      const auto existing = std::ranges::find_if(schedule_.steps, [&](const Step& s) {
        return s.change.kind == Kind::CacheRead && s.change.axis == slot;
      });
      const auto at = static_cast<size_t>(existing - schedule_.steps.begin());
      for (int64_t place = 0; place <= static_cast<int64_t>(start_.axes.size()) + 1; ++place)
        add([&](EditableSchedule& d) {
          if (at == d.steps.size())
            d.steps.push_back({0, {Kind::CacheRead, slot, place}, 0});
          else
            d.steps[at].change.amount = place;
        });
    }
  }

  // Adds software pipelining of each copied operand, and of all together.
  void add_pipelining() {
    if (start_.caps->async_copy_bytes == 0) return;
    std::vector<Step> all;
    for (const Step& step : schedule_.steps) {
      const uint32_t slot = step.change.axis;
      const bool is_pipelined = std::ranges::any_of(schedule_.steps, [&](const Step& s) {
        return s.change.kind == Kind::Pipeline && s.change.axis == slot;
      });
      if (step.change.kind == Kind::CacheRead && !is_pipelined)
        all.push_back({0, {Kind::Pipeline, slot, 1}, 0});
    }
    for (const Step& step : all) add([&](EditableSchedule& d) { d.steps.push_back(step); });
    if (all.size() > 1)
      add([&](EditableSchedule& d) { d.steps.insert(d.steps.end(), all.begin(), all.end()); });
  }

  // Before the first cache_read: output loops in blocks, and reduce loops in blocks outside output
  // loops. Blocking and moving a reduce loop are of little use alone.
  void add_blocks() {
    const auto first_read = std::ranges::find(schedule_.steps, Kind::CacheRead,
                                              [](const Step& s) { return s.change.kind; });
    const auto is_cache_read = [](const Step& s) { return s.change.kind == Kind::CacheRead; };
    if (works_in_groups(*start_.caps) ||
        !std::all_of(first_read, schedule_.steps.end(), is_cache_read))
      return;
    const size_t at = static_cast<size_t>(first_read - schedule_.steps.begin());
    EditableSchedule before{{schedule_.steps.begin(), first_read}, 0};
    Kernel kernel = copy_of(start_);
    apply_editable(kernel, before);
    for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
      const uint32_t number = number_at(kernel, axis);
      const int64_t size = size_of_axis(kernel, axis);
      if (kind_of(kernel, axis) == AxisKind::Reduce)
        for (int64_t amount : {256, 512, 1024})
          for (int64_t place : {0, 1}) add_block(at, {number, size, amount, place, 1});
      if (kind_of(kernel, axis) == AxisKind::Loop)
        for (int64_t amount : {8, 16, 32, 64})
          for (int64_t later : {0, 1}) add_block(at, {number, size, amount, -1, later});
    }
  }

  struct Blocks {
    uint32_t number;
    int64_t size, amount;
    int64_t place;  // of a split-k that follows; -1 for none
    int64_t later;  // loops by which cache_read steps move inwards
  };
  void add_block(size_t at, const Blocks& blocks) {
    if (blocks.amount >= blocks.size) return;
    add([&](EditableSchedule& d) {
      for (size_t i = at; i < d.steps.size(); ++i) d.steps[i].change.amount += blocks.later;
      auto place = d.steps.begin() + static_cast<std::ptrdiff_t>(at);
      place = d.steps.insert(place, {blocks.number, {Kind::Block, 0, blocks.amount}, blocks.size});
      if (blocks.place >= 0)
        d.steps.insert(place + 1, {blocks.number, {Kind::SplitK, 0, blocks.place}, 0});
    });
  }

  void add_tensor_cores() {
    for (size_t axis = 0; axis < start_.axes.size(); ++axis)
      for (uint32_t core = 0; core < start_.caps->tensor_core_count; ++core)
        add([&](EditableSchedule& d) {
          const Step step{number_at(start_, axis), {Kind::TensorCore, 0, core}, 0};
          d.steps.insert(d.steps.begin(), step);
        });
  }

  const Kernel& start_;
  EditableSchedule schedule_;
  int64_t lanes_ = 1;
  std::vector<EditableSchedule> out_;
};

}  // namespace

// A legal schedule that codegen cannot generate is a bug, but does not end a search.
void log_refusal(const Error& e) {
  if (e.kind() == ErrorKind::Internal)
    log_line(LogLevel::Info, fmt::format("[search] a list is left out: {}", e.what()));
}

SearchSpace::SearchSpace(const Graph& ast, Id sink, const pgr_device_caps& caps,
                         const Options& options)
    : start_(kernel_before_schedule(ast, sink, caps, options)), bytes_(estimate(start_).bytes) {}

SearchSpace::SearchSpace(const Kernel& start)
    : start_(copy_of(start)), bytes_(estimate(start_).bytes) {}

Candidate SearchSpace::chosen() const {
  Kernel kernel = copy_of(start_);
  apply_search(kernel);
  return {kernel.applied, predict(kernel, bytes_)};
}

Candidate SearchSpace::predicted(const KernelSchedule& list) const {
  require(list.size() <= kLongestList, "a list has at most {} changes, this one {}", kLongestList,
          list.size());
  Kernel kernel = copy_of(start_);
  for (const ScheduleStep& change : list) apply(kernel, change);
  return {kernel.applied, predict(kernel, bytes_)};
}

Candidate SearchSpace::require_legal(const KernelSchedule& list) const {
  Candidate candidate = predicted(list);
  require(candidate.cost() < std::numeric_limits<double>::infinity(),
          "it needs more registers than the device has, or more code than compilers manage");
  return candidate;
}

std::optional<Candidate> SearchSpace::look(const KernelSchedule& list) const {
  try {
    return require_legal(list);
  } catch (const Error& e) {
    log_refusal(e);
    return std::nullopt;
  }
}

namespace {

// The legal schedules among `schedules`, without duplicates.
std::vector<Candidate> candidates_of(const Kernel& start, int64_t bytes, const KernelSchedule& list,
                                     const std::vector<EditableSchedule>& schedules,
                                     const GoesOn& goes_on = {}) {
  std::vector<std::optional<Candidate>> found(schedules.size());
  run_tasks(schedules.size(), [&](uint64_t i) {
    if (goes_on && !goes_on()) return;
    KernelSchedule changes;
    for (const Step& step : schedules[i].steps) changes.push_back(step.change);
    if (changes.size() > kLongestList) return;
    found[i] =
        candidate_of(start, bytes, [&](Kernel& kernel) { apply_editable(kernel, schedules[i]); });
  });
  std::vector<Candidate> out;
  std::set<std::string> seen = {to_string(list)};
  for (auto& candidate : found)
    if (candidate && seen.insert(to_string(candidate->list)).second)
      out.push_back(std::move(*candidate));
  return out;
}

}  // namespace

std::vector<Candidate> SearchSpace::near(const KernelSchedule& list, const GoesOn& goes_on) const {
  return candidates_of(start_, bytes_, list, Neighbours(start_, editable(start_, list)).run(),
                       goes_on);
}

SearchSpace::Near SearchSpace::first_of_near(const KernelSchedule& list, size_t most) const {
  std::vector<EditableSchedule> schedules = Neighbours(start_, editable(start_, list)).run_first();
  if (schedules.size() > most) schedules.resize(most);
  return {candidates_of(start_, bytes_, list, schedules), schedules.size()};
}

std::vector<Candidate> SearchSpace::alternatives(double slack, const GoesOn& goes_on) const {
  const Candidate first = chosen();
  std::vector<Candidate> out = near(first.list, goes_on);
  std::erase_if(out, [&](const Candidate& p) { return p.cost() > slack * first.cost(); });
  std::ranges::stable_sort(out, {}, &Candidate::cost);
  return out;
}

}  // namespace plugrad::codegen
