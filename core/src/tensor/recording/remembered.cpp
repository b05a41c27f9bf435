#include "tensor/recording/remembered.h"

#include <algorithm>

#include "base/settings.h"
#include "base/trace/trace.h"
#include "engine/session_state.h"
#include "jit/trace.h"
#include "plugrad/no_grad.h"
#include "tensor/handles.h"
#include "tensor/record.h"

namespace plugrad::tensor {
namespace {

constexpr int64_t kMostBytes = 16 << 10;  // of a recording: larger ones take long to compute

bool is_plain(engine::Session& session, Id node, Operands kind) {
  const Op op = session.graph()[node].op;
  if (kind == Operands::Stored && op != Op::Buffer) return false;
  return op != Op::Scalar && op != Op::Function && !session.is_counted(node) &&
         session.mesh(session.devices()[node]) == nullptr;
}

// A number is part of what is recorded, like the function's options.
bool is_literal(engine::Session& session, const Tensor& operand) {
  return is_const(session.graph(), state_of(operand)->node);
}

bool is_value(const engine::TensorState& state) {
  return state.links.base == nullptr && state.links.writes == detail::ViewLinks::Writes::ToBase &&
         !state.requires_grad;
}

}  // namespace

RememberedCall::RememberedCall(std::string_view function, std::span<const int64_t> options,
                               std::span<const Tensor* const> operands, Operands kind)
    : function_(function), operands_(operands) {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  const bool is_defined = std::ranges::all_of(operands, &Tensor::defined);
  const bool is_observed =
      engine::CallObserver::active() != nullptr || jit_detail::JitTrace::active() != nullptr;
  if (!is_defined || is_observed || tracing()) return;
  std::vector<uint64_t>& words = session.state().key_words;
  words.assign(options.begin(), options.end());
  words.push_back(hash64(as_bytes(function)));
  words.push_back(static_cast<uint64_t>(is_grad_enabled()) |
                  static_cast<uint64_t>(settings().check_indices) << 1);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Id node = state_of(*operands[i])->node;
    if (!is_plain(session, node, kind)) return;
    size_t same = 0;  // the first operand with the node
    while (state_of(*operands[same])->node != node) ++same;
    const auto shape = session.shape(node);
    const Node& operand = session.graph()[node];
    words.push_back(static_cast<uint64_t>(operand.dtype) | same << 8 | shape.size() << 40 |
                    static_cast<uint64_t>(operand.op == Op::Const) << 63);
    words.insert(words.end(), shape.begin(), shape.end());
    if (operand.op == Op::Const) words.push_back(operand.arg);
  }
  key_ = hash128(std::as_bytes(std::span(words)));
  is_ordinary_ = true;
}

std::vector<Tensor> RememberedCall::results() const {
  if (!is_ordinary_) return {};
  Recorder r(function_);
  engine::SessionState& state = r.session().state();
  const auto* const known = state.recorded.find(key_);
  if (known == nullptr || *known == nullptr || (*known)->result_count() == 0) return {};
  const std::shared_ptr<engine::RecordedNodes> nodes = *known;
  std::vector<Id> operands;
  for (const Tensor* operand : operands_)
    if (const Id node = r.use(*operand); !is_literal(r.session(), *operand))
      operands.push_back(node);
  const Id first = r.graph().size();
  ++state.statistics.recordings_copied;
  const auto added = nodes->add_to(r.graph(), state.graph_number, operands);
  for (const Id node : added.subspan(operands.size()))
    if (node < first) r.session().resume_tape(node);
  std::vector<Tensor> results;
  for (size_t i = 0; i < nodes->result_count(); ++i)
    results.push_back(r.done(added[nodes->result(i)]));
  return results;
}

void RememberedCall::remember(std::span<const Tensor* const> results) const {
  if (!is_ordinary_) return;
  Recorder r(function_);
  engine::SessionState& state = r.session().state();
  const auto* const known = state.recorded.find(key_);
  if (known == nullptr) state.recorded.insert(key_, nullptr, 0);  // it may never come again
  if (known == nullptr || *known != nullptr) return;
  std::vector<Id> operands, made;
  for (const Tensor* operand : operands_) {
    if (is_literal(r.session(), *operand)) continue;
    operands.push_back(state_of(*operand)->node);
    if (r.graph()[operands.back()].op != Op::Buffer) return;  // another call may use stored values
  }
  for (const Tensor* result : results) {
    if (!is_value(*state_of(*result))) return;
    made.push_back(state_of(*result)->node);
  }
  auto nodes = engine::RecordedNodes::between(r.graph(), operands, made);
  if (!nodes || nodes->size_bytes() > kMostBytes) nodes.emplace();  // never copied
  const uint64_t bytes = nodes->size_bytes();
  state.recorded.insert(key_, std::make_shared<engine::RecordedNodes>(*std::move(nodes)), bytes);
}

}  // namespace plugrad::tensor
