#include "jit/recording.h"

#include <fmt/format.h>

#include <algorithm>

namespace plugrad::jit_detail {
namespace {

bool is_same(const JitTensor& a, const JitTensor& b) {
  const bool same_state = a.argument != JitTensor::kCaptured || is_same_owner(a.state, b.state);
  return same_state && a.argument == b.argument && a.shape == b.shape && a.dtype == b.dtype &&
         a.device == b.device && a.requires_grad == b.requires_grad && a.is_number == b.is_number &&
         a.has_no_gradient == b.has_no_gradient && a.counts == b.counts &&
         (!a.is_number || a.number->node == b.number->node);
}

bool is_same(const JitResult& a, const JitResult& b) {
  return a.kind == b.kind && a.number == b.number && a.shape == b.shape && a.counts == b.counts &&
         (!a.constant || a.constant->node == b.constant->node);
}

bool is_same(const JitUpdate& a, const JitUpdate& b) {
  return a.tensor == b.tensor && a.is_gradient == b.is_gradient && is_same(a.to, b.to);
}

bool is_same(const JitValue& a, const JitValue& b) {
  return a.kind == b.kind && a.tensor == b.tensor && a.axis == b.axis && a.counter == b.counter &&
         a.key == b.key;
}

bool is_same(const JitRun& a, const JitRun& b) {
  return a.ready == b.ready && a.inputs == b.inputs && a.roots == b.roots;
}

template <class T>
bool all_same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(a, b, [](const T& x, const T& y) { return is_same(x, y); });
}

std::string kernels_of(const engine::ReadyPlan& ready) {
  std::string names;
  for (const auto& kernel : ready.kernels)
    names += (names.empty() ? "" : ", ") + (kernel ? kernel->code.name : std::string("a copy"));
  return names.empty() ? "none" : names;
}

bool is_same_kernel(const std::shared_ptr<engine::ReadyKernel>& a,
                    const std::shared_ptr<engine::ReadyKernel>& b) {
  if (a == b || !a || !b) return a == b;
  return a->code.name == b->code.name && !a->ast == !b->ast &&
         (!a->ast || std::ranges::equal(a->ast->hash, b->ast->hash));
}

// Describes the first difference between two lists of runs.
std::string difference_of(const std::vector<JitRun>& now, const std::vector<JitRun>& before) {
  if (now.size() != before.size())
    return fmt::format("it computed {} times what is left or realised in it, before {} times",
                       now.size(), before.size());
  size_t at = 0;
  while (is_same(now[at], before[at])) ++at;
  const std::string where =
      now.size() == 1 ? "" : fmt::format(" (plan {} of {})", at + 1, now.size());
  if (now[at].ready == before[at].ready || !now[at].ready || !before[at].ready)
    return "it computed the same of other values" + where;
  const std::string kernels = kernels_of(*now[at].ready), others = kernels_of(*before[at].ready);
  if (std::ranges::equal(now[at].ready->kernels, before[at].ready->kernels, is_same_kernel))
    return fmt::format("its kernels read and write other values{}: {}", where, kernels);
  return fmt::format(
      "it computed something else{}, as a number of the host that changes, a branch or a size of "
      "its own would make it do: kernels {}, before {}",
      where, kernels, others);
}

}  // namespace

std::string JitRecording::difference_from(const JitRecording& other) const {
  if (!all_same(tensors, other.tensors)) return "it used other tensors";
  if (!all_same(runs, other.runs)) return difference_of(runs, other.runs);
  if (!all_same(values, other.values)) return "it used its tensors in another order";
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::ranges::equal(values[i].host, other.values[i].host))
      return "it brought other values from the host";
  if (random_words != other.random_words) return "it drew more or fewer random numbers";
  if (!all_same(results, other.results) || structure != other.structure)
    return "it returned something else";
  if (!all_same(updates, other.updates) || marked != other.marked)
    return "it changed other tensors";
  return "";
}

}  // namespace plugrad::jit_detail
