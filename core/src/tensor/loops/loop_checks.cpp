#include "tensor/loops/loop_checks.h"

#include "engine/plan/index_report.h"
#include "ir/user.h"
#include "plugrad/functional.h"
#include "plugrad/operators.h"
#include "tensor/handles.h"
#include "tensor/index/index.h"

namespace plugrad::tensor {
namespace {

constexpr std::string_view kName = "scan";

/// Rebuilds the step's nodes without the range checks of values that depend on its placeholders.
class Unchecked {
 public:
  Unchecked(Recorder& r, const LoopStep& step, std::span<const Id> roots)
      : r_(r), new_id_(r.graph().size(), kNoId), depends_(new_id_.size()), is_used_(depends_) {
    for (const auto* part : {&step.states, &step.inputs, &step.captured})
      for (const Tensor& t : *part) depends_[state_of(memory_of(t))->node] = true;
    Reachable reachable;
    const std::vector<Id> nodes = reachable.from(r.graph(), roots);
    find_used(nodes, roots);
    for (const Id id : nodes) new_id_[id] = rebuilt(id);
  }
  Id operator()(Id id) const { return new_id_[id]; }
  const std::vector<LoopCheck>& checks() const { return checks_; }
  const std::vector<Id>& reports() const { return reports_; }

 private:
  // Function nodes also have sources that only a gradient uses.
  void find_used(std::span<const Id> nodes, std::span<const Id> roots) {
    for (const Id id : roots) is_used_[id] = true;
    for (size_t i = nodes.size(); i-- > 0;)
      if (is_used_[nodes[i]])
        for (const Id s : used_sources(r_, nodes[i])) is_used_[s] = true;
  }

  Id rebuilt(Id id) {
    const auto sources = r_.graph().sources(id);
    std::vector<Id> own(sources.begin(), sources.end());
    for (const Id s : own)
      if (depends_[s]) depends_[id] = true;
    for (Id& s : own) s = new_id_[s];
    if (depends_[id] && is_range_check(r_.graph()[id])) return unchecked(id, own);
    return std::ranges::equal(own, sources) ? id : r_.graph().with_sources(id, own);
  }

  Id unchecked(Id id, std::span<const Id> own) {
    if (is_used_[id]) {
      checks_.push_back({function_call(r_.graph()[id].arg), element_count(r_.shape(id))});
      reports_.push_back(own[1]);
    }
    return own[0];
  }

  Recorder& r_;
  std::vector<Id> new_id_;
  std::vector<bool> depends_, is_used_;
  std::vector<LoopCheck> checks_;
  std::vector<Id> reports_;
};

/// Combines the reports of all steps, (length, 2), into one.
Tensor combined_report(const Tensor& reports, int64_t count, const AxisSize& length) {
  const int64_t steps = reports.size(0);
  const DType dtype = steps > INT32_MAX / count ? DType::I64 : reports.dtype();
  const Tensor step = Tensor::arange(steps);
  const Tensor firsts = reports.shrink({{0, steps}, {0, 1}}).reshape({steps});
  Tensor names_one = firsts != engine::kNoneOutside;
  if (length.varies) names_one = names_one & (step < length.count);
  const Tensor found = where(names_one, step, steps).min().reshape({1});
  const Tensor report = select(reports, 0, found).reshape({2}).cast(dtype);
  const Tensor none = Tensor(engine::kNoneOutside).cast(dtype);
  const Tensor before = found.cast(dtype) * count;
  return where(Tensor::arange(2) == 0, where(found == steps, none, report + before), report);
}

/// Stores `array` as a new value, so that the check belongs to it and not to the loop's buffer.
Tensor checked(const Tensor& array, std::span<const LoopCheck> checks,
               std::span<const Tensor> reports) {
  Recorder r(kName);
  Id node = r.use(array);
  const DType dtype = r.dtype(node);
  for (size_t i = 0; i < checks.size(); ++i)
    node = r.graph().add(Op::Function, dtype, {node, r.use(reports[i])},
                         function_arg(checks[i].range, kRangeCheck));
  return r.done(r.graph().add(Op::Contiguous, dtype, {node}));
}

}  // namespace

std::vector<LoopCheck> take_checks(LoopStep& step) {
  Recorder r(kName);
  if (r.session().index_ranges().empty()) return {};
  std::vector<Id> roots;
  for (const auto* part : {&step.next_states, &step.outputs, &step.terms})
    for (const Tensor& t : *part) roots.push_back(state_of(t)->node);
  const Unchecked without(r, step, roots);
  if (without.checks().empty()) return {};
  for (auto* part : {&step.next_states, &step.outputs, &step.terms})
    for (Tensor& t : *part) t = r.done(without(state_of(t)->node));
  for (const Id report : without.reports()) step.outputs.push_back(r.done(report));
  return without.checks();
}

void put_checks(LoopArrays& arrays, std::span<const LoopCheck> checks, const AxisSize& length) {
  if (checks.empty()) return;
  const size_t count = arrays.outputs.size() - checks.size();
  std::vector<Tensor> reports;
  for (size_t i = 0; i < checks.size(); ++i)
    reports.push_back(combined_report(arrays.outputs[count + i], checks[i].count, length));
  arrays.outputs.resize(count);
  for (auto* part : {&arrays.states, &arrays.outputs, &arrays.sums})
    for (Tensor& t : *part) t = checked(t, checks, reports);
}

}  // namespace plugrad::tensor
