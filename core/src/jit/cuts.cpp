#include "jit/cuts.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/binding.h"
#include "base/check.h"
#include "engine/refine/refinement.h"
#include "engine/session_state.h"

namespace plugrad::jit_detail {
namespace {

using SessionGuard = std::lock_guard<InterpreterAwareMutex>;

constexpr size_t kMostParts = 128, kMostSeen = 4096, kMostPlaces = 256;
constexpr int kMostChanges = 4;  // of constants in a row

}  // namespace

bool JitCuts::Part::is_of(std::span<const engine::ValuePtr> inputs) const {
  for (size_t i = 0; i < constants.size(); ++i)
    if (!is_same_owner(of[i], std::weak_ptr(inputs[constants[i]]))) return false;
  return true;
}

void JitCuts::Part::take(std::span<const engine::ValuePtr> inputs) {
  of.clear();
  for (const uint32_t input : constants) of.emplace_back(inputs[input]);
}

// From the second run on: device graphs, faster schedules, and what is computed once.
void JitCuts::Part::prepare(engine::SessionState& session) {
  is_repeated = true;
  ready->is_recorded = true;
  engine::refine(std::span(&ready, 1), session.kernels);
  if (constants.empty()) return;
  JitRun run{ready, std::vector<uint32_t>(ready->plan.input_count), {}};
  std::iota(run.inputs.begin(), run.inputs.end(), 0U);
  std::vector<bool> is_constant(run.inputs.size());
  for (const uint32_t input : constants) is_constant[input] = true;
  const auto kept_on = [&](uint32_t device) { return session.constants.bytes_on(device); };
  prepared = std::make_shared<JitConstants>(run, is_constant, kept_on);
  if (prepared->empty())
    prepared.reset();
  else
    session.constants.add(prepared->kept());
}

// One call, on one thread.
class JitCuts::Call final : public engine::CutCall {
 public:
  Call(JitCuts& cuts, engine::Session& session, std::span<const engine::StatePtr> arguments)
      : cuts_(cuts), session_(session) {
    const engine::Session::Lock lock(session);
    number_ = ++cuts.calls_;
    graph_number_ = session.state().graph_number;
    first_node_ = session.graph().size();
    for (const engine::StatePtr& argument : arguments) {
      Id base = argument ? argument->node : kNoId;
      while (base != kNoId && !values().find(base) && session.shows_source(base))
        base = session.graph().sources(base)[0];
      if (base != kNoId) arguments_.insert(values().find(base));
    }
    outer_ = set_active(this);
  }
  ~Call() override {
    set_active(outer_);
    const SessionGuard guard(session_.mutex());
    cuts_.cuts_of_last_ = reads_;
    cuts_.least_cuts_ = std::min(cuts_.least_cuts_, reads_);
    cuts_.most_cuts_ = std::max(cuts_.most_cuts_, reads_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::vector<uint32_t> constant_inputs(const Hash128& graph,
                                        std::span<const engine::ValuePtr> inputs,
                                        const std::function<bool()>& varies) override;
  std::vector<engine::ValuePtr> run(const std::shared_ptr<engine::ReadyPlan>& ready,
                                    std::vector<engine::ValuePtr>& inputs) override;
  void read() override {
    ++reads_;
    const uint32_t place = current_place();
    if (place != 0 && (cuts_.cuts_at_.size() < kMostPlaces || cuts_.cuts_at_.contains(place)))
      ++cuts_.cuts_at_[place];
  }

  Id first_node() const override {
    return graph_number_ == session_.state().graph_number ? first_node_ : kNoId;
  }

 private:
  engine::ValueTable& values() { return session_.state().values; }
  std::vector<uint32_t> known_before(std::span<const engine::ValuePtr> inputs) const;
  void note(std::span<const engine::ValuePtr> inputs);

  JitCuts& cuts_;
  engine::Session& session_;
  engine::CutCall* outer_ = nullptr;
  uint64_t number_ = 0, reads_ = 0, graph_number_ = 0;
  Id first_node_ = 0;
  std::unordered_set<const engine::Value*> arguments_;
  Part* part_ = nullptr;  // of the graph looked up last
};

// The inputs that earlier calls read too, and that are no arguments.
std::vector<uint32_t> JitCuts::Call::known_before(std::span<const engine::ValuePtr> inputs) const {
  std::vector<uint32_t> known;
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    const auto seen = cuts_.seen_.find(inputs[i].get());
    if (seen != cuts_.seen_.end() && seen->second.call < number_ &&
        is_same_owner(seen->second.value, std::weak_ptr(inputs[i])) &&
        !arguments_.contains(inputs[i].get()) && !inputs[i]->variable && !inputs[i]->size)
      known.push_back(i);
  }
  return known;
}

void JitCuts::Call::note(std::span<const engine::ValuePtr> inputs) {
  if (cuts_.seen_.size() >= kMostSeen) {
    std::erase_if(cuts_.seen_, [](const auto& seen) { return seen.second.value.expired(); });
    if (cuts_.seen_.size() >= kMostSeen) cuts_.seen_.clear();
  }
  for (const engine::ValuePtr& input : inputs) {
    Seen& seen = cuts_.seen_.try_emplace(input.get(), input, number_).first->second;
    if (!is_same_owner(seen.value, std::weak_ptr(input))) seen = {input, number_};
  }
}

JitCuts::Part& JitCuts::part_of(const Hash128& graph, uint64_t call) {
  if (parts_.size() >= kMostParts)
    parts_.erase(std::ranges::min_element(parts_, {}, &Part::last_use));
  return parts_.emplace_back(Part{graph, call, ++uses_});
}

// The second call knows which inputs stay the same, so the third one finds its plan. An assignment
// does not change that, unless each call assigns.
std::vector<uint32_t> JitCuts::Call::constant_inputs(const Hash128& graph,
                                                     std::span<const engine::ValuePtr> inputs,
                                                     const std::function<bool()>& varies) {
  Part *same = nullptr, *other = nullptr;
  for (Part& part : cuts_.parts_) {
    if (part.graph != graph) continue;
    if (!same && part.is_of(inputs)) same = &part;
    if (std::ranges::any_of(part.of, [](const auto& value) { return value.expired(); }))
      other = &part;
  }
  part_ = same;
  if (!same && other) {
    part_ = other;
    if (++other->changes > kMostChanges) *other = Part{graph, number_, 0};
    other->take(inputs);
  }
  if (!part_) part_ = &cuts_.part_of(graph, number_);
  if (same) same->changes = 0;
  part_->last_use = ++cuts_.uses_;
  if (part_->constants.empty()) {
    std::vector<uint32_t> known = known_before(inputs);
    if (known.empty() || varies()) return {};
    part_->constants = std::move(known);
    part_->take(inputs);
  }
  return part_->constants;
}

std::vector<engine::ValuePtr> JitCuts::Call::run(const std::shared_ptr<engine::ReadyPlan>& ready,
                                                 std::vector<engine::ValuePtr>& inputs) {
  Part& part = *part_;
  note(inputs);
  if (part.ready != ready) {
    part.ready = ready;
    part.prepared.reset();
    part.is_repeated = false;
  }
  if (!part.is_repeated && part.first_call < number_) part.prepare(session_.state());
  const size_t own = inputs.size();
  if (part.prepared && !part.prepared->is_dropped()) try {
      const std::shared_ptr<JitConstants> prepared = part.prepared;
      prepared->add_results(inputs, session_.state().constants,
                            [&](engine::ReadyPlan& plan, std::span<const engine::ValuePtr> of) {
                              return session_.run_ready(plan, of);
                            });
      return session_.run_ready(*prepared->rest().ready, inputs);
    } catch (const OutOfMemoryError&) {  // no input is overwritten yet
      part.prepared->kept()->drop();
      inputs.resize(own);
    }
  return session_.run_ready(*ready, inputs);
}

JitOutput JitCuts::call(engine::Session& session, std::span<const engine::StatePtr> arguments,
                        const std::function<JitOutput()>& function) {
  const Call call(*this, session, arguments);
  JitOutput output = function();
  std::vector<engine::TensorState*> states;
  for (const engine::StatePtr& state : output.tensors)
    if (state) states.push_back(state.get());
  session.realize_with_pending(states);
  for (engine::TensorState* const state : states)
    if (!state->requires_grad) session.cut_tape(*state);
  return output;
}

size_t JitCuts::recordings(engine::Session& session) const {
  const SessionGuard guard(session.mutex());
  return static_cast<size_t>(std::ranges::count(parts_, true, &Part::is_repeated));
}

std::string JitCuts::explain(engine::Session& session) const {
  std::string text;
  std::map<uint32_t, uint64_t> cuts_at;
  {
    const SessionGuard guard(session.mutex());
    text = fmt::format("{} calls ran the function, in parts between what the host reads", calls_);
    if (most_cuts_ >= least_cuts_)
      text += fmt::format(": {} cuts in the last one, {} to {} in each", cuts_of_last_, least_cuts_,
                          most_cuts_);
    cuts_at = cuts_at_;
  }
  for (const auto& [place, count] : cuts_at)
    text += fmt::format("\ncut at {}: {} times", describe_place(place), count);
  return text + "\n";
}

}  // namespace plugrad::jit_detail
