#include "tensor/loops/loop_products.h"

#include <algorithm>

#include "plugrad/operators.h"
#include "tensor/handles.h"

namespace plugrad::tensor {
namespace {

/// A contraction: a sum over axes of a product, or a sum of contractions.
class Term {
 public:
  Term(Recorder& r, Id root) : r_(r), is_contraction_(visit(root)) {}

  bool is_contraction() const { return is_contraction_; }
  const std::vector<Id>& factors() const { return factors_; }

 private:
  bool visit(Id id) {
    const Node& node = r_.graph()[id];
    const auto sources = r_.graph().sources(id);
    if (is_movement(node.op) || node.op == Op::Cast) return visit(sources[0]);
    if (node.op == Op::Add) {
      const Id other = sources[1];
      return visit(sources[0]) && visit(other);
    }
    return node.op == Op::Reduce && is_sum_of_products(id);
  }

  bool is_sum_of_products(Id id) {
    if (static_cast<Op>(r_.graph().arg_list(id)[0]) != Op::Add) return false;
    Id product = r_.graph().sources(id)[0];
    while (r_.graph()[product].op == Op::Cast) product = r_.graph().sources(product)[0];
    if (r_.graph()[product].op != Op::Mul) return false;
    for (const Id source : r_.graph().sources(product)) add_factor(source);
    return true;
  }

  void add_factor(Id id) {
    while (is_movement(r_.graph()[id].op) || r_.graph()[id].op == Op::Cast)
      id = r_.graph().sources(id)[0];
    if (std::ranges::find(factors_, id) == factors_.end()) factors_.push_back(id);
  }

  Recorder& r_;
  std::vector<Id> factors_;
  bool is_contraction_;
};

/// Rebuilds a term with the steps as an additional first axis.
class OverSteps {
 public:
  OverSteps(Recorder& r, const std::function<Tensor(const Tensor&)>& array)
      : r_(r), array_(array) {}

  /// The term, summed over the steps.
  Tensor sum(Id id) {
    const Node node = r_.graph()[id];
    const std::vector<Id> sources = sources_of(id);
    if (is_movement(node.op)) return moved(id, sum(sources[0]), 0);
    if (node.op == Op::Cast) return sum(sources[0]).cast(node.dtype);
    if (node.op == Op::Add) return sum(sources[0]) + sum(sources[1]);
    const auto list = list_of(id);
    std::vector<int64_t> all = {0};
    for (size_t i = 1; i < list.size(); ++i) all.push_back(list[i] + 1);
    return stepped(sources[0]).sum(Axes(all), true, node.dtype).squeeze({0});
  }

 private:
  std::vector<Id> sources_of(Id id) const {
    const auto sources = r_.graph().sources(id);
    return {sources.begin(), sources.end()};
  }
  std::vector<int64_t> list_of(Id id) const {
    const auto list = r_.graph().arg_list(id);
    return {list.begin(), list.end()};
  }

  Tensor stepped(Id id) {
    const Node node = r_.graph()[id];
    const std::vector<Id> sources = sources_of(id);
    if (is_movement(node.op)) return moved(id, stepped(sources[0]), 1);
    if (node.op == Op::Cast) return stepped(sources[0]).cast(node.dtype);
    if (node.op == Op::Mul && !is_factor_) {
      is_factor_ = true;
      const Tensor a = stepped(sources[0]), b = stepped(sources[1]);
      is_factor_ = false;
      return a * b;
    }
    return array_(r_.done(id));
  }

  /// Applies the movement `id` to x, which has `skipped` additional first axes.
  Tensor moved(Id id, const Tensor& x, size_t skipped) const {
    const std::vector<int64_t> list = list_of(id);
    std::vector<int64_t> own;
    std::vector<std::pair<int64_t, int64_t>> pairs;
    const Shape shape = x.shape();
    for (size_t axis = 0; axis < skipped; ++axis) {
      own.push_back(shape[axis]);
      pairs.emplace_back(0, 0);
    }
    switch (r_.graph()[id].op) {
      case Op::Reshape:
      case Op::Expand:
        own.insert(own.end(), list.begin(), list.end());
        return r_.graph()[id].op == Op::Reshape ? x.reshape(own) : x.expand(own);
      case Op::Permute:
        for (size_t axis = 0; axis < skipped; ++axis) own[axis] = static_cast<int64_t>(axis);
        for (const int64_t axis : list) own.push_back(axis + static_cast<int64_t>(skipped));
        return x.permute(own);
      case Op::Flip: {
        std::vector<int64_t> axes;
        for (size_t i = 0; i < list.size(); ++i)
          if (list[i] != 0) axes.push_back(static_cast<int64_t>(i + skipped));
        return x.flip(Axes(axes));
      }
      default:
        break;
    }
    for (size_t i = 0; i < list.size(); i += 2) pairs.emplace_back(list[i], list[i + 1]);
    if (r_.graph()[id].op == Op::Pad) return x.pad(pairs);
    for (size_t axis = 0; axis < skipped; ++axis) pairs[axis] = {0, shape[axis]};
    return x.shrink(pairs);
  }

  Recorder& r_;
  const std::function<Tensor(const Tensor&)>& array_;
  bool is_factor_ = false;
};

}  // namespace

std::vector<Tensor> factors_of(const Tensor& term) {
  Recorder r("scan");
  const Term parsed(r, state_of(term)->node);
  std::vector<Tensor> factors;
  if (!parsed.is_contraction()) return factors;
  for (const Id id : parsed.factors()) {
    if (r.session().devices()[id] == 0) return {};  // a constant, equal in all steps
    factors.push_back(r.done(id));
  }
  return factors;
}

Tensor summed(const Tensor& term, const std::function<Tensor(const Tensor&)>& array) {
  Recorder r("scan");
  return OverSteps(r, array).sum(state_of(term)->node);
}

}  // namespace plugrad::tensor
